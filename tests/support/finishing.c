#include "support/finishing.h"

#include <stdio.h>

#undef expect_details

struct finishing
finishing_of(struct fixture *f, struct store_id claim)
{
    return (struct finishing){.f = f,
                              .claim = claim,
                              .request = {.atomic = true, .client = BYTES_LIT("worker")}};
}

static void
add_item(struct finishing *g, enum store_finish_action action, int number,
         int64_t delay_s, const char *reason)
{
    ck_assert_uint_lt(g->request.count, FINISHING_ITEMS);
    g->items[g->request.count++] = (struct store_finish_item){
        .action = action,
        .id = id_of(g->f, number),
        .delay_s = delay_s,
        .reason = reason == NULL ? BYTES_NONE : bytes_str(reason)};
}

void
then_delete(struct finishing *g, int number)
{
    add_item(g, STORE_FINISH_DELETE, number, 0, NULL);
}

void
then_release(struct finishing *g, int number, int64_t delay_s, const char *reason)
{
    add_item(g, STORE_FINISH_RELEASE, number, delay_s, reason);
}

void
then_dead_letter(struct finishing *g, int number, const char *reason)
{
    add_item(g, STORE_FINISH_DEAD_LETTER, number, 0, reason);
}

void
then_post(struct finishing *g, const char *queue, size_t count)
{
    size_t at = g->request.post_count++;

    ck_assert_uint_lt(at, FINISHING_POSTS);
    ck_assert_uint_le(count, FINISHING_DRAFTS);
    for (size_t i = 0; i < count; i++)
        g->drafts[at][i] = (struct store_draft){BYTES_NONE, 3600, 0};
    g->posts[at] = (struct store_finish_post){
        .queue = bytes_str(queue), .post = {.count = count, .create_queue = true}};
}

void
then_renew(struct finishing *g, int64_t ttl_s, int64_t grace_s)
{
    g->terms = (struct store_terms){ttl_s, grace_s};
    g->request.renew = &g->terms;
}

/* The bodies of the i-th post are the next numbers, unless the test has set them. */
static void
write_post(struct finishing *g, size_t i, char (*bodies)[12], int *next)
{
    struct store_finish_post *p = &g->posts[i];

    for (size_t k = 0; k < p->post.count; k++) {
        (void)snprintf(bodies[k], sizeof(bodies[k]), "%d", *next + (int)k);
        if (!bytes_present(g->drafts[i][k].body))
            g->drafts[i][k].body = bytes_str(bodies[k]);
    }
    p->post.drafts = g->drafts[i];
    p->post.client = g->f->client;
    p->ids = &g->f->ids[*next];
    *next += (int)p->post.count;
}

enum status
finish(struct fixture *f, struct finishing *g)
{
    char bodies[FINISHING_POSTS][FINISHING_DRAFTS][12];
    int next = f->posted + 1;
    enum status st;

    g->request.claim_id = store_id_bytes(&g->claim);
    g->request.items = g->items;
    g->request.posts = g->posts;
    for (size_t i = 0; i < g->request.post_count; i++)
        write_post(g, i, bodies[i], &next);
    st = store_claim_finish(f->store, STORE_AT(f->now_ms), &f->queue, &g->request);
    if (st == ST_OK)
        f->posted = next - 1;
    for (size_t i = 0; i < g->request.post_count; i++) /* the texts end here */
        for (size_t k = 0; k < g->posts[i].post.count; k++)
            if (g->drafts[i][k].body.data == bodies[i][k])
                g->drafts[i][k].body = BYTES_NONE;
    fixture_audit(f);
    return st;
}

/* ------------------------------------------------------------------ details */

static void
expect_text(const char *what, struct bytes text, const char *expected)
{
    ck_assert_msg(bytes_equal_str(text, expected == NULL ? "" : expected), "%s is '%.*s'",
                  what, (int)text.len, text.data);
}

static void
expect_time(const char *what, int64_t time_ms, int64_t expected_s)
{
    ck_assert_msg(time_ms == (expected_s < 0 ? 0 : START_MS + expected_s * 1000),
                  "%s is %lld", what, (long long)time_ms);
}

void
expect_details(struct fixture *f, int number, const char *reason, const char *client,
               int64_t released_s, const char *origin, int64_t dead_lettered_s)
{
    static const struct store_details none = {.released_ms = 0};
    const struct store_details *d;

    get(f, number);
    ck_assert_uint_eq(f->seen.count, 1);
    d = f->seen.messages[0].details == NULL ? &none : f->seen.messages[0].details;
    expect_text("reason", d->reason, reason);
    expect_text("client", d->client, client);
    expect_text("origin", d->origin, origin);
    expect_time("time of the release", d->released_ms, released_s);
    expect_time("time of the move", d->dead_lettered_ms, dead_lettered_s);
}

/* ------------------------------------------------------------------ redrive */

struct redriven
redrive(struct fixture *f, struct store_redrive which)
{
    const size_t limit = which.limit;
    struct redriven all = {.moved = 0};
    struct store_redriven out;

    do {
        which.limit = limit - all.moved;
        ck_assert_status(
            store_redrive(f->store, STORE_AT(f->now_ms), &f->queue, &which, &out), ST_OK);
        ck_assert_uint_le(out.moved, which.limit);
        all.moved += out.moved;
        all.unknown_origin += out.unknown_origin;
        all.remaining = out.remaining;
        ck_assert_uint_lt(all.calls++, 1000);
    } while (out.more && all.moved < limit);
    fixture_audit(f);
    return all;
}

struct redriven
redrive_all(struct fixture *f)
{
    return redrive(f, (struct store_redrive){.limit = 1000});
}
