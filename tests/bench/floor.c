#include "bench/floor.h"

#include "load/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#define QUEUE "/v2/queues/bench-0"
#define CLAIM "a1b2c3d4e5f60718293a4b5c"

/* An id of claimd's form for message n. */
static void
write_id(FILE *out, unsigned n)
{
    fprintf(out, "b0a1b2c3%016x", n + 1);
}

static void
write_post(FILE *out, unsigned batch)
{
    fprintf(out, "{\"resources\": [");
    for (unsigned n = 0; n < batch; n++) {
        fprintf(out, "%s\"" QUEUE "/messages/", n == 0 ? "" : ", ");
        write_id(out, n);
        fputc('"', out);
    }
    fprintf(out, "]}");
}

static void
write_body(FILE *out, size_t body_bytes)
{
    fprintf(out, "{\"n\":\"0000000000000000\",\"d\":\"");
    for (size_t n = 31; n < body_bytes; n++)
        fputc((int)('a' + n % 26), out);
    fprintf(out, "\"}");
}

static void
write_messages(FILE *out, unsigned batch, size_t body_bytes, bool claimed)
{
    fprintf(out, "{\"messages\": [");
    for (unsigned n = 0; n < batch; n++) {
        fprintf(out, "%s{\"id\": \"", n == 0 ? "" : ", ");
        write_id(out, n);
        fprintf(out, "\", \"href\": \"" QUEUE "/messages/");
        write_id(out, n);
        fprintf(out, "%s\", \"ttl\": 3600, \"age\": 0, \"body\": ",
                claimed ? "?claim_id=" CLAIM : "");
        write_body(out, body_bytes);
        fputc('}', out);
    }
    fprintf(out, claimed ? "]}"
                         : "], \"links\": [{\"rel\": \"next\", \"href\": \"" QUEUE
                           "/messages?echo=true&limit=10&marker=123456\"}]}");
}

static const char *
post_location(unsigned batch)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL)
        return NULL;
    fprintf(out, QUEUE "/messages?ids=");
    for (unsigned n = 0; n < batch; n++) {
        if (n > 0)
            fputc(',', out);
        write_id(out, n);
    }
    return fclose(out) == 0 ? text : NULL;
}

static bool
document(enum floor_kind kind, unsigned batch, size_t body_bytes, struct bytes *out)
{
    char *text;
    size_t len;
    FILE *file = open_memstream(&text, &len);

    if (file == NULL)
        return false;
    if (kind == FLOOR_POST)
        write_post(file, batch);
    else
        write_messages(file, batch, body_bytes, kind == FLOOR_CLAIM);
    if (fclose(file) != 0)
        return false;
    *out = bytes_of(text, len);
    return true;
}

bool
floor_responses(unsigned batch, size_t body_bytes, struct floor_response out[FLOOR_KINDS])
{
    out[FLOOR_POST] =
        (struct floor_response){.status = 201, .location = post_location(batch)};
    out[FLOOR_CLAIM] =
        (struct floor_response){.status = 201, .location = QUEUE "/claims/" CLAIM};
    out[FLOOR_LIST] = (struct floor_response){.status = 200};
    out[FLOOR_CREATE] = (struct floor_response){.status = 201, .location = QUEUE};
    out[FLOOR_NOTHING] = (struct floor_response){.status = 204};
    out[FLOOR_CREATE].body = bytes_of("", 0);
    out[FLOOR_NOTHING].body = bytes_of("", 0);
    return out[FLOOR_POST].location != NULL &&
           document(FLOOR_POST, batch, body_bytes, &out[FLOOR_POST].body) &&
           document(FLOOR_CLAIM, batch, body_bytes, &out[FLOOR_CLAIM].body) &&
           document(FLOOR_LIST, batch, body_bytes, &out[FLOOR_LIST].body);
}

enum floor_kind
floor_choose(struct bytes method, struct bytes path)
{
    const char *slash = memrchr(path.data, '/', path.len);
    bool claim = slash != NULL && strncmp(slash, "/claims", 7) == 0;

    switch (method.data[0]) {
    case 'P':
        if (method.data[1] == 'U')
            return FLOOR_CREATE;
        return claim ? FLOOR_CLAIM : FLOOR_POST;
    case 'G':
        return FLOOR_LIST;
    default:
        return FLOOR_NOTHING;
    }
}

/* Says where the server listens; clients read it from a pipe. */
static void
announce(int fd, const char *address)
{
    struct sockaddr_in in;
    socklen_t len = sizeof in;

    if (strncmp(address, "unix:", 5) != 0 &&
        getsockname(fd, (struct sockaddr *)&in, &len) == 0)
        printf("listening on 127.0.0.1:%u\n", ntohs(in.sin_port));
    else
        printf("listening on %s\n", address);
    fflush(stdout);
}

int
floor_listen(const char *address)
{
    struct endpoint where;
    int on = 1;
    int fd;

    if (!endpoint_parse(address, &where)) {
        fprintf(stderr, "not an address: %s\n", address);
        return -1;
    }
    fd = socket(where.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (const struct sockaddr *)&where.address, where.address_len) != 0 ||
        listen(fd, 4096) != 0) {
        perror(address);
        return -1;
    }
    announce(fd, address);
    return fd;
}
