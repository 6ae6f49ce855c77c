/*
 * option: the table of all options, for the command line, the environment, the file, help
 * and checks.
 *
 *     max_claim_ttl          in the file, and the name here
 *     --max-claim-ttl N      on the command line
 *     CLAIMD_MAX_CLAIM_TTL   in the environment
 */
#ifndef MAIN_OPTION_H
#define MAIN_OPTION_H

#include "claimd/base/bytes.h"
#include "main/config.h"

/*
 * The longest text. inih reads lines of 200 characters, and config_print() writes the
 * text with its name and a comment in one line. The path of a Unix socket is shorter
 * anyway.
 */
enum { OPTION_TEXT_MAX = 150 };

/* The value of a size that is given as a word. */
enum { OPTION_WORD = -1 };

enum option_kind {
    OPTION_NUMBER, /* int64_t, decimal */
    OPTION_SIZE,   /* int64_t, bytes; K, M, G for powers of 1024 */
    OPTION_MODE,   /* int64_t, permissions of a file, octal */
    OPTION_FLAG,   /* bool, one of two words */
    OPTION_CHOICE, /* int, the index of a word */
    OPTION_SET,    /* unsigned, a bit a word; words joined by commas */
    OPTION_TEXT,   /* char[CONFIG_TEXT_CAP]; 1 to OPTION_TEXT_MAX bytes */
    OPTION_LISTEN  /* OPTION_TEXT in the form of listen_read() */
};

struct option {
    const char *group; /* one word: the heading in help, pages and files */
    const char *name;
    enum option_kind kind;
    size_t offset; /* of the field in struct config */
    int64_t min, max;
    /* "a|b|c" for flags, choices and sets; of a size: one that stands for OPTION_WORD, or
     * NULL. */
    const char *words;
    const char *value;   /* placeholder of the value in texts, such as "N" or "FILE" */
    const char *initial; /* default; NULL: the value in api_limits_default */
    const char *example; /* a value; NULL: none */
    const char *help;    /* sentences; the first one is the short description */
    bool live;           /* SIGHUP changes the option; otherwise only a restart does */
    bool common;         /* the short help shows the option */
};

extern const struct option options[];
extern const size_t option_count;

/* The option whose name is like a misspelled one. NULL if there is none. */
const struct option *option_nearest(struct bytes name);

/* Finds an option by name. NULL if there is none. */
const struct option *option_find(struct bytes name);

/*
 * Parses a value and stores it. ST_BAD_VALUE, and nothing is stored, with the allowed and
 * the received value in why[CONFIG_ERROR_CAP]: "must be 1 to 31536000 (received \"0\")".
 */
enum status option_set(const struct option *option, struct config *config,
                       struct bytes value, char why[CONFIG_ERROR_CAP]);

/* Prints the value in a form that option_set() reads. */
void option_print(const struct option *option, const struct config *config, FILE *to);

/* Prints the default in the same form. */
void option_print_default(const struct option *option, FILE *to);

/* The default with a journal or a store on Redis. "" if it is the same. */
const char *option_durable_default(const struct option *option);

/* True if the option has the same value in both. */
bool
option_same(const struct option *option, const struct config *a, const struct config *b);

/* Copies the value and its origin. */
void
option_copy(const struct option *option, struct config *to, const struct config *from);

/* True for a flag with the words false and true. It needs no value on the command
 * line. */
bool option_is_switch(const struct option *option);

/* 0 for a word that means false, such as "no", 1 for one that means true, -1 for any
 * other. */
int option_switch_index(struct bytes value);

/* True for the first option of a group. */
bool option_begins_group(const struct option *option);

/* True for a number with an upper bound, so that texts name its range. */
bool option_has_range(const struct option *option);

/* Writes the name with hyphens, as on the command line. */
void option_spell(const struct option *option, char out[CONFIG_TEXT_CAP]);

/* The value of a NUMBER, SIZE or MODE option. */
int64_t option_number(const struct option *option, const struct config *config);

#endif
