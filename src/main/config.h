/*
 * config: the values of all options.
 *
 * The sources are, in the order of increasing precedence: defaults, the profile, the
 * file, the environment, the command line. The option table (option.h) describes each
 * option.
 *
 *     config_load.c     reads all sources, also again after SIGHUP
 *     config_file.c     reads the INI file
 *     config_check.c    finds options that contradict each other, have no effect, or name
 *                       bad files
 */
#ifndef MAIN_CONFIG_H
#define MAIN_CONFIG_H

#include "claimd/api/api.h"
#include "claimd/base/status.h"
#include "claimd/http/listen.h"

#include <stdio.h>

#define CONFIG_TEXT_CAP  256
#define CONFIG_ERROR_CAP 512

/*
 * Errors of a configuration. Code that reads or checks options reports an error here and
 * goes on, so that one start reports all errors. Each line names an option, a variable,
 * or a file and line.
 */
enum { CONFIG_ERROR_LINE = 1024 };

struct config_errors {
    FILE *to; /* borrowed; NULL: print nothing */
    size_t count;
    char last[CONFIG_ERROR_LINE]; /* without "claimd: "; empty: none */
    char first[CONFIG_ERROR_LINE];
};

/* Prints "claimd: " and the text as one line. Cuts a text that is too long. Control
 * characters become question marks. */
void __attribute__((format(printf, 2, 3)))
config_error(struct config_errors *c, const char *format, ...);

struct option;

/* The words of the option `profile`, in the order of the enum. */
#define PROFILE_WORDS "zaqar|rackspace"

enum profile { PROFILE_ZAQAR, PROFILE_RACKSPACE };

/* Words of the option `auth`, in the order of the enum. */
#define AUTH_WORDS "none|tokens|certificates|keystone"

enum auth_kind { AUTH_BY_NONE, AUTH_BY_TOKENS, AUTH_BY_CERTIFICATES, AUTH_BY_KEYSTONE };

enum config_source {
    CONFIG_DEFAULT,
    CONFIG_JOURNAL, /* a default with a journal, */
    CONFIG_REDIS,   /* or with a store on Redis (config_durable) */
    CONFIG_PROFILE,
    CONFIG_FILE,
    CONFIG_ENVIRONMENT,
    CONFIG_COMMAND_LINE
};

/* The source of a value. */
struct config_origin {
    enum config_source source;
    int line;     /* of the file; 0: another source */
    bool refused; /* the value of that source is invalid, so an older one is in force */
};

/* The action that the command line requests. */
enum config_action {
    ACTION_SERVE,
    ACTION_HELP,
    ACTION_VERSION,
    ACTION_PRINT_CONFIG,
    ACTION_CHECK_CONFIG
};

enum { CONFIG_OPTIONS_MAX = 128 };

struct config {
    struct api_limits limits;
    char listen[CONFIG_TEXT_CAP];
    int64_t socket_mode;
    char socket_group[CONFIG_TEXT_CAP]; /* a name, a number, or "none" */
    int64_t workers;                    /* 0: one per core, at most 16 */
    int64_t shards;
    struct api_project_limits project_limits;
    int64_t backlog_memory; /* bytes; 0: no limit; OPTION_WORD: a quarter of max_memory */
    int64_t max_memory;     /* bytes; 0: no budget; OPTION_WORD: half of the memory */
    int64_t max_connections;
    int64_t max_waiters;
    int64_t max_header_size; /* bytes */
    int64_t max_headers;
    int64_t idle_seconds, request_seconds, drain_seconds;
    int log_level;  /* enum log_level */
    int log_format; /* enum log_format */
    bool access_log;
    int64_t access_log_sample;
    int64_t metrics_queues;
    int profile;                  /* enum profile */
    int auth;                     /* enum auth_kind */
    char tokens[CONFIG_TEXT_CAP]; /* a path */
    char policy[CONFIG_TEXT_CAP]; /* a path, or "none" */
    char tls_client_ca[CONFIG_TEXT_CAP],
        certificates[CONFIG_TEXT_CAP]; /* paths, or "none" */
    char tls_certificate[CONFIG_TEXT_CAP],
        tls_key[CONFIG_TEXT_CAP]; /* paths, or "none" */
    char signing_keys[CONFIG_TEXT_CAP],
        encryption_keys[CONFIG_TEXT_CAP]; /* paths, or "none" */
    int64_t max_notifier_workers, notify_timeout_ms;
    char notify_allow[CONFIG_TEXT_CAP]; /* guard_read() */
    char notify_ca[CONFIG_TEXT_CAP];    /* a path, or "system" */
    char webhook_keys[CONFIG_TEXT_CAP]; /* a path, or "none" */
    bool require_confirmation;
    char public_url[CONFIG_TEXT_CAP]; /* or "none" */
    int64_t subscription_backlog;     /* bytes; 0: no limit */
    int64_t idempotency_keys;         /* limit, in memory */
    char smtp_server[CONFIG_TEXT_CAP], smtp_from[CONFIG_TEXT_CAP],
        smtp_user[CONFIG_TEXT_CAP]; /* or "none" */
    char smtp_password_file[CONFIG_TEXT_CAP],
        external_confirmation_url[CONFIG_TEXT_CAP]; /* likewise */
    char keystone_url[CONFIG_TEXT_CAP];
    char keystone_token_file[CONFIG_TEXT_CAP]; /* a path */
    char keystone_ca[CONFIG_TEXT_CAP];         /* a path, or "system" */
    char keystone_roles[CONFIG_TEXT_CAP];
    int64_t keystone_cache_seconds, keystone_cache_tokens, keystone_timeout_ms;
    bool insecure_listen;
    char trusted_proxies[CONFIG_TEXT_CAP]; /* proxies_read() */
    char allowed_hosts[CONFIG_TEXT_CAP];   /* names, or "none" */
    bool ci, ci_anywhere, ci_short;
    char seed[CONFIG_TEXT_CAP]; /* a path, or "none" */
    bool identity_stub, identity_stub_anywhere;
    char identity_users[CONFIG_TEXT_CAP]; /* a path, or "any" */
    char identity_region[CONFIG_TEXT_CAP];
    int64_t ready_fd;                          /* -1: none */
    char store[CONFIG_TEXT_CAP];               /* "memory", or a URL */
    char store_password_file[CONFIG_TEXT_CAP]; /* a path, or "none" */
    int64_t store_threads;
    char journal[CONFIG_TEXT_CAP]; /* a directory, or "none" */
    int64_t journal_max_bytes;     /* 0: the space of the disk */
    bool accept_clock;
    int64_t journal_downtime;   /* seconds; -1: as the clocks say */
    char file[CONFIG_TEXT_CAP]; /* the file that was read; empty: none */
    /* Arguments and environment of the process, for reload_read(); borrowed. */
    int argc;
    char *const *argv, *const *envp;
    const char *help_topic; /* ACTION_HELP: the word behind --help; NULL: none */
    /* Variables of a supervisor (sd_notify(3)), which are no options; NULL: not set. */
    const char *notify_socket, *watchdog_usec, *watchdog_pid;
    const char *journal_stream; /* "device:inode" of the log that journald reads */
    const char *listen_pid, *listen_fds,
        *listen_names;   /* likewise: main/listen_policy.c */
    const char *boot_id; /* likewise, of the machine; NULL: read from /proc */
    struct config_origin origins[CONFIG_OPTIONS_MAX]; /* by index in the options table */
};

/* True if an option that may be "none" has a value. */
static inline bool
config_has(const char *value)
{
    return strcmp(value, "none") != 0;
}

/* dead_letter_ttl, capped by max_message_ttl. */
static inline int64_t
config_dead_letter_ttl(const struct config *config)
{
    const struct api_limits *limits = &config->limits;

    return limits->dead_letter_ttl < limits->max_message_ttl ? limits->dead_letter_ttl
                                                             : limits->max_message_ttl;
}

/* ------------------------------------------------------------------ loading */

/*
 * Fills *out from the command line, the environment and the file that they name, and sets
 * *action. ST_BAD_VALUE after messages about all errors. If the command line requests
 * help or version before its first error, the action is that and nothing else is read.
 *
 * config_check_files() reads the files that options name.
 */
enum status
config_load(int argc, char *const *argv, char *const *envp, struct config *out,
            enum config_action *action, struct config_errors *errors);

/*
 * Applies an INI file to *config and reports errors with path and line:
 *
 *     # comment
 *     max_claim_ttl = 7200
 *     [claimd]              ; the only section; keys may also stand before it
 *     listen = [::]:8888
 *
 * False if the file cannot be read completely. It must be a regular file of at most 1 MB,
 * so that no pipe or device blocks the start or a reload.
 */
bool
config_file_apply(struct config *config, const char *path, struct config_errors *errors);

/* Prints all values in the form of a file for config_load(). */
void config_print(const struct config *config, FILE *to);

/* The settings of the profile rackspace. The last row has no option. */
struct config_setting {
    const char *option, *value;
};
extern const struct config_setting config_rackspace[];

/* The defaults with a journal or a store on Redis, which keep messages after a restart.
 * With ci, the plain defaults apply. */
extern const struct config_setting config_durable[];

/* ------------------------------------------------------------------ reloading */

/* The present values of the sources, compared with those in force. */
struct reload {
    struct config next; /* the values to put in force */
    size_t changed;     /* number of options with a new value in `next` */
    size_t kept_count;
    const struct option *kept[CONFIG_OPTIONS_MAX]; /* changed, but need a restart */
};

/*
 * Reads the same command line, environment and file again. Options that need a restart
 * keep their values. ST_BAD_VALUE after messages about all errors; then *r is not
 * defined.
 */
enum status
reload_read(struct reload *r, const struct config *now, struct config_errors *errors);

/* Copies the options that SIGHUP may change into *now, and writes no byte of the
 * others. */
void reload_apply(const struct reload *r, struct config *now);

/* ------------------------------------------------------------------ checking */

/* The source of a value as a text: "/etc/claimd.conf:3", "command line". */
struct config_place {
    char text[CONFIG_TEXT_CAP];
};
struct config_place
config_where(const struct config *config, const struct option *option);

/*
 * Reports options that contradict each other. ST_BAD_VALUE if *errors has any error.
 * `complete`: the file was read. Otherwise the order of limits is not checked, because
 * the file may set some.
 */
enum status
config_check(const struct config *config, bool complete, struct config_errors *errors);

/*
 * For --check-config: reads each file that an option names and that the start does not
 * open with this configuration, and reports files that cannot be read. A later change may
 * need such a file, or claimd opens it while serving. The file of tokens is not read: the
 * container image names it even with `auth = none`.
 */
void config_check_files(const struct config *config, const struct listen_list *list,
                        struct mem *mem, struct config_errors *errors);

/*
 * Calls `report` for each option that differs from its default but has no effect, such as
 * tls_certificate without a TLS listener.
 */
typedef void
config_report_fn(void *ctx, const char *option, const char *where, const char *why);
void config_check_effect(const struct config *config, const struct listen_list *list,
                         config_report_fn *report, void *ctx);

/* ------------------------------------------------------------------ listeners */

/* True if a supervisor passes sockets to this process (LISTEN_FDS). */
bool activation_wanted(const struct config *config);

/*
 * Lists the sockets, checks their kinds and which clients each admits, and removes the
 * variables from the environment. ST_BAD_VALUE after error messages.
 */
enum status activation_read(const struct config *config, struct listen_list *out,
                            struct config_errors *errors);

/*
 * Finds the number of the group that socket_group names; -1 for "none". ST_BAD_VALUE
 * after an error message if the group does not exist or cannot be looked up.
 */
enum status socket_group_find(const struct config *config, int64_t *out,
                              struct config_errors *errors);

/* True if only this machine can reach the address. */
bool listen_is_loopback(const char *address);

/*
 * Reports each address that other machines can reach without authentication, unless an
 * option allows it. `where` is the source of the addresses ("/etc/claimd.conf:3").
 */
void listen_policy_check(const struct config *config, const struct listen_list *list,
                         const char *where, struct config_errors *errors);

#endif
