#include "main/admission.h"
#include "main/option.h"
#include "main/profile.h"

#include <stddef.h>

#define YEAR (INT64_C(365) * 24 * 3600)

#define ROW(live, kind, name, field, min, max, words, initial, help)                     \
    {                                                                                    \
        GROUP, name, kind, offsetof(struct config, field), min, max, words, initial,     \
            help, live                                                                   \
    }
#define NUMBER(name, field, min, max, initial, help)                                     \
    ROW(false, OPTION_NUMBER, name, field, min, max, NULL, initial, help)
#define SIZE(name, field, min, max, initial, help)                                       \
    ROW(false, OPTION_SIZE, name, field, min, max, NULL, initial, help)
#define MODE(name, field, max, initial, help)                                            \
    ROW(false, OPTION_MODE, name, field, 0, max, NULL, initial, help)
#define WORDS(kind, name, field, words, initial, help)                                   \
    ROW(false, kind, name, field, 0, 0, words, initial, help)
#define FLAG(name, field, initial, help)                                                 \
    WORDS(OPTION_FLAG, name, field, "false|true", initial, help)
#define CHOICE(name, field, words, initial, help)                                        \
    WORDS(OPTION_CHOICE, name, field, words, initial, help)
#define SET(name, field, words, initial, help)                                           \
    WORDS(OPTION_SET, name, field, words, initial, help)
#define TEXT(name, field, initial, help)                                                 \
    WORDS(OPTION_TEXT, name, field, NULL, initial, help)
#define LISTEN(name, field, initial, help)                                               \
    WORDS(OPTION_LISTEN, name, field, NULL, initial, help)

/* What SIGHUP changes. */
#define LIVE_NUMBER(name, field, min, max, initial, help)                                \
    ROW(true, OPTION_NUMBER, name, field, min, max, NULL, initial, help)
#define LIVE_SIZE(name, field, min, max, initial, help)                                  \
    ROW(true, OPTION_SIZE, name, field, min, max, NULL, initial, help)
#define LIVE_FLAG(name, field, initial, help)                                            \
    ROW(true, OPTION_FLAG, name, field, 0, 0, "false|true", initial, help)
#define LIVE_CHOICE(name, field, words, initial, help)                                   \
    ROW(true, OPTION_CHOICE, name, field, 0, 0, words, initial, help)
#define LIVE_TEXT(name, field, initial, help)                                            \
    ROW(true, OPTION_TEXT, name, field, 0, 0, NULL, initial, help)

/* The default of a limit is said by api_limits_default. */
#define CONTRACT NULL

/* clang-format off: a table is read by its columns. */
const struct option options[] = {
#define GROUP "Server"
    LISTEN("listen", listen, "127.0.0.1:8888",
           "up to 8 of ADDRESS:PORT, [IPv6]:PORT, unix:PATH; in front: tls: for TLS, "
           "metrics: for health and metrics only; port 0: a free one"),
    MODE("socket_mode", socket_mode, 0777, "0660",
         "permissions of the Unix socket's file, octal; who may write to it may connect"),
    TEXT("socket_group", socket_group, "none",
         "group of the Unix socket's file, by name or number; none: that of claimd"),
    NUMBER("workers", workers, 0, 128, "0",
           "threads that serve requests; 0: one a core, at most 16"),
    NUMBER("shards", shards, 1, 1024, "16",
           "parts of the store with a lock of their own; a power of two"),
    ROW(false, OPTION_SIZE, "max_memory", max_memory, 0, INT64_MAX, "half", "half",
        "budget for messages, bodies and answers; posts are answered 503 when three "
        "quarters are used; half: of what the machine or the control group has; 0: none"),
    NUMBER("max_connections", max_connections, 1, 1000000, "10000",
           "connections at a time; more are answered 503"),
    NUMBER("max_waiters", max_waiters, 0, 1000000, "4000",
           "requests that wait for a message at a time; more are answered at once"),
    SIZE("max_header_size", max_header_size, 1024, 1048576, "6K",
         "request line and headers; more costs every request time"),
    NUMBER("max_headers", max_headers, 8, 1024, "64",
           "headers and cookies of a request; each costs a connection 64 bytes"),
    NUMBER("idle_seconds", idle_seconds, 1, 86400, "60",
           "a connection on which nothing happens is closed after this"),
    NUMBER("request_seconds", request_seconds, 1, 86400, "30",
           "a request must be whole, and its answer be taken, within this"),
    LIVE_NUMBER("drain_seconds", drain_seconds, 0, 3600, "8",
                "on SIGTERM requests in flight have this long to finish"),
    NUMBER("ready_fd", ready_fd, -1, 65535, "-1",
           "descriptor that gets the line with the address when ready; -1: none"),
#undef GROUP
#define GROUP "Store"
    TEXT("store", store, "memory",
         "memory, or redis://HOST:PORT,...?replicas=N: a Redis Cluster, which several "
         "servers may share (docs/scale-out.md)"),
    TEXT("store_password_file", store_password_file, "none",
         "file with the password of Redis, which others cannot read"),
    NUMBER(
        "store_threads", store_threads, 1, 256, "32",
        "threads for what takes its time with Redis: connecting, waiting out a failover"),
#undef GROUP
#define GROUP "Journal"
    TEXT("journal", journal, "none",
         "directory of the journal, with which nothing is lost; none: a restart begins "
         "empty"),
    SIZE("journal_max_bytes", journal_max_bytes, 0, INT64_MAX, "0",
         "bytes of all its segments, at least 32M; beyond it posts are answered 503; 0: "
         "the disk's room"),
    FLAG("accept_clock", accept_clock, "false",
         "start although the clock is more than 14 days ahead of the journal"),
#undef GROUP
#define GROUP "Log, on standard error"
    LIVE_CHOICE("log_level", log_level, "error|warn|info|debug", "info",
                "the least important lines to write"),
    CHOICE("log_format", log_format, "text|json", "text", "key=value or JSON"),
    LIVE_FLAG("access_log", access_log, "false",
              "a line for each request, at level info"),
    LIVE_NUMBER(
        "access_log_sample", access_log_sample, 1, 1000000, "1",
        "only one request in so many has its line; what failed (500 and above) always"),
#undef GROUP
#define GROUP "Limits of each project; 0: none"
    LIVE_NUMBER("project_max_queues", project_limits.queues, 0, INT64_MAX, "0",
                "queues; more are answered 429, as is all that follows"),
    LIVE_NUMBER("project_max_messages", project_limits.messages, 0, INT64_MAX, "0",
                "messages in all its queues"),
    LIVE_SIZE("project_max_bytes", project_limits.bytes, 0, INT64_MAX, "0",
              "bytes of their bodies"),
    LIVE_NUMBER("project_max_connections", project_limits.connections, 0, 1000000, "0",
                "connections at a time"),
    LIVE_NUMBER("project_max_waiters", project_limits.waiters, 0, 1000000, "0",
                "requests that wait for a message at a time"),
    LIVE_NUMBER("project_requests_per_second", project_limits.requests_per_second, 0,
                10000000, "0", "requests, with as many at once after a second of rest"),
#undef GROUP
#define GROUP "Metrics"
    NUMBER("metrics_queues", metrics_queues, 0, 1000, "100",
           "queues that /metrics shows one by one: the first that were made"),
#undef GROUP
#define GROUP "Pages"
    NUMBER("max_queues_per_page", limits.max_queues_per_page, 1, 10000, CONTRACT,
           "largest limit of a listing of queues"),
    NUMBER("max_messages_per_page", limits.max_messages_per_page, 1, 10000, CONTRACT,
           "largest limit of a listing of messages, most ids in one request"),
    NUMBER("max_messages_per_claim_or_pop", limits.max_messages_per_claim_or_pop, 1,
           10000, CONTRACT, "largest limit of a claim, largest pop"),
    NUMBER("max_subscriptions_per_page", limits.max_subscriptions_per_page, 1, 10000,
           CONTRACT, "largest limit of a listing of subscriptions"),
#undef GROUP
#define GROUP "Sizes"
    SIZE("max_queue_metadata", limits.max_queue_metadata, 2, 67108864, CONTRACT,
         "bytes of a request that sets metadata"),
    SIZE("max_messages_post_size", limits.max_messages_post_size, 2, 67108864, CONTRACT,
         "bytes of a request that posts messages"),
#undef GROUP
#define GROUP "Times, in seconds"
    NUMBER("default_message_ttl", limits.default_message_ttl, 1, YEAR, CONTRACT,
           "life of a message whose producer says nothing"),
    NUMBER("min_message_ttl", limits.min_message_ttl, 1, YEAR, CONTRACT,
           "shortest life of a message; lower it to test workers"),
    NUMBER("max_message_ttl", limits.max_message_ttl, 1, YEAR, CONTRACT,
           "longest life of a message"),
    NUMBER("default_message_delay", limits.default_message_delay, 0, YEAR, CONTRACT,
           "how long new messages are hidden"),
    NUMBER("max_message_delay", limits.max_message_delay, 0, YEAR, CONTRACT,
           "longest delay"),
    NUMBER(
        "dead_letter_ttl", limits.dead_letter_ttl, 0, YEAR, CONTRACT,
        "a dead letter lives at least this long, unless the queue that it comes from "
        "sets _dead_letter_queue_messages_ttl; max_message_ttl caps it; 0: it keeps its "
        "TTL"),
    NUMBER("default_claim_ttl", limits.default_claim_ttl, 1, YEAR, CONTRACT,
           "life of a claim whose worker says nothing"),
    NUMBER("min_claim_ttl", limits.min_claim_ttl, 1, YEAR, CONTRACT,
           "shortest life of a claim; lower it to test workers"),
    NUMBER("max_claim_ttl", limits.max_claim_ttl, 1, YEAR, CONTRACT,
           "longest life of a claim"),
    NUMBER("default_claim_grace", limits.default_claim_grace, 0, YEAR, CONTRACT,
           "how much longer than its claim a message lives"),
    NUMBER("min_claim_grace", limits.min_claim_grace, 0, YEAR, CONTRACT,
           "shortest grace; lower it to test workers"),
    NUMBER("max_claim_grace", limits.max_claim_grace, 0, YEAR, CONTRACT, "longest grace"),
    NUMBER("default_subscription_ttl", limits.default_subscription_ttl, 60, 100 * YEAR,
           CONTRACT, "life of a subscription for which nothing is said"),
    NUMBER("max_wait", limits.max_wait, 0, 86400, CONTRACT,
           "how long a claim may wait for a message (Prefer: wait); 0: not at all"),
#undef GROUP
#define GROUP "API"
    WORDS(OPTION_FLAG, "client_id_uuid_safe", limits.client_id_strict, "off|strict",
          CONTRACT, "strict: a Client-ID must be a UUID; off: any text"),
    NUMBER("min_length_client_id", limits.min_length_client_id, 1, 1024, CONTRACT,
           "characters of a Client-ID that need not be a UUID"),
    NUMBER("max_length_client_id", limits.max_length_client_id, 1, 1024, CONTRACT,
           "likewise"),
    FLAG("message_delete_with_claim_id", limits.message_delete_with_claim_id, CONTRACT,
         "require claim_ids when several messages are deleted by ids"),
    FLAG("enable_checksum", limits.enable_checksum, CONTRACT,
         "messages carry a checksum of their bodies"),
    SET("subscriber_types", limits.subscriber_types, SUBSCRIBER_TYPE_WORDS, CONTRACT,
        "whom a subscription may name: http, https and mailto, joined by commas"),
    FLAG("admin_mode", limits.admin_mode, CONTRACT, "health shows figures"),
    FLAG("enable_v1", limits.enable_v1, CONTRACT, "serve API v1"),
    FLAG("enable_v1_1", limits.enable_v1_1, CONTRACT, "serve API v1.1"),
    CHOICE("profile", profile, PROFILE_WORDS, "zaqar",
           "rackspace: limits as the clients of Cloud Queues expect them"),
#undef GROUP
#define GROUP "TLS"
    LIVE_TEXT(
        "tls_certificate", tls_certificate, "none",
        "file of the certificate and those it is signed with, PEM; read again on SIGHUP"),
    LIVE_TEXT("tls_key", tls_key, "none",
              "file of its key, PEM, which others cannot read; read again on SIGHUP"),
    TEXT("tls_client_ca", tls_client_ca, "none",
         "file of authorities, PEM: clients may show a certificate of theirs"),
#undef GROUP
#define GROUP "Access"
    CHOICE("auth", auth, AUTH_WORDS, "none",
           "none: whoever reaches the address may do everything; tokens: see tokens and "
           "certificates; certificates: without tokens; keystone: see keystone_url"),
    LIVE_TEXT("tokens", tokens, "/etc/claimd/tokens",
              "file of tokens, which `claimd token` edits; read again on SIGHUP"),
    LIVE_TEXT(
        "certificates", certificates, "none",
        "file that says whom a client's certificate stands for; read again on SIGHUP"),
    LIVE_TEXT("policy", policy, "none",
              "file that says which roles may do what; none: as the manual has it"),
    LIVE_TEXT(
        "signing_keys", signing_keys, "none",
        "file of keys for pre-signed URLs, a line each: the first signs, all verify; "
        "read again on SIGHUP; none: there are no such URLs"),
    LIVE_TEXT("encryption_keys", encryption_keys, "none",
              "file of keys for queues whose messages are encrypted, a line each: the "
              "first encrypts, all decrypt; read again on SIGHUP; none: there are no "
              "such queues"),
    FLAG("insecure_listen", insecure_listen, "false",
         "allow auth none on an address that others can reach"),
    TEXT("allowed_hosts", allowed_hosts, "none",
         "names, joined by commas, that a loopback listener without authentication "
         "accepts in "
         "the header Host, besides IP addresses and localhost"),
#undef GROUP
#define GROUP "Notifications of subscribers"
    NUMBER("max_notifier_workers", max_notifier_workers, 1, 1000, "10",
           "notifications that are sent at a time; to one host half of them"),
    NUMBER("notify_timeout_ms", notify_timeout_ms, 100, 600000, "10000",
           "what is not answered within this has failed; half of it to connect"),
    TEXT("notify_allow", notify_allow, "none",
         "addresses that may be told although they are not public: ADDRESS or "
         "ADDRESS/BITS, separated by commas"),
    TEXT("notify_ca", notify_ca, "system",
         "file of certificates that those of subscribers must come from; system: the "
         "system's"),
    LIVE_TEXT("webhook_keys", webhook_keys, "none",
              "file of keys that sign web hooks, a line each: all sign; read again on "
              "SIGHUP; none: they are not signed"),
    FLAG("require_confirmation", require_confirmation, "false",
         "a subscriber is told nothing before it has confirmed; needs signing_keys"),
    TEXT("public_url", public_url, "none",
         "where subscribers reach this server, such as https://mq.example.org; in what "
         "asks them to confirm"),
    SIZE("subscription_backlog", subscription_backlog, 0, INT64_MAX, "64M",
         "bytes of messages of a queue that subscribers have still to get; what is more "
         "falls out; 0: any number"),
    TEXT("smtp_server", smtp_server, "none",
         "who takes mail for subscribers: smtp://HOST:PORT or smtps://HOST:PORT; none: "
         "mailto is given up"),
    TEXT("smtp_from", smtp_from, "none",
         "address that mail is from, and that hears of what cannot be delivered"),
    TEXT("smtp_user", smtp_user, "none",
         "who claimd is to the server of mail, told over TLS only; none: nobody"),
    TEXT("smtp_password_file", smtp_password_file, "none",
         "file with the password of smtp_user"),
    TEXT("external_confirmation_url", external_confirmation_url, "none",
         "page that mail asking to confirm leads to; none: such mail has the document"),
#undef GROUP
#define GROUP "Keystone, with auth keystone"
    TEXT("keystone_url", keystone_url, "http://127.0.0.1:5000/v3",
         "where Keystone is asked who has a token; http or https, ends with /v3"),
    TEXT("keystone_token_file", keystone_token_file, "/etc/claimd/keystone-token",
         "file with the service token that claimd shows; read for each question"),
    TEXT("keystone_ca", keystone_ca, "system",
         "file of certificates that Keystone's must come from; system: the system's"),
    TEXT("keystone_roles", keystone_roles,
         "admin=admin, member=producer, member=worker, reader=reader, service=operator",
         "what roles there mean here; what any role of a token may do, the token may"),
    NUMBER("keystone_cache_seconds", keystone_cache_seconds, 1, 86400, "60",
           "how long an answer is believed; a token that is revoked lives on so long"),
    NUMBER("keystone_cache_tokens", keystone_cache_tokens, 16, 1000000, "4096",
           "good tokens that are remembered; each costs half a kilobyte"),
    NUMBER("keystone_timeout_ms", keystone_timeout_ms, 100, 60000, "5000",
           "without an answer within this, requests with the token are answered 503"),
#undef GROUP
#define GROUP "Test suites"
    FLAG("ci", ci, "false",
         "serve tests: they move the clock and see what happened (docs/ci.md); on a "
         "loopback address only"),
    FLAG("ci_anywhere", ci_anywhere, "false",
         "with ci: allow any address, such as that of a container in a CI job"),
    FLAG(
        "ci_short", ci_short, "false",
        "with ci: ttl and grace may be as short as 1 second, where nothing else is said"),
    TEXT("seed", seed, "none",
         "with ci: a file with what the store has at the start (docs/api.md 23.4)"),
#undef GROUP
#define GROUP "Identity stub, for development and CI"
    FLAG("identity_stub", identity_stub, "false",
         "answer Keystone logins at /identity; on a loopback address only"),
    FLAG("identity_stub_anywhere", identity_stub_anywhere, "false",
         "allow the stub on any address"),
    TEXT("identity_users", identity_users, "any",
         "who may log in: a file of lines name:password[:project], or any for anybody"),
    TEXT("identity_region", identity_region, "RegionOne",
         "region of the endpoints in the stub's catalog"),
#undef GROUP
};
/* clang-format on */

const size_t option_count = sizeof(options) / sizeof(options[0]);

_Static_assert(sizeof(options) / sizeof(options[0]) <= CONFIG_OPTIONS_MAX,
               "CONFIG_OPTIONS_MAX is too small");
