#include "support/fake_keystone.h"

#include "claimd/ds/list.h"

const struct role_map fake_keystone_roles = {
    .count = 4,
    .entries = {{BYTES_LIT("admin"), ROLE_ADMIN},
                {BYTES_LIT("member"), ROLE_WORKER},
                {BYTES_LIT("reader"), ROLE_READER},
                {BYTES_LIT("member"), ROLE_PRODUCER}},
};

static void
write_document(struct buf *out, struct bytes token, const char *expires)
{
    struct bytes rest = token, roles = bytes_cut(&rest, '@');
    const char *comma = "";

    buf_printf(out, "{\"token\":{\"expires_at\":\"%s\",\"user\":{\"id\":\"ann\"},",
               expires);
    if (rest.len > 0)
        buf_printf(out, "\"project\":{\"id\":\"%.*s\"},", (int)rest.len, rest.data);
    buf_str(out, "\"roles\":[");
    while (bytes_present(roles)) {
        struct bytes role = bytes_cut(&roles, ',');

        buf_printf(out, "%s{\"name\":\"%.*s\"}", comma, (int)role.len, role.data);
        comma = ",";
    }
    buf_str(out, "]}}");
}

static void
pass_gate(struct fake_keystone *k)
{
    pthread_mutex_lock(&k->lock);
    k->requests++;
    k->standing++;
    pthread_cond_broadcast(&k->moved);
    while (k->shut)
        pthread_cond_wait(&k->moved, &k->lock);
    k->standing--;
    pthread_mutex_unlock(&k->lock);
}

static enum status
verify(struct keystone_wire *wire, struct bytes token, int64_t timeout_ms, int *code,
       struct buf *body, struct reason *why)
{
    struct fake_keystone *k = container_of(wire, struct fake_keystone, wire);

    (void)timeout_ms;
    pass_gate(k);
    if (k->status != ST_OK)
        return reason_give(why, k->status, "there is no response");
    *code = k->code;
    if (k->code != 0) {
        buf_str(body, k->body != NULL ? k->body : "");
    } else if (memchr(token.data, '@', token.len) == NULL) {
        *code = 404;
    } else {
        *code = 200;
        write_document(body, token, k->expires);
    }
    return body->failed ? ST_NO_MEMORY : ST_OK;
}

void
fake_keystone_init(struct fake_keystone *k)
{
    *k = (struct fake_keystone){.wire.ask = verify, .expires = FAKE_KEYSTONE_END};
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->moved, NULL);
}

void
fake_keystone_fini(struct fake_keystone *k)
{
    pthread_cond_destroy(&k->moved);
    pthread_mutex_destroy(&k->lock);
}

static void
set_shut(struct fake_keystone *k, bool shut)
{
    pthread_mutex_lock(&k->lock);
    k->shut = shut;
    pthread_cond_broadcast(&k->moved);
    pthread_mutex_unlock(&k->lock);
}

void
fake_keystone_shut(struct fake_keystone *k)
{
    set_shut(k, true);
}

void
fake_keystone_open(struct fake_keystone *k)
{
    set_shut(k, false);
}

void
fake_keystone_await(struct fake_keystone *k, size_t count)
{
    pthread_mutex_lock(&k->lock);
    while (k->standing < count)
        pthread_cond_wait(&k->moved, &k->lock);
    pthread_mutex_unlock(&k->lock);
}

size_t
fake_keystone_requests(struct fake_keystone *k)
{
    size_t requests;

    pthread_mutex_lock(&k->lock);
    requests = k->requests;
    pthread_mutex_unlock(&k->lock);
    return requests;
}
