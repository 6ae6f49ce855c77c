#include "bench/connection.h"

#include "claimd/base/hash.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_STEP 16384U

/* DELIVERY: a worker. The first claims are spread over a pause, as later ones are. */
static void
make_worker(struct connection *c, const struct plan *plan)
{
    unsigned index = c->number - plan->producers;
    unsigned workers = plan->connections - plan->producers;

    c->actor.worker = true;
    c->actor.queue = index % plan->queues;
    c->resume_ns = plan->pace.start_ns + plan->poll_ns * index / workers;
}

void
connection_init(struct connection *c, const struct plan *plan, unsigned number,
                struct mem *mem)
{
    *c = (struct connection){.fd = -1, .number = number};
    buf_init(&c->out, mem);
    buf_init(&c->in, mem);
    c->actor.queue = number % plan->queues;
    c->actor.serial = (uint64_t)number << 40;
    c->actor.random = hash_mix(number + UINT64_C(0x9e3779b97f4a7c15));
    if (plan->scenario == SCENARIO_DELIVERY && number >= plan->producers)
        make_worker(c, plan);
}

void
connection_fini(struct connection *c)
{
    connection_close(c);
    buf_fini(&c->out);
    buf_fini(&c->in);
}

void
connection_close(struct connection *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->greeted = false;
    c->wants_write = false;
    c->in.len = 0;
}

enum connection_io
connection_write(struct connection *c)
{
    while (c->sent < c->out.len) {
        ssize_t n =
            send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? CONNECTION_IO_AGAIN : CONNECTION_IO_ENDED;
        c->sent += (size_t)n;
    }
    return CONNECTION_IO_DONE;
}

enum connection_io
connection_read(struct connection *c)
{
    ssize_t n;

    if (!buf_reserve(&c->in, READ_STEP))
        return CONNECTION_IO_ENDED;
    do
        n = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? CONNECTION_IO_AGAIN : CONNECTION_IO_ENDED;
    if (n == 0)
        return CONNECTION_IO_ENDED;
    c->in.len += (size_t)n;
    return CONNECTION_IO_DONE;
}
