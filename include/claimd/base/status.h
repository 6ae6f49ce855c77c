/*
 * status: every outcome a function of claimd can have, in one list.
 *
 * Functions that can fail return an `enum status`; their results go through the last
 * parameters and are written only on ST_OK. What a status means on the wire (code, title)
 * is decided in api/problem.c and nowhere else.
 */
#ifndef CLAIMD_BASE_STATUS_H
#define CLAIMD_BASE_STATUS_H

/* X(name, text): the text is the default explanation for people. */
#define STATUS_LIST(X)                                                                   \
    X(OK, "done")                                                                        \
    /* The world: resources. */                                                          \
    X(NO_MEMORY, "the server is out of memory; try again later")                         \
    X(OVER_BUDGET, "the memory budget is used up; try again when messages are deleted")  \
    X(UNAVAILABLE, "the store cannot do this now; try again later")                      \
    X(UNCONFIRMED, "it may have been done or not: the store did not confirm it in time") \
    X(FULL, "the disk is full; try again when messages are deleted")                     \
    X(JOURNAL_LIMIT, "the journal has reached journal_max_bytes; try again when "        \
                     "messages are deleted, or raise journal_max_bytes")                 \
    X(IO, "a file or socket operation failed")                                           \
    /* The store. */                                                                     \
    X(AGAIN, "a slice of the work is done; ask again for the rest")                      \
    X(WAIT, "there is nothing yet; ask again when there may be")                         \
    X(ADMIT, "who is asking is being found out; ask again when it is known")             \
    X(NOT_FOUND, "there is nothing with this id")                                        \
    X(CHANGED, "it was changed by somebody else meanwhile")                              \
    X(CLAIMED, "the message is held by another claim")                                   \
    X(NOT_CLAIMED, "the message is not held by this claim")                              \
    X(NO_ROOM, "the answer is larger than the room for it")                              \
    X(TOO_LARGE, "the request is larger than the queue or the server allows")            \
    X(TOO_LONG, "the body is longer than is taken here")                                 \
    X(NOT_SEALED, "the queue takes encrypted messages only")                             \
    X(SEALED, "the messages are encrypted, and nobody has looked whether they open")     \
    X(NO_KEY, "the message is encrypted, and the server does not have the key now")      \
    X(DAMAGED, "the message is encrypted, and was changed where it was kept")            \
    X(BEYOND_LOG, "the request is more than the journal takes at once")                  \
    X(PROJECT_QUEUES, "the project has as many queues as it may (project_max_queues)")   \
    X(PROJECT_MESSAGES,                                                                  \
      "the project has as many messages as it may (project_max_messages); try again"     \
      " when some are deleted")                                                          \
    X(PROJECT_BYTES,                                                                     \
      "the messages of the project are as large as they may be (project_max_bytes); try" \
      " again when some are deleted")                                                    \
    X(PROJECT_REQUESTS,                                                                  \
      "the project has asked as often as it may (project_requests_per_second); try"      \
      " again in a moment")                                                              \
    X(PROJECT_CONNECTIONS,                                                               \
      "the project has as many connections as it may (project_max_connections)")         \
    X(PROJECT_WAITERS,                                                                   \
      "as many requests of the project wait for messages as may (project_max_waiters)")  \
    /* A request. */                                                                     \
    X(BAD_VALUE, "a value is out of range")                                              \
    X(BAD_BODY, "the body is not the document this request needs")                       \
    X(BAD_PARAMETER, "a query parameter cannot be understood")                           \
    X(MISSING_PARAMETER, "a query parameter is missing")                                 \
    X(MISSING_CLIENT_ID, "the header Client-ID is required")                             \
    X(BAD_CLIENT_ID, "the header Client-ID must be a UUID")                              \
    X(MISSING_PROJECT, "the header X-Project-ID is required")                            \
    X(EMPTY_PROJECT, "the header X-Project-ID must not be empty")                        \
    X(BAD_PROJECT, "a project id has at most 256 characters")                            \
    X(BAD_QUEUE_NAME,                                                                    \
      "a queue name has 1 to 64 characters out of A-Z a-z 0-9 _ - . and a project id at" \
      " most 256")                                                                       \
    X(BAD_TOPIC_NAME,                                                                    \
      "a topic name has 1 to 64 characters out of A-Z a-z 0-9 _ - . and a project id at" \
      " most 256")                                                                       \
    X(NO_KNOWN_MEMBER, "the body names nothing that can be changed")                     \
    X(BAD_CONTENT_TYPE, "form data is not accepted; send application/json")              \
    X(BAD_MEDIA_TYPE,                                                                    \
      "the body must be application/openstack-messaging-v2.0-json-patch")                \
    X(CONFLICT, "the request conflicts with the present state")                          \
    X(NO_PATH, "there is no such path")                                                  \
    X(BAD_METHOD, "the resource does not know this method")                              \
    X(NOT_ACCEPTABLE, "answers are application/json")                                    \
    X(UNAUTHORIZED, "credentials are missing or wrong")                                  \
    X(FORBIDDEN, "the action is not allowed")                                            \
    X(INTERNAL, "claimd made a mistake; please report it")

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

#endif
