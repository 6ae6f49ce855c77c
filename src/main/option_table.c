#include "main/option.h"

#include <stddef.h>

#define YEAR (INT64_C(365) * 24 * 3600)

enum { LIVE = 1, COMMON = 2 }; /* flags of a row */

#define ROW(flags, kind, name, field, min, max, words, value, initial, example, help)    \
    {                                                                                    \
        GROUP, name, kind, offsetof(struct config, field), min, max, words, value,       \
            initial, example, help, ((flags)&LIVE) != 0, ((flags)&COMMON) != 0           \
    }
#define NUMBER(name, field, min, max, value, initial, help)                              \
    ROW(0, OPTION_NUMBER, name, field, min, max, NULL, value, initial, NULL, help)
#define SECONDS(name, field, min, max, initial, help)                                    \
    NUMBER(name, field, min, max, "SECONDS", initial, help)
#define SIZE(name, field, min, max, initial, help)                                       \
    ROW(0, OPTION_SIZE, name, field, min, max, NULL, "SIZE", initial, NULL, help)
#define WORDS(kind, name, field, words, initial, help)                                   \
    ROW(0, kind, name, field, 0, 0, words, words, initial, NULL, help)
#define FLAG(name, field, initial, help)                                                 \
    WORDS(OPTION_FLAG, name, field, "false|true", initial, help)
#define CHOICE(name, field, words, initial, help)                                        \
    WORDS(OPTION_CHOICE, name, field, words, initial, help)
#define TEXT(name, field, value, initial, example, help)                                 \
    ROW(0, OPTION_TEXT, name, field, 0, 0, NULL, value, initial, example, help)

/* SIGHUP changes these. */
#define LIVE_NUMBER(name, field, min, max, value, initial, help)                         \
    ROW(LIVE, OPTION_NUMBER, name, field, min, max, NULL, value, initial, NULL, help)
#define LIVE_SIZE(name, field, min, max, initial, help)                                  \
    ROW(LIVE, OPTION_SIZE, name, field, min, max, NULL, "SIZE", initial, NULL, help)
#define LIVE_TEXT(name, field, value, initial, example, help)                            \
    ROW(LIVE, OPTION_TEXT, name, field, 0, 0, NULL, value, initial, example, help)

/* api_limits_default has the default of a limit. */
#define CONTRACT NULL

/* clang-format off: a table is read by its columns. */
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
        "socket_group", socket_group, "GROUP", "none", NULL,
        "Group of the file of a Unix socket, by name or number. With none, the file gets "
        "the group of the claimd process."),
    ROW(COMMON, OPTION_NUMBER, "workers", workers, 0, 128, NULL, "N", "0", NULL,
        "Number of threads that serve requests. 0 starts one thread per core, at most "
        "16."),
    NUMBER(
        "shards", shards, 1, 1024, "N", "16",
        "Number of parts that divide the in-memory store. Each has its own lock. Must be "
        "a power of two."),
    ROW(COMMON, OPTION_SIZE, "max_memory", max_memory, 0, INT64_MAX, "half", "SIZE",
        "half", NULL,
        "Memory for messages and responses. Beyond three quarters of it, claimd responds "
        "to posts with 503. half means half of the memory of the machine or the control "
        "group. 0 sets no limit."),
    NUMBER(
        "max_connections", max_connections, 1, 1000000, "N", "10000",
        "Maximum number of open connections. claimd responds with 503 to further ones."),
    NUMBER("max_waiters", max_waiters, 0, 1000000, "N", "4000",
           "Maximum number of concurrent long-polling requests. Beyond it, a request "
           "returns immediately."),
    SIZE(
        "max_header_size", max_header_size, 1024, 1048576, "6K",
        "Maximum size of the request line and headers of a request. A larger value makes "
        "every request slower."),
    NUMBER(
        "max_headers", max_headers, 8, 1024, "N", "64",
        "Maximum number of headers and cookies of a request. Each adds 64 bytes to the "
        "memory of a connection."),
    SECONDS("idle_seconds", idle_seconds, 1, 86400, "60",
            "Time after which claimd closes an idle connection."),
    SECONDS("request_seconds", request_seconds, 1, 86400, "30",
            "Time limit for receiving a complete request and for sending its response."),
    LIVE_NUMBER("drain_seconds", drain_seconds, 0, 3600, "SECONDS", "8",
                "Time that requests in progress have to finish after SIGTERM."),
    NUMBER(
        "ready_fd", ready_fd, -1, 65535, "FD", "-1",
        "File descriptor to which claimd writes its address when it is ready. -1 writes "
        "nothing."),
#undef GROUP
#define GROUP "Store"
    ROW(COMMON, OPTION_TEXT, "store", store, 0, 0, NULL, "URL", "memory",
        "redis://redis1:6379,redis2:6379?replicas=1",
        "Where claimd keeps messages. memory keeps them in the process. A redis:// URL "
        "names a Redis Cluster, which several claimd may share."),
    TEXT("store_password_file", store_password_file, "FILE", "none", NULL,
         "File with the password of Redis. Other users must not be able to read it."),
    NUMBER(
        "store_threads", store_threads, 1, 256, "N", "32",
        "Number of threads for slow work with Redis, such as connecting and waiting for "
        "a failover."),
#undef GROUP
#define GROUP "Journal"
    ROW(COMMON, OPTION_TEXT, "journal", journal, 0, 0, NULL, "DIR", "none",
        "/var/lib/claimd",
        "Directory of the write-ahead log. With none, a restart loses all messages."),
    SIZE(
        "journal_max_bytes", journal_max_bytes, 0, INT64_MAX, "0",
        "Maximum size of all segments together, at least 32M. Beyond it, claimd responds "
        "to posts with 503. 0 allows all space on the disk."),
    FLAG("accept_clock", accept_clock, "false",
         "Start even if the system clock is more than 14 days ahead of the journal."),
#undef GROUP
#define GROUP "Log"
    ROW(LIVE | COMMON, OPTION_CHOICE, "log_level", log_level, 0, 0,
        "error|warn|info|debug", "error|warn|info|debug", "info", NULL,
        "Minimum level of the lines in the log. The log goes to standard error."),
    CHOICE("log_format", log_format, "text|json", "text",
           "Format of the log lines. text writes key=value pairs."),
    ROW(LIVE | COMMON, OPTION_FLAG, "access_log", access_log, 0, 0, "false|true",
        "false|true", "false", NULL, "Log a line for each request, at level info."),
    LIVE_NUMBER("access_log_sample", access_log_sample, 1, 1000000, "N", "1",
                "Log only one of N requests. claimd logs every response with a status of "
                "500 or more."),
#undef GROUP
#define GROUP "Quotas"
    LIVE_NUMBER(
        "project_max_queues", project_limits.queues, 0, INT64_MAX, "N", "0",
        "Maximum number of queues per project. Beyond any of these quotas, claimd "
        "responds with 429. 0 sets no limit."),
    LIVE_NUMBER("project_max_messages", project_limits.messages, 0, INT64_MAX, "N", "0",
                "Maximum number of messages per project, in all its queues. 0 sets no "
                "limit."),
    LIVE_SIZE("project_max_bytes", project_limits.bytes, 0, INT64_MAX, "0",
              "Maximum size of all message bodies per project. 0 sets no limit."),
    LIVE_NUMBER("project_max_connections", project_limits.connections, 0, 1000000, "N",
                "0", "Maximum number of open connections per project. 0 sets no limit."),
    LIVE_NUMBER(
        "project_max_waiters", project_limits.waiters, 0, 1000000, "N", "0",
        "Maximum number of concurrent long-polling requests per project. 0 sets no "
        "limit."),
    LIVE_NUMBER("project_requests_per_second", project_limits.requests_per_second, 0,
                10000000, "N", "0",
                "Maximum number of requests per second and project, with a burst of one "
                "second's worth. 0 sets no limit."),
#undef GROUP
#define GROUP "Metrics"
    NUMBER(
        "metrics_queues", metrics_queues, 0, 1000, "N", "100",
        "Number of queues that have their own series in /metrics. These are the oldest "
        "queues. claimd sums up the others."),
#undef GROUP
#define GROUP "Limits"
    NUMBER("max_queues_per_page", limits.max_queues_per_page, 1, 10000, "N", CONTRACT,
           "Maximum value of limit in a listing of queues."),
    NUMBER(
        "max_messages_per_page", limits.max_messages_per_page, 1, 10000, "N", CONTRACT,
        "Maximum value of limit in a listing of messages, and maximum number of ids in a "
        "request."),
    NUMBER("max_messages_per_claim_or_pop", limits.max_messages_per_claim_or_pop, 1,
           10000, "N", CONTRACT,
           "Maximum number of messages that a claim or a pop takes."),
    NUMBER("max_subscriptions_per_page", limits.max_subscriptions_per_page, 1, 10000, "N",
           CONTRACT, "Maximum value of limit in a listing of subscriptions."),
    SIZE("max_queue_metadata", limits.max_queue_metadata, 2, 67108864, CONTRACT,
         "Maximum size of a request that sets metadata."),
    SIZE("max_messages_post_size", limits.max_messages_post_size, 2, 67108864, CONTRACT,
         "Maximum size of a request that posts messages."),
#undef GROUP
#define GROUP "Times"
    ROW(COMMON, OPTION_NUMBER, "default_message_ttl", limits.default_message_ttl, 1, YEAR,
        NULL, "SECONDS", CONTRACT, NULL,
        "TTL of a message posted without one. claimd deletes a message when its "
        "TTL ends, even if no worker claimed it."),
    SECONDS("min_message_ttl", limits.min_message_ttl, 1, YEAR, CONTRACT,
            "Minimum TTL of a message. Lower it to test workers."),
    SECONDS("max_message_ttl", limits.max_message_ttl, 1, YEAR, CONTRACT,
            "Maximum TTL of a message."),
    SECONDS("default_message_delay", limits.default_message_delay, 0, YEAR, CONTRACT,
            "Delay of a message that is posted without one. A delayed message cannot be "
            "claimed."),
    SECONDS("max_message_delay", limits.max_message_delay, 0, YEAR, CONTRACT,
            "Maximum delay of a message."),
    ROW(COMMON, OPTION_NUMBER, "dead_letter_ttl", limits.dead_letter_ttl, 0, YEAR, NULL,
        "SECONDS", CONTRACT, NULL,
        "Minimum TTL in a dead-letter queue. The metadata "
        "_dead_letter_queue_messages_ttl of its first queue overrides it. "
        "max_message_ttl caps it. 0 keeps the TTL of the message."),
    SECONDS("default_claim_ttl", limits.default_claim_ttl, 1, YEAR, CONTRACT,
            "Lease of a claim that names no ttl."),
    SECONDS("min_claim_ttl", limits.min_claim_ttl, 1, YEAR, CONTRACT,
            "Minimum lease of a claim. Lower it to test workers."),
    SECONDS("max_claim_ttl", limits.max_claim_ttl, 1, YEAR, CONTRACT,
            "Maximum lease of a claim."),
    SECONDS(
        "default_claim_grace", limits.default_claim_grace, 0, YEAR, CONTRACT,
        "Grace of a claim that names none. A claimed message lives at least until the "
        "lease and the grace have passed."),
    SECONDS("min_claim_grace", limits.min_claim_grace, 0, YEAR, CONTRACT,
            "Minimum grace of a claim. Lower it to test workers."),
    SECONDS("max_claim_grace", limits.max_claim_grace, 0, YEAR, CONTRACT,
            "Maximum grace of a claim."),
    SECONDS("default_subscription_ttl", limits.default_subscription_ttl, 60, 100 * YEAR,
            CONTRACT, "TTL of a subscription that is made without one."),
    ROW(COMMON, OPTION_NUMBER, "max_wait", limits.max_wait, 0, 86400, NULL, "SECONDS",
        CONTRACT, NULL,
        "Maximum duration of long polling. Clients request it with Prefer: wait=N. 0 "
        "turns long polling off."),
#undef GROUP
#define GROUP "API"
    WORDS(
        OPTION_FLAG, "client_id_uuid_safe", limits.client_id_strict, "off|strict",
        CONTRACT,
        "Form of the header Client-ID. strict accepts UUIDs only. off accepts any text."),
    NUMBER("min_length_client_id", limits.min_length_client_id, 1, 1024, "N", CONTRACT,
           "Minimum length of a Client-ID, with client_id_uuid_safe = off."),
    NUMBER("max_length_client_id", limits.max_length_client_id, 1, 1024, "N", CONTRACT,
           "Maximum length of a Client-ID, with client_id_uuid_safe = off."),
    FLAG("message_delete_with_claim_id", limits.message_delete_with_claim_id, CONTRACT,
         "Require the parameter claim_ids in requests that delete several messages by "
         "id."),
    FLAG("enable_checksum", limits.enable_checksum, CONTRACT,
         "Give each message a checksum of its body."),
    ROW(0, OPTION_SET, "subscriber_types", limits.subscriber_types, 0, 0,
        SUBSCRIBER_TYPE_WORDS, "WORD[,...]", CONTRACT, "https,mailto",
        "Types of subscribers that a subscription may name: http, https and mailto."),
    FLAG("admin_mode", limits.admin_mode, CONTRACT,
         "Show statistics of the store in the response to GET /v2/health."),
    FLAG("enable_v1", limits.enable_v1, CONTRACT, "Serve version 1 of the API."),
    FLAG("enable_v1_1", limits.enable_v1_1, CONTRACT, "Serve version 1.1 of the API."),
    CHOICE(
        "profile", profile, PROFILE_WORDS, "zaqar",
        "Set of defaults for the limits. rackspace sets those that clients of Rackspace "
        "Cloud Queues expect."),
#undef GROUP
#define GROUP "TLS"
    ROW(LIVE | COMMON, OPTION_TEXT, "tls_certificate", tls_certificate, 0, 0, NULL,
        "FILE", "none", "/etc/claimd/chain.pem",
        "PEM file with the certificate and its chain. SIGHUP reads it again."),
    ROW(LIVE | COMMON, OPTION_TEXT, "tls_key", tls_key, 0, 0, NULL, "FILE", "none",
        "/etc/claimd/key.pem",
        "PEM file with the key of the certificate. Other users must not be able to "
        "read it. SIGHUP reads it again."),
    TEXT("tls_client_ca", tls_client_ca, "FILE", "none", NULL,
         "PEM file with the certificate authorities that sign certificates of clients."),
#undef GROUP
#define GROUP "Access"
    ROW(COMMON, OPTION_CHOICE, "auth", auth, 0, 0, AUTH_WORDS, AUTH_WORDS, "none", NULL,
        "How clients prove their identity. none allows every client everything. tokens "
        "checks tokens and certificates of clients. certificates checks only "
        "certificates. keystone asks a Keystone server."),
    ROW(LIVE | COMMON, OPTION_TEXT, "tokens", tokens, 0, 0, NULL, "FILE",
        "/etc/claimd/tokens", NULL,
        "File of tokens, which `claimd token` edits. SIGHUP reads it again."),
    LIVE_TEXT(
        "certificates", certificates, "FILE", "none", NULL,
        "File that maps certificates of clients to roles and projects. SIGHUP reads "
        "it again."),
    LIVE_TEXT("policy", policy, "FILE", "none", NULL,
              "File that gives rights to roles. With none, the rules of the manual hold. "
              "SIGHUP reads it again."),
    LIVE_TEXT("signing_keys", signing_keys, "FILE", "none", NULL,
              "File of keys for pre-signed URLs, one per line. The first key signs, all "
              "keys verify. With none, there are no pre-signed URLs. SIGHUP reads it "
              "again."),
    LIVE_TEXT(
        "encryption_keys", encryption_keys, "FILE", "none", NULL,
        "File of keys for encrypted queues, one per line. The first key encrypts, all "
        "keys decrypt. With none, there are no encrypted queues. SIGHUP reads it again."),
    FLAG("insecure_listen", insecure_listen, "false",
         "Allow auth = none on an address that other machines can reach."),
    TEXT("allowed_hosts", allowed_hosts, "NAME[,...]", "none", "claimd.test,queue",
         "Names that the header Host may contain on a loopback listener without "
         "authentication. IP addresses and localhost are always allowed."),
#undef GROUP
#define GROUP "Notifications"
    NUMBER("max_notifier_workers", max_notifier_workers, 1, 1000, "N", "10",
           "Maximum number of notifications that claimd sends at the same time. One host "
           "gets at most half of them."),
    NUMBER("notify_timeout_ms", notify_timeout_ms, 100, 600000, "MILLISECONDS", "10000",
           "Time limit for the response to a notification. Half of it is the limit for "
           "connecting."),
    TEXT("notify_allow", notify_allow, "ADDRESS[/BITS][,...]", "none", "10.0.0.0/8",
         "Private addresses that claimd may notify. It notifies public addresses without "
         "this."),
    TEXT("notify_ca", notify_ca, "FILE", "system", NULL,
         "PEM file with the certificate authorities of subscribers. system uses those of "
         "the system."),
    LIVE_TEXT("webhook_keys", webhook_keys, "FILE", "none", NULL,
              "File of keys that sign web hooks, one per line. All keys sign. With none, "
              "web hooks are not signed. SIGHUP reads it again."),
    FLAG("require_confirmation", require_confirmation, "false",
         "Notify a subscriber only after it has confirmed its subscription. Needs "
         "signing_keys."),
    TEXT("public_url", public_url, "URL", "none", "https://mq.example.org",
         "URL under which subscribers reach this server. Requests to confirm a "
         "subscription contain it."),
    SIZE("subscription_backlog", subscription_backlog, 0, INT64_MAX, "64M",
         "Maximum size of the messages of a queue that claimd has yet to deliver to "
         "subscribers. Beyond it, claimd drops the oldest. 0 sets no limit."),
    TEXT("smtp_server", smtp_server, "URL", "none", "smtps://mail.example.org:465",
         "Mail server for mailto: subscribers. With none, their notifications fail "
         "permanently."),
    TEXT("smtp_from", smtp_from, "MAILBOX", "none", "claimd@example.org",
         "Sender address of mail. Mail that cannot be delivered returns to it."),
    TEXT(
        "smtp_user", smtp_user, "NAME", "none", NULL,
        "User name for the mail server. claimd sends it over TLS only. With none, claimd "
        "does not log in."),
    TEXT("smtp_password_file", smtp_password_file, "FILE", "none", NULL,
         "File with the password of smtp_user."),
    TEXT(
        "external_confirmation_url", external_confirmation_url, "URL", "none", NULL,
        "Page that a mail asking for confirmation links to. With none, the mail contains "
        "the confirmation document."),
#undef GROUP
#define GROUP "Keystone"
    TEXT("keystone_url", keystone_url, "URL", "http://127.0.0.1:5000/v3", NULL,
         "URL of the Keystone server that validates tokens. It must end with /v3."),
    TEXT("keystone_token_file", keystone_token_file, "FILE", "/etc/claimd/keystone-token",
         NULL,
         "File with the service token that claimd sends to Keystone. claimd reads it for "
         "each request."),
    TEXT(
        "keystone_ca", keystone_ca, "FILE", "system", NULL,
        "PEM file with the certificate authorities of Keystone. system uses those of the "
        "system."),
    TEXT("keystone_roles", keystone_roles, "THEIRS=OURS[,...]",
         "admin=admin, member=producer, member=worker, reader=reader, service=operator",
         NULL,
         "Maps roles of Keystone to roles of claimd. A token has the rights of all its "
         "roles."),
    SECONDS("keystone_cache_seconds", keystone_cache_seconds, 1, 86400, "60",
            "Time that claimd caches a response of Keystone. A revoked token stays valid "
            "for at most this time."),
    NUMBER("keystone_cache_tokens", keystone_cache_tokens, 16, 1000000, "N", "4096",
           "Maximum number of valid tokens in the cache. Each takes half a kilobyte."),
    NUMBER("keystone_timeout_ms", keystone_timeout_ms, 100, 60000, "MILLISECONDS", "5000",
           "Time limit for a response of Keystone. Beyond it, claimd responds with 503."),
#undef GROUP
#define GROUP "Tests"
    ROW(COMMON, OPTION_FLAG, "ci", ci, 0, 0, "false|true", "false|true", "false", NULL,
        "Serve the test API. With it, tests move the clock and read the history. "
        "Allowed on loopback addresses only."),
    FLAG("ci_anywhere", ci_anywhere, "false",
         "Allow ci on any address, such as that of a container in a CI job."),
    FLAG("ci_short", ci_short, "false",
         "With ci, allow ttl and grace from 1 second, unless other options set the "
         "minimum."),
    TEXT("seed", seed, "FILE", "none", "tests/seed.jsonl",
         "With ci, a file with the initial state of the store, as lines of a dump "
         "(docs/api.md 23.4)."),
#undef GROUP
#define GROUP "Identity"
    FLAG("identity_stub", identity_stub, "false",
         "Serve Keystone logins for development at /identity. Allowed on loopback "
         "addresses only."),
    FLAG("identity_stub_anywhere", identity_stub_anywhere, "false",
         "Allow identity_stub on any address."),
    TEXT("identity_users", identity_users, "FILE", "any", NULL,
         "File of users that may log in, one name:password[:project] per line. any "
         "accepts every login."),
    TEXT("identity_region", identity_region, "NAME", "RegionOne", NULL,
         "Region of the endpoints in the catalog of the stub."),
#undef GROUP
};
/* clang-format on */

const size_t option_count = sizeof(options) / sizeof(options[0]);

_Static_assert(sizeof(options) / sizeof(options[0]) <= CONFIG_OPTIONS_MAX,
               "CONFIG_OPTIONS_MAX is too small");
