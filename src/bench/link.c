#include "bench/link.h"

#include "claimd/base/hash.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_STEP 16384U

void
link_init(struct link *l, const struct plan *plan, unsigned number, struct mem *mem)
{
    *l = (struct link){.fd = -1, .number = number};
    buf_init(&l->out, mem);
    buf_init(&l->in, mem);
    l->actor.queue = number % plan->queues;
    l->actor.serial = (uint64_t)number << 40;
    l->actor.random = hash_mix(number + UINT64_C(0x9e3779b97f4a7c15));
}

void
link_fini(struct link *l)
{
    link_close(l);
    buf_fini(&l->out);
    buf_fini(&l->in);
}

void
link_close(struct link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    l->greeted = false;
    l->wants_write = false;
    l->in.len = 0;
}

enum link_io
link_write(struct link *l)
{
    while (l->sent < l->out.len) {
        ssize_t n =
            send(l->fd, l->out.data + l->sent, l->out.len - l->sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? LINK_IO_AGAIN : LINK_IO_ENDED;
        l->sent += (size_t)n;
    }
    return LINK_IO_DONE;
}

enum link_io
link_read(struct link *l)
{
    ssize_t n;

    if (!buf_reserve(&l->in, READ_STEP))
        return LINK_IO_ENDED;
    do
        n = recv(l->fd, l->in.data + l->in.len, l->in.cap - l->in.len, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? LINK_IO_AGAIN : LINK_IO_ENDED;
    if (n == 0)
        return LINK_IO_ENDED;
    l->in.len += (size_t)n;
    return LINK_IO_DONE;
}
