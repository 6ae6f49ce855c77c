/*
 * The names of a certificate, a line each: "dns:NAME" and so on. A name has no control
 * characters, so it cannot look like two names, or like one of another kind. A list of
 * certificates finds an entry only by a name that the certificate has.
 *
 * Input: the certificate (DER).
 */
#include "claimd/auth/token_line.h"
#include "claimd/http/tls.h"
#include "fuzz/fuzz.h"

#include <ctype.h>
#include <gnutls/x509.h>

static const char list[] = "w worker p dns:worker1.example\n"
                           "m reader p email:m@example.org\n"
                           "u operator p uri:spiffe://x/y\n"
                           "a admin * subject:CN=Pages,O=Example\n";

static const char *const kinds[] = {"dns:", "email:", "uri:", "subject:"};

static void
check_line(struct bytes line)
{
    bool known = false;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        known = known || (line.len > strlen(kinds[i]) &&
                          memcmp(line.data, kinds[i], strlen(kinds[i])) == 0);
    fuzz_check(known, "a name of no kind: %.*s", (int)line.len, line.data);
    for (size_t i = 0; i < line.len; i++) {
        unsigned char c = (unsigned char)line.data[i];

        fuzz_check(c >= 0x20 && c != 0x7f, "a name with the byte %02x", c);
        fuzz_check(line.data[0] != 'd' || !isupper(c), "a host with a capital letter");
    }
}

/* Number of alternative names, of any kind and length, and of the subject. */
static size_t
count_names(const gnutls_datum_t *der)
{
    gnutls_x509_crt_t crt;
    size_t count = 1;
    int type = 0;

    fuzz_check(gnutls_x509_crt_init(&crt) == 0, "out of memory");
    if (gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER) == 0)
        for (unsigned i = 0; type != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE; i++) {
            char name[TLS_CLIENT_CERT_BYTES];
            size_t len = sizeof(name);

            type = gnutls_x509_crt_get_subject_alt_name(crt, i, name, &len, NULL);
            if (type < 0 && type != GNUTLS_E_SHORT_MEMORY_BUFFER)
                break;
            count++;
        }
    gnutls_x509_crt_deinit(crt);
    return count;
}

/* True if one of the lines is this one. */
static bool
has_line(struct bytes names, struct bytes line)
{
    while (bytes_present(names))
        if (bytes_equal(bytes_cut(&names, '\n'), line))
            return true;
    return false;
}

static void
check_found(struct mem *mem, struct bytes names)
{
    const struct certificate shown = {.good = true, .names = names};
    const struct token_line *found;
    struct token_list *certificates;
    struct reason why;
    size_t bad_line;

    fuzz_check(token_list_read(mem, bytes_str(list), certificate_line_read, &certificates,
                               &bad_line, &why) == ST_OK,
               "%s", why.text);
    found = token_list_find_certificate(certificates, &shown);
    fuzz_check(found == NULL || has_line(names, found->subject), "found by another name");
    token_list_free(certificates);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes der = fuzz_copy(fuzz_input(data, size)), names, rest;
    char text[TLS_CLIENT_CERT_BYTES];
    struct fuzz_memory m;
    size_t lines = 0;
    const gnutls_datum_t datum = {(unsigned char *)(uintptr_t)der.data,
                                  (unsigned)der.len};

    fuzz_memory_open(&m);
    names = fuzz_copy(bytes_of(text, tls_client_cert_names(&datum, text)));
    fuzz_check(names.len <= TLS_CLIENT_CERT_BYTES, "%zu bytes of names", names.len);
    rest = names;
    for (; rest.len > 0; lines++)
        check_line(bytes_cut(&rest, '\n'));
    fuzz_check(lines <= count_names(&datum), "%zu lines", lines);
    check_found(m.mem, names);
    fuzz_free(names);
    fuzz_free(der);
    fuzz_memory_close(&m);
    return 0;
}
