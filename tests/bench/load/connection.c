#include "load/connection.h"

#include "claimd/base/hash.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

bool
endpoint_parse(const char *text, struct endpoint *out)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct addrinfo *found;
    char host[256], port[8];
    const char *colon, *start;
    size_t len;

    *out = (struct endpoint){.address_len = 0};
    if (strncmp(text, "unix:", 5) == 0) {
        if (text[5] == '\0' || strlen(text + 5) >= sizeof local.sun_path)
            return false;
        memcpy(local.sun_path, text + 5, strlen(text + 5) + 1);
        memcpy(&out->address, &local, sizeof local);
        out->address_len = sizeof local;
        snprintf(out->host, sizeof out->host, "localhost");
        return true;
    }
    if (strncmp(text, "http://", 7) == 0)
        text += 7;
    colon = strrchr(text, ':');
    if (colon == NULL || colon == text || colon[1] == '\0')
        return false;
    start = text;
    len = (size_t)(colon - text);
    if (text[0] == '[' && colon[-1] == ']') {
        start++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof host)
        return false;
    memcpy(host, start, len);
    host[len] = '\0';
    snprintf(out->host, sizeof out->host, "%s", text);
    out->host[strcspn(out->host, "/")] = '\0';
    snprintf(port, sizeof port, "%.*s", (int)strspn(colon + 1, "0123456789"), colon + 1);
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return false;
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

int
endpoint_connect(const struct endpoint *e)
{
    int family = e->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        return -1;
    if (family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (const struct sockaddr *)&e->address, e->address_len) != 0 &&
        errno != EINPROGRESS) {
        int why = errno;

        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

#define READ_STEP 16384U

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
    if (plan->scenario == SCENARIO_DELIVERY && number >= plan->producers) {
        const unsigned index = number - plan->producers;

        /* Spread the first claims over one pause, as later ones are. */
        c->actor.worker = true;
        c->actor.queue = index % plan->queues;
        c->resume_ns = plan->pace.start_ns +
                       plan->poll_ns * index / (plan->connections - plan->producers);
    }
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
    c->wants_write = false;
    c->in.len = 0;
}

bool
connection_read(struct connection *c)
{
    ssize_t n;

    if (!buf_reserve(&c->in, READ_STEP))
        return false;
    do
        n = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        c->in.len += (size_t)n;
    return n > 0 || (n < 0 && errno == EAGAIN);
}

void
pauses_add(struct pause_list *p, struct connection *c)
{
    struct connection *before = p->last;

    while (before != NULL && before->resume_ns > c->resume_ns)
        before = before->earlier;
    c->earlier = before;
    c->later = before == NULL ? p->first : before->later;
    *(c->earlier == NULL ? &p->first : &c->earlier->later) = c;
    *(c->later == NULL ? &p->last : &c->later->earlier) = c;
}

void
pauses_remove(struct pause_list *p, struct connection *c)
{
    *(c->earlier == NULL ? &p->first : &c->earlier->later) = c->later;
    *(c->later == NULL ? &p->last : &c->later->earlier) = c->earlier;
    c->earlier = NULL;
    c->later = NULL;
}
