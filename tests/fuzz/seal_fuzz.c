/*
 * Sealed bodies: whatever bytes are opened, nothing opens but what was sealed here, for
 * the same project and kind, and it is what was sealed.
 *
 * Input: sections of any bytes, to be opened; a body; its project; the project that it is
 * opened for; and changes, of which each is the place of a byte and what is changed in
 * it.
 */
#include "claimd/seal/seal.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void
open_foreign(struct seal *s, const struct seal_scope *scope, struct bytes original)
{
    char *to = malloc(original.len + 1);
    enum status st;

    fuzz_check(to != NULL, "no memory");
    st = seal_open(s, scope, original, to);
    fuzz_check(st == ST_DAMAGED || st == ST_NO_KEY, "opened: %s", status_name(st));
    free(to);
}

/*
 * Makes the changes; true if there are any left in the end. Without memcmp(): the fuzzer
 * looks at what that compares, and would learn a sealed body by heart, which is known to
 * all then.
 */
static bool
change(char *sealed, size_t len, const char *before, struct bytes changes)
{
    int differ = 0;

    for (size_t i = 0; i + 1 < changes.len; i += 2) {
        size_t at = (uint8_t)changes.data[i] % len;

        sealed[at] = (char)(sealed[at] ^ changes.data[i + 1]);
    }
    for (size_t i = 0; i < len; i++)
        differ |= sealed[i] ^ before[i];
    return differ != 0;
}

static void
check_own(struct seal *s, struct bytes body, struct bytes project, struct bytes other,
          struct bytes changes)
{
    const struct seal_scope in = {.project = project}, out = {.project = other};
    bool same = bytes_equal(project, other), whole, good;
    size_t len = body.len + SEAL_OVERHEAD;
    char *sealed = malloc(len), *before = malloc(len), *open = malloc(body.len + 1);
    enum status st;

    fuzz_check(sealed != NULL && before != NULL && open != NULL, "no memory");
    st = seal_close(s, &in, body, sealed);
    fuzz_check(st == ST_OK && seal_is_sealed(bytes_of(sealed, len)), "not sealed");
    memcpy(before, sealed, len);
    whole = !change(sealed, len, before, changes);
    good = same && whole;
    st = seal_open(s, &out, bytes_of(sealed, len), open);
    fuzz_check(good == (st == ST_OK), "%s", status_name(st));
    fuzz_check(!good || body.len == 0 || memcmp(open, body.data, body.len) == 0,
               "another body");
    free(sealed);
    free(before);
    free(open);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_input(data, size), parts[5];
    struct fuzz_memory m;
    struct seal_config config;
    struct seal_scope scope;
    struct seal *s;
    struct reason why;
    size_t line;

    fuzz_memory_open(&m);
    config = (struct seal_config){.mem = m.mem};
    for (size_t i = 0; i < 5; i++)
        parts[i] = fuzz_copy(fuzz_section(&rest));
    fuzz_check(seal_new(&config, &s) == ST_OK, "no seal");
    fuzz_check(seal_replace(s, bytes_str(KEY), &line, &why) == ST_OK, "no key");
    scope = (struct seal_scope){.project = parts[2]};
    open_foreign(s, &scope, parts[0]);
    if (parts[2].len <= SEAL_PROJECT_MAX)
        check_own(s, parts[1], parts[2], parts[3], parts[4]);
    seal_free(s);
    for (size_t i = 0; i < 5; i++)
        fuzz_free(parts[i]);
    fuzz_memory_close(&m);
    return 0;
}
