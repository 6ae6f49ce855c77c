/*
 * transport: reads and writes the socket of a connection for GnuTLS, with one system call
 * for a request and one for its response. Declared in internal.h. Left alone, GnuTLS
 * reads the head and the body of each record apart, and sends each record at once.
 *
 *     socket --recv--> worker's buffer --pull--> GnuTLS --> libmicrohttpd
 *     socket <--sendmsg-- body <--push-- GnuTLS <-- libmicrohttpd
 *                    \--- head, held until its body comes
 */
#include "claimd/base/invariant.h"
#include "http/mhd/internal.h"

#include <errno.h>

/*
 * INPUT_CAP: bytes that are read beyond what GnuTLS asks for, and a connection may keep
 * in its own memory. HEAD_CAP: the head of a response as a record.
 */
enum { INPUT_CAP = 4096, HEAD_CAP = HEADERS_CAP + 512 };

/* In fewer runs, libmicrohttpd reads a whole record that GnuTLS has decrypted. */
enum { UNREAD_RUNS = 16 };

/* Of a worker. Both are empty between two runs, if there is memory and no tiny record. */
struct transport_buffers {
    struct conn *reader; /* whose bytes are in `input`; NULL: none */
    bool holds;          /* `head` has the head of a connection */
    uint64_t run;        /* number of the present run */
    char input[INPUT_CAP];
    char head[HEAD_CAP];
};

bool
transport_open(struct mhd *m)
{
    list_init(&m->reading);
    if (m->config.server->tls == NULL)
        return true;
    m->buffers = mem_calloc(m->config.server->mem, 1, sizeof(*m->buffers));
    return m->buffers != NULL;
}

void
transport_close(struct mhd *m)
{
    mem_free(m->config.server->mem, m->buffers);
}

/* ------------------------------------------------------------------ reading */

/* Adds c to m->reading. */
static void
transport_note(struct mhd *m, struct conn *c)
{
    if (!list_linked(&c->mhd.transport.reading))
        list_add_before(&m->reading, &c->mhd.transport.reading);
}

/* Forgets the bytes that were read. */
static void
drop_input(const struct mhd *m, struct conn *c)
{
    struct transport *t = &c->mhd.transport;

    if (m->buffers->reader == c)
        m->buffers->reader = NULL;
    else
        mem_free(m->config.server->mem, t->input);
    t->input = NULL;
    t->at = t->end = 0;
}

/* Makes the worker's buffer free for another connection. False without memory. */
static bool
free_buffer(const struct mhd *m)
{
    struct conn *c = m->buffers->reader;
    struct transport *t;
    char *own;

    if (c == NULL)
        return true;
    t = &c->mhd.transport;
    own = mem_alloc(m->config.server->mem, t->end - t->at);
    if (own == NULL)
        return false;
    memcpy(own, t->input + t->at, t->end - t->at);
    t->end -= t->at;
    t->at = 0;
    t->input = own;
    m->buffers->reader = NULL;
    return true;
}

/*
 * Reads what the socket has. If that is less than there is space for, nothing is left. So
 * in this run of libmicrohttpd, GnuTLS need not ask again. Later input makes an edge
 * in the epoll set of libmicrohttpd, which it sees in the next run.
 */
static ssize_t
read_socket(struct mhd *m, struct conn *c, void *out, size_t len)
{
    struct transport *t = &c->mhd.transport;
    struct transport_buffers *b = m->buffers;
    struct iovec parts[2] = {{out, len}, {b->input, INPUT_CAP}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = free_buffer(m) ? 2 : 1};
    const size_t most = message.msg_iovlen == 1 ? len : len + INPUT_CAP;
    ssize_t n = -1;

    transport_note(m, c);
    if (t->emptied == b->run) {
        errno = EAGAIN;
    } else {
        n = recvmsg(c->fd, &message, MSG_DONTWAIT);
        t->emptied = n != 0 && n < (ssize_t)most ? b->run : 0;
    }
    /* After EAGAIN libmicrohttpd watches the socket again, but not in a handshake. */
    if (n < 0 && c->used)
        t->unwatched = false;
    if (n <= (ssize_t)len)
        return n;
    t->input = b->input;
    t->end = (size_t)n - len;
    b->reader = c;
    return (ssize_t)len;
}

/* For gnutls_transport_set_pull_function(). */
static ssize_t
pull(gnutls_transport_ptr_t ptr, void *out, size_t len)
{
    struct conn *c = ptr;
    struct transport *t = &c->mhd.transport;
    struct mhd *m = mhd_of(c);

    t->pulled = m->buffers->run;
    if (t->input == NULL)
        return read_socket(m, c, out, len);
    if (len > t->end - t->at)
        len = t->end - t->at;
    memcpy(out, t->input + t->at, len);
    t->at += len;
    if (t->at == t->end)
        drop_input(m, c);
    return (ssize_t)len;
}

/* For gnutls_transport_set_pull_timeout_function(). GnuTLS asks only if it may wait. */
static int
pull_timeout(gnutls_transport_ptr_t ptr, unsigned ms)
{
    (void)ptr, (void)ms;
    return 1;
}

void
transport_begin_run(struct mhd *m)
{
    if (m->buffers != NULL)
        m->buffers->run++;
}

bool
transport_is_read(struct mhd *m, const struct mhd_daemon *d)
{
    struct list *at = m->reading.next;
    bool all = true;

    while (at != &m->reading) {
        struct conn *c = container_of(at, struct conn, mhd.transport.reading);
        const struct transport *t = &c->mhd.transport;

        at = at->next;
        if (t->emptied != 0 && t->input == NULL && !t->unwatched &&
            gnutls_record_check_pending(c->mhd.tls) == 0)
            list_remove(&c->mhd.transport.reading);
        else if (c->mhd.daemon == d && !c->mhd.suspended)
            all = false;
    }
    if (m->buffers != NULL)
        (void)free_buffer(m);
    return all;
}

void
transport_reread(struct mhd *m, const struct mhd_daemon *d, bool idle)
{
    for (struct list *at = m->reading.next; at != &m->reading; at = at->next) {
        struct conn *c = container_of(at, struct conn, mhd.transport.reading);

        if (c->mhd.daemon != d || c->mhd.suspended || c->mhd.transport.input == NULL ||
            (!idle && c->mhd.transport.pulled + UNREAD_RUNS > m->buffers->run) ||
            (c->phase != CONN_WAITING && c->phase != CONN_RECEIVING) ||
            gnutls_record_check_pending(c->mhd.tls) > 0)
            continue;
        mhd_suspend_now(c);
        mhd_resume(c);
    }
}

void
transport_suspended(struct conn *c)
{
    c->mhd.transport.unwatched = true;
}

void
transport_resumed(struct conn *c)
{
    transport_note(mhd_of(c), c);
}

/* ------------------------------------------------------------------ writing */

static ssize_t
send_parts(const struct conn *c, const struct iovec *parts, size_t count)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                                   .msg_iovlen = count};

    return sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
drop_held(const struct mhd *m, struct transport *t)
{
    if (t->held == m->buffers->head)
        m->buffers->holds = false;
    else
        mem_free(m->config.server->mem, t->held);
    t->held = NULL;
    t->held_len = 0;
}

/* Removes what was sent. The rest gets memory of its own. False without memory. */
static bool
keep_held(const struct mhd *m, struct transport *t, size_t sent)
{
    const size_t left = t->held_len - sent;
    char *own = mem_alloc(m->config.server->mem, left);

    if (own != NULL)
        memcpy(own, t->held + sent, left);
    drop_held(m, t);
    t->held = own;
    t->held_len = own == NULL ? 0 : left;
    return own != NULL;
}

/* Sends the head that was held, with the record behind it. */
static ssize_t
push_held(const struct mhd *m, struct conn *c, const struct iovec *records, int count)
{
    struct transport *t = &c->mhd.transport;
    const struct iovec parts[2] = {{t->held, t->held_len}, records[0]};
    ssize_t n = send_parts(c, parts, 2);

    if (n < 0 && errno != EAGAIN) {
        drop_held(m, t);
        errno = EPIPE;
        return n;
    }
    if (n < (ssize_t)t->held_len) {
        if (!keep_held(m, t, n < 0 ? 0 : (size_t)n)) {
            errno = ENOMEM;
            return -1;
        }
        n = 0;
    } else {
        n -= (ssize_t)t->held_len;
        drop_held(m, t);
    }
    if (n == 0)
        errno = EAGAIN;
    if (n == (ssize_t)records[0].iov_len && count > 1) {
        ssize_t more = send_parts(c, records + 1, (size_t)count - 1);

        return more < 0 ? n : n + more;
    }
    return n == 0 ? -1 : n;
}

/* For gnutls_transport_set_vec_push_function(). */
static ssize_t
push(gnutls_transport_ptr_t ptr, const giovec_t *records, int count)
{
    struct conn *c = ptr;
    struct transport *t = &c->mhd.transport;
    struct mhd *m = mhd_of(c);
    const bool hold = t->hold;

    t->hold = false;
    if (t->held != NULL)
        return push_held(m, c, records, count);
    /* With tiny records, a head may take several runs, and keep the buffer meanwhile. */
    if (hold && !m->buffers->holds && count == 1 && records[0].iov_len <= HEAD_CAP) {
        m->buffers->holds = true;
        memcpy(m->buffers->head, records[0].iov_base, records[0].iov_len);
        t->held = m->buffers->head;
        t->held_len = records[0].iov_len;
        return (ssize_t)t->held_len;
    }
    return send_parts(c, records, (size_t)count);
}

void
transport_hold_head(struct conn *c)
{
    c->mhd.transport.hold = c->mhd.tls != NULL;
}

void
transport_flush(struct conn *c)
{
    struct transport *t = &c->mhd.transport;
    const struct iovec part = {t->held, t->held_len};

    t->hold = false;
    if (t->held == NULL)
        return;
    if (send_parts(c, &part, 1) != (ssize_t)t->held_len)
        (void)shutdown(c->fd, SHUT_RDWR);
    drop_held(mhd_of(c), t);
}

/* ------------------------------------------------------------------ connections */

void
transport_set(struct conn *c)
{
    gnutls_transport_set_ptr(c->mhd.tls, c);
    gnutls_transport_set_pull_function(c->mhd.tls, pull);
    gnutls_transport_set_pull_timeout_function(c->mhd.tls, pull_timeout);
    gnutls_transport_set_vec_push_function(c->mhd.tls, push);
}

void
transport_end(struct conn *c)
{
    const struct mhd *m = mhd_of(c);
    struct transport *t = &c->mhd.transport;

    if (t->input != NULL)
        drop_input(m, c);
    if (t->held != NULL)
        drop_held(m, t);
    if (list_linked(&t->reading))
        list_remove(&t->reading);
}
