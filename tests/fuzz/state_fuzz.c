/*
 * The document of a state, and lines of a dump: what is taken can be loaded, is shown as a document
 * that is taken again, and is the same when it is shown then; what is refused has a reason.
 *
 * Input: sections document, line.
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

static enum status
decode(struct bytes text, struct fuzz_memory *m, struct state *out)
{
    struct reason why = {""};
    struct state_decoder d = {&api_limits_default, m->mem, &m->arena, NOW, &why};
    enum status st = decode_state(&d, text, bytes_str("p"), true, out);

    fuzz_check(st == ST_OK || st == ST_BAD_BODY || st == ST_BAD_VALUE, "%s",
               status_name(st));
    fuzz_check(st == ST_OK || why.text[0] != '\0', "refused without a reason");
    return st;
}

/* The document of all that the store has, from the arena. */
static struct bytes
show(struct state_keeper *k, struct fuzz_memory *m)
{
    buf_reset(&m->out, SIZE_MAX);
    fuzz_check(state_write(k, BYTES_NONE, &m->out) == ST_OK && !m->out.failed,
               "it cannot be shown");
    return arena_copy(&m->arena, buf_view(&m->out));
}

static void
replace(struct state_keeper *k, const struct state *wanted)
{
    struct reason why = {""};
    enum status st = state_replace(k, BYTES_NONE, wanted, &why);

    fuzz_check(st == ST_OK, "taken, but not loaded: %s %s", status_name(st), why.text);
    fuzz_check(store_audit(k->store), "the store is unsound");
}

static void
check_document(struct bytes text, struct fuzz_memory *m)
{
    struct store_visit visit = {.now_ms = NOW};
    struct state_keeper k = {NULL, m->mem, &m->arena, &visit};
    struct bytes first, second;
    struct state state;

    if (decode(text, m, &state) != ST_OK)
        return;
    k.store = open_store(m);
    replace(&k, &state);
    first = show(&k, m);
    fuzz_expect_json(first);
    fuzz_check(decode(first, m, &state) == ST_OK, "shown, and refused: %.*s",
               (int)first.len, first.data);
    replace(&k, &state);
    second = show(&k, m);
    fuzz_check(bytes_equal(first, second), "%.*s became %.*s", (int)first.len, first.data,
               (int)second.len, second.data);
    store_close(k.store);
}

static void
check_line(struct bytes text, struct fuzz_memory *m)
{
    struct reason why = {""};
    struct state_decoder d = {&api_limits_default, m->mem, &m->arena, NOW, &why};
    struct state_line line;
    enum status st = decode_state_line(&d, text, &line);

    fuzz_check(st == ST_OK || st == ST_BAD_BODY || st == ST_BAD_VALUE, "%s",
               status_name(st));
    fuzz_check(st == ST_OK || why.text[0] != '\0', "refused without a reason");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_input(data, size);
    struct bytes document = fuzz_copy(fuzz_section(&rest)), line = fuzz_copy(rest);
    struct fuzz_memory m;

    fuzz_memory_open(&m);
    check_document(document, &m);
    if (bytes_present(line))
        check_line(line, &m);
    fuzz_memory_close(&m);
    fuzz_free(document);
    fuzz_free(line);
    return 0;
}
