/*
 * The lines of a whole state (api/state.h). The input is such lines. If claimd accepts
 * them:
 *
 *     1. It applies them to an empty store, and an audit of the store passes.
 *     2. It writes the state of the store, and accepts these lines, too.
 *     3. After it has applied these, it writes the same lines again.
 *
 * If it refuses them, there is a reason.
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

/* One use of the store, with the reason of an error. */
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

/* Reads and checks lines. False: they are refused. */
static bool
load_lines(struct use *u, struct bytes text)
{
    enum status st = load_read(&u->load, text);

    if (st == ST_OK)
        st = state_check(&u->load);
    fuzz_check(st == ST_OK || st == ST_BAD_BODY || st == ST_BAD_VALUE, "%s",
               status_name(st));
    fuzz_check(st == ST_OK || u->why.text[0] != '\0', "refused without a reason");
    return st == ST_OK;
}

/* The state of the store as lines, in the arena. */
static struct bytes
write_lines(struct use *u, struct fuzz_memory *m)
{
    buf_reset(&m->out, SIZE_MAX);
    fuzz_check(state_write(u->load.store, &u->op, BYTES_NONE, &m->out) == ST_OK,
               "the state cannot be written");
    return arena_copy(&m->arena, buf_view(&m->out));
}

/* Replaces the contents of the store by the lines that were loaded. */
static void
apply_lines(struct use *u)
{
    enum status st = state_replace(&u->load, BYTES_NONE);

    fuzz_check(st == ST_OK, "accepted, but not applied: %s %s", status_name(st),
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
    if (load_lines(&u, text)) {
        apply_lines(&u);
        first = write_lines(&u, m);
        use_begin(&u, store, m);
        fuzz_check(load_lines(&u, first), "written, and refused: %.*s: %s",
                   (int)first.len, first.data, u.why.text);
        apply_lines(&u);
        second = write_lines(&u, m);
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
