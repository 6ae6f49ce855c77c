/*
 * config: everything an operator can set, as plain values.
 *
 * Filled from the options table (option.h) in this order, later ones winning: defaults,
 * the profile, the file, the environment, the command line.
 */
#ifndef MAIN_CONFIG_H
#define MAIN_CONFIG_H

#include "claimd/api/api.h"
#include "claimd/base/status.h"
#include "main/config_errors.h"

#include <stdio.h>

#define CONFIG_TEXT_CAP  256
#define CONFIG_ERROR_CAP 512

enum config_source {
    CONFIG_DEFAULT,
    CONFIG_PROFILE,
    CONFIG_FILE,
    CONFIG_ENVIRONMENT,
    CONFIG_COMMAND_LINE
};

/* Where a value was set. */
struct config_origin {
    enum config_source source;
    int line;     /* of the file, else 0 */
    bool refused; /* what was set there last was not taken: what stands is older */
};

/* What the command line asks for. */
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
    int64_t workers;                    /* 0: one a core, at most 16 */
    int64_t shards;
    struct api_project_limits project_limits;
    int64_t max_memory; /* bytes; 0: no budget; OPTION_WORD: half of what there is */
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
    int64_t subscription_backlog;     /* bytes; 0: any number */
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
    char allowed_hosts[CONFIG_TEXT_CAP]; /* names, or "none" */
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
    int64_t journal_max_bytes;     /* 0: what the disk has room for */
    bool accept_clock;
    char file[CONFIG_TEXT_CAP]; /* the file that was read, empty if none */
    /* How it was called, for config_reload(); borrowed. */
    int argc;
    char *const *argv, *const *envp;
    const char *help_topic; /* of ACTION_HELP: the word behind --help, NULL: none */
    /* No options: what a supervisor puts into the environment (sd_notify(3)); or NULL. */
    const char *notify_socket, *watchdog_usec, *watchdog_pid;
    const char *journal_stream; /* "device:inode" of journald's, if it reads our log */
    const char *listen_pid, *listen_fds, *listen_names; /* likewise: main/activation.h */
    struct config_origin origins[CONFIG_OPTIONS_MAX]; /* by index in the options table */
};

/* dead_letter_ttl, which max_message_ttl caps as it does the lives of all messages. */
static inline int64_t
config_dead_letter_ttl(const struct config *config)
{
    const struct api_limits *limits = &config->limits;

    return limits->dead_letter_ttl < limits->max_message_ttl ? limits->dead_letter_ttl
                                                             : limits->max_message_ttl;
}

#endif
