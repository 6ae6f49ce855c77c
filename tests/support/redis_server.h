/*
 * redis_server: a redis-server for a test, on a Unix socket in a folder of its own, which
 * ends with the test's process whatever becomes of that.
 */
#ifndef TESTS_SUPPORT_REDIS_SERVER_H
#define TESTS_SUPPORT_REDIS_SERVER_H

#include <sys/types.h>

struct redis_server {
    pid_t pid;
    char folder[64];
    char url[128]; /* for redis_open() */
};

/* Starts one, empty, and waits until it responds; a test where that fails ends. */
void redis_server_start(struct redis_server *s);

/* Says a command, a line with its end, to which it responds so. */
void
redis_server_say(const struct redis_server *s, const char *command, const char *expected);

/* Empties it. */
void redis_server_flush(const struct redis_server *s);

void redis_server_stop(struct redis_server *s);

#endif
