/*
 * status: every outcome of a function of claimd, in one list.
 *
 * Functions that can fail return an `enum status`. They write their results through the
 * last parameters, only on ST_OK. A `why` behind them gets the reason of an error.
 *
 * api/problem.c alone maps a status to an HTTP code and a title. Add a status to
 * STATUS_LIST and its row to the table there.
 */
#ifndef CLAIMD_BASE_STATUS_H
#define CLAIMD_BASE_STATUS_H

/* X(name, text): the text is the default explanation for people. */
#define STATUS_LIST(X)                                                                   \
    X(OK, "done")                                                                        \
    /* Resources. */                                                                     \
    X(NO_MEMORY, "the server is out of memory")                                          \
    X(OVER_BUDGET, "the server has reached max_memory. Delete messages to make space")   \
    X(UNAVAILABLE, "the store is unavailable")                                           \
    X(UNCONFIRMED,                                                                       \
      "the outcome is unknown because the store did not confirm the change in time")     \
    X(FULL, "the disk is full. Delete messages to make space")                           \
    X(JOURNAL_LIMIT, "the journal has reached journal_max_bytes. Delete messages to "    \
                     "make space, or raise journal_max_bytes")                           \
    X(IO, "a file or socket operation failed")                                           \
    /* The store. */                                                                     \
    X(AGAIN, "a slice of the work is done. Call again for the rest")                     \
    X(WAIT, "there is nothing yet. Call again when the waiter is woken")                 \
    X(NOT_FOUND, "there is no object with this id")                                      \
    X(CHANGED, "another request changed it at the same time")                            \
    X(CLAIMED, "another claim holds the message")                                        \
    X(NOT_CLAIMED, "the claim does not hold this message")                               \
    X(OVER_CAPACITY, "the response does not fit into its buffer")                        \
    X(TOO_LARGE, "the request is larger than the queue or the server allows")            \
    X(TOO_LONG, "the body is longer than this request allows")                           \
    X(NEVER_READY, "the delay of a message is not shorter than its TTL")                 \
    X(PAUSED, "posts to the queue are paused")                                           \
    X(NOT_SEALED, "the queue accepts only encrypted messages")                           \
    X(SEALED, "the messages are encrypted and not yet decrypted")                        \
    X(NO_KEY, "a message must move to a queue that encrypts its messages, but the "      \
              "server has no key (encryption_keys)")                                     \
    X(DAMAGED, "the message is encrypted, but its stored body is damaged")               \
    X(BEYOND_LOG, "the request is larger than one write to the journal allows")          \
    X(KEY_REUSED, "the Idempotency-Key was sent before with another request. Use a new " \
                  "key for each request")                                                \
    X(KEY_RUNNING, "the first request with this Idempotency-Key is not done yet")        \
    X(KEY_ENDED, "the claim of this Idempotency-Key has ended. Use a new key")           \
    X(KEYS_FULL,                                                                         \
      "the project has as many idempotency keys as the server has free places "          \
      "(idempotency_keys). Without Idempotency-Key the request needs none")              \
    X(PROJECT_QUEUES,                                                                    \
      "the project has reached its maximum number of queues (project_max_queues)")       \
    X(PROJECT_MESSAGES, "the project has reached its maximum number of messages "        \
                        "(project_max_messages). Delete messages to make space")         \
    X(PROJECT_BYTES, "the messages of the project have reached their maximum size "      \
                     "(project_max_bytes). Delete messages to make space")               \
    X(PROJECT_REQUESTS, "the project has reached its maximum rate of requests "          \
                        "(project_requests_per_second)")                                 \
    X(PROJECT_CONNECTIONS, "the project has reached its maximum number of connections "  \
                           "(project_max_connections)")                                  \
    X(PROJECT_WAITERS, "the project has reached its maximum number of long-polling "     \
                       "requests (project_max_waiters)")                                 \
    X(TOO_MANY_SCHEDULES, "the project has reached its maximum number of schedules "     \
                          "(max_schedules). Try again when some are deleted")            \
    /* A request. */                                                                     \
    X(BAD_VALUE, "a value is out of range")                                              \
    X(BAD_BODY, "the body is not the document this request needs")                       \
    X(BAD_PARAMETER, "a query parameter is malformed")                                   \
    X(MISSING_PARAMETER, "a required query parameter is missing")                        \
    X(MISSING_CLIENT_ID, "the header Client-ID is required")                             \
    X(BAD_CLIENT_ID, "the header Client-ID must be a UUID")                              \
    X(MISSING_PROJECT, "the header X-Project-ID is required")                            \
    X(EMPTY_PROJECT, "the header X-Project-ID must not be empty")                        \
    X(BAD_PROJECT, "a project id must be at most 256 characters long")                   \
    X(BAD_QUEUE_NAME, "a queue name must be 1 to 64 characters from A-Z a-z 0-9 _ - . "  \
                      "and a project id at most 256 characters")                         \
    X(BAD_TOPIC_NAME, "a topic name must be 1 to 64 characters from A-Z a-z 0-9 _ - . "  \
                      "and a project id at most 256 characters")                         \
    X(NO_KNOWN_MEMBER, "the body has no member to change")                               \
    X(BAD_CONTENT_TYPE, "form data is not accepted. Send application/json")              \
    X(BAD_MEDIA_TYPE,                                                                    \
      "the Content-Type must be application/openstack-messaging-v2.0-json-patch")        \
    X(CONFLICT, "the request conflicts with the present state")                          \
    X(NO_PATH, "the path does not exist")                                                \
    X(BAD_METHOD, "the resource does not support this method")                           \
    X(NOT_ACCEPTABLE,                                                                    \
      "responses are application/json, but the header Accept excludes it")               \
    X(UNAUTHORIZED, "credentials are missing or wrong")                                  \
    X(FORBIDDEN, "the action is not allowed")                                            \
    X(INTERNAL, "claimd has a bug. Please report it")

enum status {
#define STATUS_ENUM(name, text) ST_##name,
    STATUS_LIST(STATUS_ENUM)
#undef STATUS_ENUM
        ST_COUNT
};

/* The name without the prefix, such as "NOT_FOUND". Never NULL. */
const char *status_name(enum status st);

/* One explanation for people, without a full stop at its end. Never NULL. */
const char *status_text(enum status st);

enum { ERRNO_TEXT_CAP = 256 };

/* Describes an errno in out[], and returns it. If the process lacks rights, the text
 * names its user and adds the advice. */
const char *errno_text(int error, const char *advice, char out[ERRNO_TEXT_CAP]);

#endif
