/*
 * Grants of pre-signed URLs: a signature is good for what was signed, in whatever order
 * its lists stand, and for nothing else; and dates.
 *
 * Input: sections of paths, methods, project, end; then the same four as they are shown.
 */
#include "api/wire/decode.h"
#include "claimd/auth/signer.h"
#include "fuzz/fuzz.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY "0123456789abcdef0123456789abcdef"

enum { FIELDS = 4, ENTRIES_MAX = 256 };

static void
read_grant(struct bytes *rest, struct bytes copies[FIELDS], struct grant *out)
{
    for (size_t i = 0; i < FIELDS; i++)
        copies[i] = fuzz_copy(fuzz_section(rest));
    *out = (struct grant){copies[0], copies[1], copies[2], copies[3]};
}

/* The entries of a list with nothing but a sorting by insertion. */
static void
write_sorted(struct buf *out, struct bytes list)
{
    struct bytes entries[ENTRIES_MAX];
    size_t count = 0;

    while (bytes_present(list) && count < ENTRIES_MAX) {
        struct bytes entry = bytes_cut(&list, ',');
        size_t at = count++;

        for (; at > 0 && bytes_compare(entries[at - 1], entry) > 0; at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        buf_bytes(out, entries[i]);
    }
}

/* The signed text, as the contract says it. */
static void
write_text(struct buf *out, const struct grant *g)
{
    write_sorted(out, g->paths);
    buf_str(out, "\\n");
    write_sorted(out, g->methods);
    buf_str(out, "\\n");
    buf_bytes(out, g->project);
    buf_str(out, "\\n");
    buf_bytes(out, g->expires);
}

static void
check_signature(struct bytes text, const char *signature)
{
    unsigned char digest[32];
    char digits[65];

    fuzz_check(gnutls_hmac_fast(GNUTLS_MAC_SHA256, KEY, sizeof(KEY) - 1, text.data,
                                text.len, digest) == 0,
               "no HMAC");
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(digits + 2 * i, 3, "%02x", digest[i]);
    fuzz_check(strcmp(digits, signature) == 0, "%s instead of %s", signature, digits);
}

/* A date is the same when it is written and read again. */
static void
check_date(struct bytes text)
{
    int64_t ms, again;
    char written[ISO_TIME_CAP];

    if (!iso_time_read(text, &ms))
        return;
    iso_time_write(ms, written);
    fuzz_check(ms % 1000 == 0 && iso_time_read(bytes_str(written), &again) && again == ms,
               "%lld is written as %s", (long long)ms, written);
}

static bool
is_short(const struct grant *g)
{
    size_t commas = 0;

    for (size_t i = 0; i < g->paths.len; i++)
        commas += g->paths.data[i] == ',';
    for (size_t i = 0; i < g->methods.len; i++)
        commas += g->methods.data[i] == ',';
    return commas < ENTRIES_MAX - 1;
}

static void
compare(struct fuzz_memory *m, struct signer *signer, const struct grant *made,
        const struct grant *shown)
{
    char signature[SIGNATURE_DIGITS + 1];
    struct buf said;
    bool same;
    enum status st;

    write_text(&m->out, made);
    buf_init(&said, m->mem);
    write_text(&said, shown);
    same = bytes_equal(buf_view(&said), buf_view(&m->out));
    fuzz_check(signer_sign(signer, made, &m->arena, signature) == ST_OK, "not signed");
    check_signature(buf_view(&m->out), signature);
    st = signer_verify(signer, shown, bytes_str(signature), &m->arena);
    fuzz_check(st == (same ? ST_OK : ST_NO_PATH), "%s", status_name(st));
    st = signer_verify(signer, made, bytes_str(signature), &m->arena);
    fuzz_check(st == ST_OK, "its own is %s", status_name(st));
    buf_fini(&said);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_input(data, size), copies[2 * FIELDS];
    struct grant made, shown;
    struct fuzz_memory m;
    struct signer *signer;
    struct reason why;
    size_t line;

    fuzz_memory_open(&m);
    read_grant(&rest, copies, &made);
    read_grant(&rest, copies + FIELDS, &shown);
    check_date(made.expires);
    fuzz_check(signer_new(m.mem, &signer) == ST_OK, "no signer");
    fuzz_check(signer_replace(signer, bytes_str(KEY), &line, &why) == ST_OK, "no key");
    if (is_short(&made) && is_short(&shown))
        compare(&m, signer, &made, &shown);
    signer_free(signer);
    for (size_t i = 0; i < 2 * FIELDS; i++)
        fuzz_free(copies[i]);
    fuzz_memory_close(&m);
    return 0;
}
