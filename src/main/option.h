/*
 * option: the one table from which command line, environment, file, help and validation
 * come.
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
 * The longest text: inih takes lines of 200 characters, and what is printed with its name
 * and a remark must be readable as a file. A longer path of a socket would not fit the
 * kernel's structure anyway.
 */
enum { OPTION_TEXT_MAX = 150 };

/* The value of a size that was given as a word. */
enum { OPTION_WORD = -1 };

enum option_kind {
    OPTION_NUMBER, /* int64_t, decimal */
    OPTION_SIZE,   /* int64_t, bytes; K, M, G for powers of 1024 */
    OPTION_MODE,   /* int64_t, permissions of a file, octal */
    OPTION_FLAG,   /* bool, one of two words */
    OPTION_CHOICE, /* int, the index of a word */
    OPTION_SET,    /* unsigned, a bit a word; words joined by commas */
    OPTION_TEXT,   /* char[CONFIG_TEXT_CAP]; 1 to OPTION_TEXT_MAX bytes */
    OPTION_LISTEN  /* the same, in the form of addresses to listen on */
};

struct option {
    const char *group; /* a word: the heading in help, pages and files */
    const char *name;
    enum option_kind kind;
    size_t offset; /* of the field in struct config */
    int64_t min, max;
    const char
        *words; /* "a|b|c" for flags, choices and sets; of a size: one that stands for
                            OPTION_WORD, or NULL */
    const char *value;   /* stands for a value in texts, such as "N" or "FILE" */
    const char *initial; /* NULL: what api_limits_default has */
    const char *example; /* a value, NULL: none is needed */
    const char *help;    /* sentences; the first one alone is the short form */
    bool live;           /* SIGHUP changes it; others only a restart does */
    bool common;         /* the short help shows it */
};

extern const struct option options[];
extern const size_t option_count;

/* The row of this name, NULL if there is none. */
const struct option *option_find(struct bytes name);

/*
 * Parses a value and stores it. ST_BAD_VALUE, with what is allowed and what was received in
 * why[CONFIG_ERROR_CAP] ("must be 1 to 31536000 (received \"0\")"); nothing is stored then.
 */
enum status option_set(const struct option *option, struct config *config,
                       struct bytes value, char why[CONFIG_ERROR_CAP]);

/* Prints the value as option_set() would take it. */
void option_print(const struct option *option, const struct config *config, FILE *to);

/* Prints the default likewise. */
void option_print_default(const struct option *option, FILE *to);

/* Has it the same value in both? */
bool
option_same(const struct option *option, const struct config *a, const struct config *b);

/* Gives it the value, and the origin, that it has in the other. */
void
option_copy(const struct option *option, struct config *to, const struct config *from);

/* True for a flag that is simply on or off: on the command line it needs no value. */
bool option_is_switch(const struct option *option);

/* 0 for a word for false, such as "no", 1 for one for true, -1 for any other. */
int option_switch_index(struct bytes value);

/* True for the first row of a group. */
bool option_begins_group(const struct option *option);

/* True for a number whose bounds are worth a word. */
bool option_has_range(const struct option *option);

/* Writes the name as the command line has it: with hyphens. */
void option_spell(const struct option *option, char out[CONFIG_TEXT_CAP]);

/* The number behind a NUMBER, SIZE or MODE option. */
int64_t option_number(const struct option *option, const struct config *config);

#endif
