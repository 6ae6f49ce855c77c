/*
 * server_fixture: a whole server in this process, on a Unix socket or TCP, so that its
 * memory can be made fail and its clock be moved.
 */
#ifndef TESTS_SUPPORT_SERVER_FIXTURE_H
#define TESTS_SUPPORT_SERVER_FIXTURE_H

#include "claimd/base/executor.h"
#include "claimd/http/server.h"
#include "support/check_main.h"
#include "support/fake_keystone.h"

#include <pthread.h>

/* Both time limits of its connections. */
enum { SERVER_FIXTURE_SECONDS = 60 };

struct server_fixture {
    char folder[32];
    char listen[64];
    struct listen_list list;
    struct mem *mem;
    struct clock clock;
    struct log log;
    struct testapi *testapi; /* NULL: there is none */
    struct store *store;
    struct executor *executor; /* NULL: there is none */
    struct fake_keystone fake; /* with keystone_threads, as what follows */
    struct executor *verifier;
    struct keystone *keystone;
    struct access *access;
    struct api *api;
    struct server *server;
    pthread_t acceptor;
    bool accepting;
};

/* Serves with so many workers. */
void server_fixture_open(struct server_fixture *f, size_t workers);

/* The same with more to choose; 0 is what server_fixture_open() has. */
struct server_fixture_options {
    size_t workers;
    size_t max_connections, max_waiters;
    bool tcp;             /* over TCP instead of a Unix socket */
    bool testapi;         /* with one, whose clock is the store's */
    bool slow;            /* a store of this kind (slow_store.h) instead of an engine */
    unsigned slow_kinds;  /* of enum slow_store_kind */
    size_t threads, line; /* of an executor */
    size_t fibers;        /* of a worker, with a store that blocks */
    size_t keystone_threads, keystone_line; /* of the threads that call a fake Keystone */
};
void server_fixture_open_with(struct server_fixture *f,
                              const struct server_fixture_options *options);

/* Ends accepting. Then the server may be drained by server_fixture_close(). */
void server_fixture_stop(struct server_fixture *f);

/* Drains it, within which nothing may be cut off; all memory must be back. */
void server_fixture_close(struct server_fixture *f);

/* The same at once, whatever is cut off. */
void server_fixture_cut(struct server_fixture *f);

/* A test with a server, the fixture `f`, which `open` makes. */
#define SERVER_TEST(id, open)                                                            \
    FIXTURE_TEST(id, struct server_fixture, open, server_fixture_close(f))

/* A connection to it. */
int server_fixture_dial(const struct server_fixture *f);

/* Posts one message and returns the status of the response; 0: closed without one. */
int server_fixture_post(const struct server_fixture *f);

/* With one worker: returns when it has done all that there was to do when this was
 * called. */
void server_fixture_settle(const struct server_fixture *f);

#endif
