/*
 * fake_redis: a node whose responses a test gives, on a free port of the loopback, in its
 * own threads. It notes the commands of all connections.
 */
#ifndef TESTS_SUPPORT_FAKE_REDIS_H
#define TESTS_SUPPORT_FAKE_REDIS_H

#include "claimd/base/bytes.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_LINES = 64, FAKE_LINE_CAP = 256, FAKE_CONNECTIONS = 64 };

/*
 * The next command must begin so. The response as it goes over the wire, NULL: it hangs
 * up. In front of a response to FCALL the number of the request is sent, unless it is an
 * error, or begins with '!', which is left out. "@" stands for the bytes given to
 * fake_redis_respond().
 */
struct fake_response {
    const char *command; /* words with blanks between: "FCALL" */
    const char *response;
};

struct fake_connection {
    struct fake_redis *redis;
    pthread_t thread;
    int fd;
};

struct fake_redis {
    int listener;
    uint16_t port;
    pthread_t thread; /* that accepts connections, which are its own */
    struct fake_connection connections[FAKE_CONNECTIONS];
    int connection_count;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t moved;
    bool held;                          /* it does not respond */
    struct bytes bytes;                 /* for "@" */
    bool hangs_up;                      /* the node ends the connection behind them */
    const struct fake_response *script; /* the next one; its end has no command */
    char requests[FAKE_LINES][FAKE_LINE_CAP];
    int request_count;
};

/* Starts it. It responds to a command that is not in the script with an error that
 * says so. */
void fake_redis_start(struct fake_redis *f);

/* From now on it follows this script, with no command received. */
void fake_redis_play(struct fake_redis *f, const struct fake_response *script);

/* The same with the commands and responses that follow, which are constants. */
#define PLAY(f, ...)                                                                     \
    do {                                                                                 \
        static const struct fake_response script[] = {__VA_ARGS__, {NULL, NULL}};        \
                                                                                         \
        fake_redis_play(f, script);                                                      \
    } while (0)

/* From now on "@" stands for these bytes; the node may end the connection behind them. */
void fake_redis_respond(struct fake_redis *f, struct bytes bytes, bool hangs_up);

/* Ends the test unless it has received all commands of the script. */
void fake_redis_done(struct fake_redis *f);

/* Waits until it has received so many commands since then. */
void fake_redis_await(struct fake_redis *f, int count);

/* From now on it does not respond, or responds to the commands that came meanwhile. */
void fake_redis_hold(struct fake_redis *f, bool held);

/* Ends all connections that it has. */
void fake_redis_hang_up(struct fake_redis *f);

void fake_redis_stop(struct fake_redis *f);

#endif
