/*
 * The lines of a state: what is taken can be applied, is shown as lines that are taken
 * again, and is the same when it is shown then; what is refused has a reason.
 *
 * Input: lines.
 */
#include "fuzz/fuzz.h"

#include "api/state.h"
#include "claimd/engine/engine.h"

enum { NOW_MS = 1790000 };
#define NOW (INT64_C(1000000) * NOW_MS)

static struct store *
open_store(struct fuzz_memory *m)
{
    const struct engine_config config = {.mem = m->mem,
                                         .shards = 1,
                                         .now_ms = NOW,
                                         .message_ttl_s = 3600,
                                         .max_message_ttl_s = 1209600,
                                         .seeded = true};
    struct store *store;

    fuzz_check(engine_open(&config, &store) == ST_OK, "no store");
    return store;
}

/* One use of the store, and why it failed. */
struct use {
    struct store_op op;
    struct reason why;
    struct record_load load;
};

static void
use_begin(struct use *u, struct store *store, struct fuzz_memory *m)
{
    *u = (struct use){.op = {.now_ms = NOW}};
    u->load = (struct record_load){.store = store,
                                   .op = &u->op,
                                   .reader = {.limits = &api_limits_default,
                                              .mem = m->mem,
                                              .arena = &m->arena,
                                              .now_ms = NOW,
                                              .project = bytes_str("p"),
                                              .why = &u->why}};
}

static bool
take(struct use *u, struct bytes text)
{
    enum status st = load_read(&u->load, text);

    if (st == ST_OK)
        st = state_check(&u->load);
    fuzz_check(st == ST_OK || st == ST_BAD_BODY || st == ST_BAD_VALUE, "%s",
               status_name(st));
    fuzz_check(st == ST_OK || u->why.text[0] != '\0', "refused without a reason");
    return st == ST_OK;
}

/* The lines of all that the store has, from the arena. */
static struct bytes
show(struct use *u, struct fuzz_memory *m)
{
    buf_reset(&m->out, SIZE_MAX);
    fuzz_check(state_write(u->load.store, &u->op, BYTES_NONE, &m->out) == ST_OK,
               "it cannot be shown");
    return arena_copy(&m->arena, buf_view(&m->out));
}

static void
replace(struct use *u)
{
    enum status st = state_replace(&u->load, BYTES_NONE);

    fuzz_check(st == ST_OK, "taken, but not applied: %s %s", status_name(st),
               u->why.text);
    fuzz_check(store_audit(u->load.store), "the store is unsound");
}

static void
check_lines(struct bytes text, struct fuzz_memory *m)
{
    struct store *store = open_store(m);
    struct bytes first, second;
    struct use u;

    use_begin(&u, store, m);
    if (take(&u, text)) {
        replace(&u);
        first = show(&u, m);
        use_begin(&u, store, m);
        fuzz_check(take(&u, first), "shown, and refused: %.*s: %s", (int)first.len,
                   first.data, u.why.text);
        replace(&u);
        second = show(&u, m);
        fuzz_check(bytes_equal(first, second), "%.*s became %.*s", (int)first.len,
                   first.data, (int)second.len, second.data);
    }
    store_close(store);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes text = fuzz_copy(bytes_of((const char *)data, size));
    struct fuzz_memory m;

    fuzz_memory_open(&m);
    check_lines(text, &m);
    fuzz_memory_close(&m);
    fuzz_free(text);
    return 0;
}
