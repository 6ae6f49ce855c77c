/*
 * option_table: the table of all options, a row each, with kind, limits, default and
 * help. Declared in option.h, where struct option explains the columns. The command
 * line, the environment, the file, help, the manual pages and docs/options.md are made
 * from these rows. docs/contributing.md says how to add one. Read option.c next, which
 * reads and prints values.
 */
#include "main/option.h"

#include <stddef.h>

#define YEAR (INT64_C(365) * 24 * 3600)

/* Flags of a row: SIGHUP changes the option (LIVE); the short help shows it (COMMON). */
enum { LIVE = 1, COMMON = 2 };

#define ROW(flags, kind, name, field, min, max, words, value, initial, example, help)    \
    {                                                                                    \
        GROUP, name, kind, offsetof(struct config, field), min, max, words, value,       \
            initial, example, help, ((flags)&LIVE) != 0, ((flags)&COMMON) != 0           \
    }
#define NUMBER(flags, field, min, max, value, initial, help)                             \
    ROW(flags, OPTION_NUMBER, #field, field, min, max, NULL, value, initial, NULL, help)
#define SIZE(flags, field, min, max, initial, help)                                      \
    ROW(flags, OPTION_SIZE, #field, field, min, max, NULL, "SIZE", initial, NULL, help)
#define FLAG(flags, field, initial, help)                                                \
    CHOICE_OF(flags, OPTION_FLAG, #field, field, "false|true", initial, help)
#define CHOICE(flags, field, words, initial, help)                                       \
    CHOICE_OF(flags, OPTION_CHOICE, #field, field, words, initial, help)
#define CHOICE_OF(flags, kind, name, field, words, initial, help)                        \
    ROW(flags, kind, name, field, 0, 0, words, words, initial, NULL, help)
#define TEXT(flags, field, value, initial, example, help)                                \
    ROW(flags, OPTION_TEXT, #field, field, 0, 0, NULL, value, initial, example, help)
#define QUOTA(kind, name, field, max, value, help)                                       \
    ROW(LIVE, kind, name, project_limits.field, 0, max, NULL, value, "0", NULL, help)

/* api_limits_default has the default of a limit. */
#define CONTRACT NULL
#define LIMIT(flags, field, min, max, value, help)                                       \
    ROW(flags, OPTION_NUMBER, #field, limits.field, min, max, NULL, value, CONTRACT,     \
        NULL, help)
#define LIMIT_FLAG(field, help)                                                          \
    CHOICE_OF(0, OPTION_FLAG, #field, limits.field, "false|true", CONTRACT, help)

const struct option options[] = {
#define GROUP "Server"
    ROW(COMMON, OPTION_LISTEN, "listen", listen, 0, 0, NULL, "ADDRESS[,...]",
        "127.0.0.1:8888", "127.0.0.1:8888,tls:0.0.0.0:8443,metrics:127.0.0.1:9188",
        "Addresses to serve, at most 8. Each is HOST:PORT, [IPv6]:PORT or unix:PATH. "
        "Port 0 takes a free port. Put tls: in front to serve TLS. Put metrics: in front "
        "to serve only health and metrics."),
    ROW(0, OPTION_MODE, "socket_mode", socket_mode, 0, 0777, NULL, "MODE", "0660", NULL,
        "Octal permissions of the file of a Unix socket. Processes that may write to the "
        "file may connect."),
    TEXT(
        0, socket_group, "GROUP", "none", NULL,
        "Group of the file of a Unix socket, by name or number. With none, the file gets "
        "the group of the claimd process."),
    NUMBER(0, workers, 0, 128, "N", "0",
           "Number of threads that serve requests. 0 starts one thread per core, at most "
           "16."),
    NUMBER(
        0, shards, 1, 1024, "N", "16",
        "Number of parts that divide the in-memory store. Each has its own lock. Must be "
        "a power of two."),
    ROW(COMMON, OPTION_SIZE, "max_memory", max_memory, 0, INT64_MAX, "half", "SIZE",
        "half", NULL,
        "Memory for messages and responses. Beyond three quarters of it, claimd responds "
        "to posts with 503. half means half of the memory of the machine or the control "
        "group. 0 sets no limit. The minimum is 1M."),
    ROW(0, OPTION_SIZE, "backlog_memory", backlog_memory, 0, INT64_MAX, "quarter", "SIZE",
        "quarter", NULL,
        "Memory in use from which on claimd keeps waiting messages on the disk only. "
        "Needs journal. quarter means a quarter of max_memory. 0 keeps all messages in "
        "memory. The minimum is 1M."),
    NUMBER(
        0, max_connections, 1, 1000000, "N", "10000",
        "Maximum number of open connections. claimd responds with 503 to further ones."),
    NUMBER(0, max_waiters, 0, 1000000, "N", "4000",
           "Maximum number of concurrent long-polling requests. Beyond it, a request "
           "returns immediately."),
    SIZE(0, max_header_size, 1024, 1048576, "16K",
         "Maximum size of the request line and headers of a request. Connections of "
         "browsers and proxies, and those that begin with a large request, have memory "
         "for it. Others have memory for 4 KB."),
    NUMBER(0, max_headers, 8, 1024, "N", "256",
           "Maximum number of headers and cookies of a request. It applies to the same "
           "connections as max_header_size. Others have memory for 36."),
    NUMBER(0, idle_seconds, 1, 86400, "SECONDS", "75",
           "Time after which claimd closes an idle connection. A proxy must close it "
           "earlier. nginx and many load balancers do so after 60 seconds."),
    NUMBER(0, request_seconds, 1, 86400, "SECONDS", "30",
           "Time limit for receiving a complete request and for sending its response."),
    NUMBER(LIVE, drain_seconds, 0, 3600, "SECONDS", "8",
           "Time that requests in progress have to finish after SIGTERM."),
    NUMBER(
        0, ready_fd, -1, 65535, "FD", "-1",
        "File descriptor to which claimd writes its address when it is ready. -1 writes "
        "nothing."),
#undef GROUP
#define GROUP "Store"
    TEXT(COMMON, store, "URL", "memory", "redis://redis1:6379,redis2:6379?replicas=1",
         "Where claimd keeps messages. memory keeps them in the process. A redis:// URL "
         "names a Redis Cluster, which several claimd may share."),
    TEXT(0, store_password_file, "FILE", "none", NULL,
         "File with the password of Redis. Other users must not be able to read it."),
    NUMBER(
        0, store_threads, 1, 256, "N", "32",
        "Number of threads for slow work with Redis, such as connecting and waiting for "
        "a failover."),
#undef GROUP
#define GROUP "Journal"
    TEXT(COMMON, journal, "DIR", "none", "/var/lib/claimd",
         "Directory of the write-ahead log. With none, a restart loses all messages."),
    SIZE(
        0, journal_max_bytes, 0, INT64_MAX, "0",
        "Maximum size of all segments together, at least 32M. Beyond it, claimd responds "
        "to posts with 503. 0 allows all space on the disk."),
    FLAG(0, accept_clock, "false",
         "Start even if claimd was down for more than 14 days, as the system clock says. "
         "Messages expire then as at any other start."),
    NUMBER(
        0, journal_downtime, -1, 315360000, "SECONDS", "-1",
        "Time for which claimd was down before this start. Set it for one start if the "
        "system clock was wrong. -1 takes it from the clocks."),
#undef GROUP
#define GROUP "Log"
    CHOICE(LIVE, log_level, "error|warn|info|debug", "info",
           "Minimum level of the lines in the log. The log goes to standard error."),
    CHOICE(0, log_format, "text|json", "text",
           "Format of the log lines. text writes key=value pairs."),
    FLAG(LIVE | COMMON, access_log, "false",
         "Log a line for each request, at level info."),
    NUMBER(
        LIVE, access_log_sample, 1, 1000000, "N", "1",
        "Log only one of N requests. claimd logs every response with a status of 500 or "
        "more."),
#undef GROUP
#define GROUP "Quotas"
    QUOTA(OPTION_NUMBER, "project_max_queues", queues, INT64_MAX, "N",
          "Maximum number of queues per project. Beyond any of these quotas, claimd "
          "responds with 429. 0 sets no limit."),
    QUOTA(OPTION_NUMBER, "project_max_messages", messages, INT64_MAX, "N",
          "Maximum number of messages per project, in all its queues. 0 sets no limit."),
    QUOTA(
        OPTION_SIZE, "project_max_bytes", bytes, INT64_MAX, "SIZE",
        "Maximum size of all message bodies per project, at least 1K. 0 sets no limit."),
    QUOTA(OPTION_NUMBER, "project_max_connections", connections, 1000000, "N",
          "Maximum number of open connections per project. 0 sets no limit."),
    QUOTA(OPTION_NUMBER, "project_max_waiters", waiters, 1000000, "N",
          "Maximum number of concurrent long-polling requests per project. 0 sets no "
          "limit."),
    QUOTA(
        OPTION_NUMBER, "project_requests_per_second", requests_per_second, 10000000, "N",
        "Maximum number of requests per second and project, with a burst of one second's "
        "worth. 0 sets no limit."),
#undef GROUP
#define GROUP "Metrics"
    NUMBER(
        0, metrics_queues, 0, 1000, "N", "100",
        "Number of queues that have their own series in /metrics. These are the oldest "
        "queues. claimd sums up the others."),
#undef GROUP
#define GROUP "Limits"
    LIMIT(0, max_schedules, 0, 1000000, "N",
          "Maximum number of schedules of a project. 0 refuses new ones."),
    LIMIT(0, max_queues_per_page, 1, 10000, "N",
          "Maximum value of limit in a listing of queues."),
    LIMIT(
        0, max_messages_per_page, 1, 10000, "N",
        "Maximum value of limit in a listing of messages, and maximum number of ids in a "
        "request."),
    LIMIT(0, max_messages_per_claim_or_pop, 1, 10000, "N",
          "Maximum number of messages that a claim or a pop takes."),
    LIMIT(0, max_subscriptions_per_page, 1, 10000, "N",
          "Maximum value of limit in a listing of subscriptions."),
    ROW(0, OPTION_SIZE, "max_queue_metadata", limits.max_queue_metadata, 256, 67108864,
        NULL, "SIZE", CONTRACT, NULL, "Maximum size of a request that sets metadata."),
    ROW(0, OPTION_SIZE, "max_messages_post_size", limits.max_messages_post_size, 256,
        67108864, NULL, "SIZE", CONTRACT, NULL,
        "Maximum size of a request that posts messages."),
#undef GROUP
#define GROUP "Times"
    LIMIT(
        COMMON, default_message_ttl, 1, YEAR, "SECONDS",
        "TTL of a message posted without one. claimd deletes a message when its TTL "
        "ends, even if no worker claimed it. With a journal or Redis, the default is 14 "
        "days, but at most max_message_ttl. With ci, it is an hour."),
    LIMIT(0, min_message_ttl, 1, YEAR, "SECONDS",
          "Minimum TTL of a message. Lower it to test workers."),
    LIMIT(0, max_message_ttl, 1, YEAR, "SECONDS", "Maximum TTL of a message."),
    LIMIT(0, default_message_delay, 0, YEAR, "SECONDS",
          "Delay of a message that is posted without one. A delayed message cannot be "
          "claimed."),
    LIMIT(0, max_message_delay, 0, YEAR, "SECONDS",
          "Maximum delay of a message. The delay must be shorter than the TTL of the "
          "message. Both count from the post."),
    LIMIT(0, max_release_delay, 0, YEAR, "SECONDS",
          "Maximum delay of a message that a worker releases."),
    LIMIT(COMMON, dead_letter_ttl, 0, YEAR, "SECONDS",
          "Minimum TTL in a dead-letter queue. The metadata "
          "_dead_letter_queue_messages_ttl of its first queue overrides it. "
          "max_message_ttl caps it. 0 keeps the TTL of the message."),
    LIMIT(0, default_claim_ttl, 1, YEAR, "SECONDS",
          "Lease of a claim if neither it nor its queue names one."),
    LIMIT(0, min_claim_ttl, 1, YEAR, "SECONDS",
          "Minimum lease of a claim. Lower it to test workers."),
    LIMIT(0, max_claim_ttl, 1, YEAR, "SECONDS", "Maximum lease of a claim."),
    LIMIT(
        0, default_claim_grace, 0, YEAR, "SECONDS",
        "Grace of a claim if neither it nor its queue names one. A claimed message lives "
        "at least until the lease and the grace have passed."),
    LIMIT(0, min_claim_grace, 0, YEAR, "SECONDS",
          "Minimum grace of a claim. Lower it to test workers."),
    LIMIT(0, max_claim_grace, 0, YEAR, "SECONDS", "Maximum grace of a claim."),
    LIMIT(0, default_subscription_ttl, 60, 100 * YEAR, "SECONDS",
          "TTL of a subscription that is made without one."),
    LIMIT(COMMON, max_wait, 0, 86400, "SECONDS",
          "Maximum duration of long polling. Clients request it with Prefer: wait=N. 0 "
          "turns long polling off."),
    LIMIT(0, idempotency_window, 0, 86400, "SECONDS",
          "How long claimd keeps an Idempotency-Key with its result. 0 refuses requests "
          "with a key."),
    NUMBER(
        0, idempotency_keys, 1, 1000000000, "N", "1500000",
        "Maximum number of keys that claimd keeps in memory, about 125 bytes each. A "
        "project "
        "gets a new key if it has fewer keys than places are free, so one project gets "
        "at "
        "most half of them. Otherwise claimd answers with 503. A store on Redis has no "
        "such limit."),
#undef GROUP
#define GROUP "API"
    LIMIT_FLAG(
        require_headers,
        "Refuse requests without Client-ID or X-Project-ID, as Zaqar does. "
        "Otherwise Client-ID is optional. A request without X-Project-ID belongs "
        "to the project of its token, or with auth = none to the project default."),
    ROW(0, OPTION_FLAG, "client_id_uuid_safe", limits.client_id_strict, 0, 0,
        "off|strict", "off|strict", CONTRACT, NULL,
        "Form of the header Client-ID. strict accepts UUIDs only. off accepts any text."),
    LIMIT(0, min_length_client_id, 1, 1024, "N",
          "Minimum length of a Client-ID, with client_id_uuid_safe = off."),
    LIMIT(0, max_length_client_id, 1, 1024, "N",
          "Maximum length of a Client-ID, with client_id_uuid_safe = off."),
    LIMIT_FLAG(
        message_delete_with_claim_id,
        "Require the parameter claim_ids in requests that delete several messages by "
        "id."),
    LIMIT_FLAG(enable_checksum, "Give each message a checksum of its body."),
    ROW(0, OPTION_SET, "subscriber_types", limits.subscriber_types, 0, 0,
        SUBSCRIBER_TYPE_WORDS, "WORD[,...]", CONTRACT, "https,mailto",
        "Types of subscribers that a subscription may name: http, https and mailto."),
    LIMIT_FLAG(admin_mode,
               "Show statistics of the store in the response to GET /v2/health."),
    CHOICE_OF(
        COMMON, OPTION_FLAG, "ui", limits.ui, "false|true", CONTRACT,
        "Serve a page for operators at /claimd/ui/. On an address that other machines "
        "can reach, it requires auth."),
    LIMIT_FLAG(enable_v1, "Serve version 1 of the API."),
    LIMIT_FLAG(enable_v1_1, "Serve version 1.1 of the API."),
    CHOICE(
        0, profile, PROFILE_WORDS, "zaqar",
        "Set of defaults for the limits. rackspace sets those that clients of Rackspace "
        "Cloud Queues expect."),
#undef GROUP
#define GROUP "TLS"
    TEXT(LIVE | COMMON, tls_certificate, "FILE", "none", "/etc/claimd/chain.pem",
         "PEM file with the certificate and its chain. SIGHUP reads it again."),
    TEXT(LIVE | COMMON, tls_key, "FILE", "none", "/etc/claimd/key.pem",
         "PEM file with the key of the certificate. Other users must not be able to read "
         "it. SIGHUP reads it again."),
    TEXT(0, tls_client_ca, "FILE", "none", NULL,
         "PEM file with the certificate authorities that sign certificates of clients."),
#undef GROUP
#define GROUP "Access"
    CHOICE(
        COMMON, auth, AUTH_WORDS, "none",
        "How clients prove their identity. none allows every client everything. tokens "
        "checks tokens and certificates of clients. certificates checks only "
        "certificates. keystone asks a Keystone server."),
    TEXT(LIVE | COMMON, tokens, "FILE", "/etc/claimd/tokens", NULL,
         "File of tokens, which `claimd token` edits. SIGHUP reads it again."),
    TEXT(LIVE, certificates, "FILE", "none", NULL,
         "File that maps certificates of clients to roles and projects. SIGHUP reads it "
         "again."),
    TEXT(LIVE, policy, "FILE", "none", NULL,
         "File that gives rights to roles. With none, the rules of the manual hold. "
         "SIGHUP reads it again."),
    TEXT(LIVE, signing_keys, "FILE", "none", NULL,
         "File of keys for pre-signed URLs, one per line. The first key signs, all keys "
         "verify. With none, there are no pre-signed URLs. SIGHUP reads it again."),
    TEXT(
        LIVE, encryption_keys, "FILE", "none", NULL,
        "File of keys for encrypted queues, one per line. The first key encrypts, all "
        "keys decrypt. With none, there are no encrypted queues. SIGHUP reads it again."),
    FLAG(0, insecure_listen, "false",
         "Allow auth = none on an address that other machines can reach."),
    TEXT(0, allowed_hosts, "NAME[,...]", "none", "claimd.test,queue",
         "Names that the header Host may contain on a loopback listener without "
         "authentication. IP addresses and localhost are always allowed."),
    TEXT(0, trusted_proxies, "ADDRESS[/BITS][,...]", "127.0.0.0/8,::1,unix",
         "127.0.0.1,10.0.0.0/24",
         "Addresses of reverse proxies. claimd uses their X-Forwarded-For for the client "
         "in the log and in claims, and their X-Forwarded-Prefix and X-Forwarded-Proto "
         "for links. unix "
         "means "
         "all clients of Unix sockets. With none, these headers have no effect."),
#undef GROUP
#define GROUP "Notifications"
    NUMBER(0, max_notifier_workers, 1, 1000, "N", "10",
           "Maximum number of notifications that claimd sends at the same time. One host "
           "gets at most half of them."),
    NUMBER(0, notify_timeout_ms, 100, 600000, "MILLISECONDS", "10000",
           "Time limit for the response to a notification. Half of it is the limit for "
           "connecting."),
    TEXT(0, notify_allow, "ADDRESS[/BITS][,...]", "none", "10.0.0.0/8",
         "Private addresses that claimd may notify. It notifies public addresses without "
         "this."),
    TEXT(0, notify_ca, "FILE", "system", NULL,
         "PEM file with the certificate authorities of subscribers. system uses those of "
         "the system."),
    TEXT(LIVE, webhook_keys, "FILE", "none", NULL,
         "File of keys that sign web hooks, one per line. All keys sign. With none, web "
         "hooks are not signed. SIGHUP reads it again."),
    FLAG(0, require_confirmation, "false",
         "Notify a subscriber only after it has confirmed its subscription. Needs "
         "signing_keys."),
    TEXT(0, public_url, "URL", "none", "https://mq.example.org",
         "URL under which subscribers reach this server. Requests to confirm a "
         "subscription contain it."),
    SIZE(
        0, subscription_backlog, 0, INT64_MAX, "64M",
        "Maximum size of the messages of a queue that claimd has yet to deliver to "
        "subscribers, at least 1K. Beyond it, claimd drops the oldest. 0 sets no limit."),
    TEXT(0, smtp_server, "URL", "none", "smtps://mail.example.org:465",
         "Mail server for mailto: subscribers. With none, their notifications fail "
         "permanently."),
    TEXT(0, smtp_from, "MAILBOX", "none", "claimd@example.org",
         "Sender address of mail. Mail that cannot be delivered returns to it."),
    TEXT(
        0, smtp_user, "NAME", "none", NULL,
        "User name for the mail server. claimd sends it over TLS only. With none, claimd "
        "does not log in."),
    TEXT(0, smtp_password_file, "FILE", "none", NULL,
         "File with the password of smtp_user."),
    TEXT(
        0, external_confirmation_url, "URL", "none", NULL,
        "Page that a mail asking for confirmation links to. With none, the mail contains "
        "the confirmation document."),
#undef GROUP
#define GROUP "Keystone"
    TEXT(0, keystone_url, "URL", "http://127.0.0.1:5000/v3", NULL,
         "URL of the Keystone server that validates tokens. It must end with /v3."),
    TEXT(0, keystone_token_file, "FILE", "/etc/claimd/keystone-token", NULL,
         "File with the service token that claimd sends to Keystone. claimd reads it for "
         "each request."),
    TEXT(
        0, keystone_ca, "FILE", "system", NULL,
        "PEM file with the certificate authorities of Keystone. system uses those of the "
        "system."),
    TEXT(0, keystone_roles, "THEIRS=OURS[,...]",
         "admin=admin, member=producer, member=worker, reader=reader, service=operator",
         NULL,
         "Maps roles of Keystone to roles of claimd. A token has the rights of all its "
         "roles."),
    NUMBER(
        0, keystone_cache_seconds, 1, 86400, "SECONDS", "60",
        "Time that claimd caches a response of Keystone. A revoked token stays valid for "
        "at most this time."),
    NUMBER(0, keystone_cache_tokens, 16, 1000000, "N", "4096",
           "Maximum number of valid tokens in the cache. Each takes half a kilobyte."),
    NUMBER(0, keystone_timeout_ms, 100, 60000, "MILLISECONDS", "5000",
           "Time limit for a response of Keystone. Beyond it, claimd responds with 503."),
#undef GROUP
#define GROUP "Tests"
    FLAG(
        COMMON, ci, "false",
        "Serve the test API. With it, tests move the clock and read the history. Allowed "
        "on loopback addresses only."),
    FLAG(0, ci_anywhere, "false",
         "Allow ci on any address, such as that of a container in a CI job."),
    FLAG(0, ci_short, "false",
         "With ci, allow ttl and grace from 1 second, unless other options set the "
         "minimum."),
    TEXT(0, seed, "FILE", "none", "tests/seed.jsonl",
         "With ci, a file with the initial state of the store, as lines of a dump "
         "(docs/api.md 23.4)."),
#undef GROUP
#define GROUP "Identity"
    FLAG(0, identity_stub, "false",
         "Serve Keystone logins for development at /identity. Allowed on loopback "
         "addresses only."),
    FLAG(0, identity_stub_anywhere, "false", "Allow identity_stub on any address."),
    TEXT(0, identity_users, "FILE", "any", NULL,
         "File of users that may log in, one name:password[:project] per line. any "
         "accepts every login."),
    TEXT(0, identity_region, "NAME", "RegionOne", NULL,
         "Region of the endpoints in the catalog of the stub."),
#undef GROUP
};

const size_t option_count = sizeof(options) / sizeof(options[0]);

_Static_assert(sizeof(options) / sizeof(options[0]) <= CONFIG_OPTIONS_MAX,
               "CONFIG_OPTIONS_MAX is too small");
