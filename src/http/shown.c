#include "http/shown.h"

#include <ctype.h>
#include <gnutls/x509.h>
#include <string.h>

/* For want of memory. */
static struct certificate unknown = {.good = false};

static bool
is_good(gnutls_session_t session)
{
    unsigned char client[] = GNUTLS_KP_TLS_WWW_CLIENT;
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = client};
    unsigned status = 0;

    return gnutls_certificate_verify_peers(session, &purpose, 1, &status) == 0 &&
           status == 0;
}

/* ------------------------------------------------------------------ names */

/* Text with room for SHOWN_BYTES, and how much of it there is. */
struct names {
    char *text;
    size_t len;
};

static bool
is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return len > 0;
}

/* Adds "kind:value" as a line. */
static void
add_name(struct names *n, const char *kind, const char *value, size_t len)
{
    size_t kind_len = strlen(kind), whole = kind_len + len + (n->len > 0 ? 1 : 0);

    if (!is_plain(value, len) || len > SHOWN_BYTES || n->len + whole > SHOWN_BYTES)
        return;
    if (n->len > 0)
        n->text[n->len++] = '\n';
    memcpy(n->text + n->len, kind, kind_len);
    memcpy(n->text + n->len + kind_len, value, len);
    n->len += kind_len + len;
}

static void
add_alternative(struct names *n, int type, char *value, size_t len)
{
    if (type == GNUTLS_SAN_DNSNAME) {
        for (size_t i = 0; i < len; i++)
            value[i] = (char)tolower((unsigned char)value[i]);
        add_name(n, "dns:", value, len);
    } else if (type == GNUTLS_SAN_RFC822NAME) {
        add_name(n, "email:", value, len);
    } else if (type == GNUTLS_SAN_URI) {
        add_name(n, "uri:", value, len);
    }
}

static void
add_alternatives(struct names *n, gnutls_x509_crt_t crt)
{
    for (unsigned i = 0;; i++) {
        char value[SHOWN_BYTES];
        size_t len = sizeof(value);
        int type = gnutls_x509_crt_get_subject_alt_name(crt, i, value, &len, NULL);

        if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            return;
        if (type >= 0)
            add_alternative(n, type, value, len);
        else if (type != GNUTLS_E_SHORT_MEMORY_BUFFER)
            return; /* nothing behind it can be read either */
    }
}

static void
add_subject(struct names *n, gnutls_x509_crt_t crt)
{
    gnutls_datum_t dn = {NULL, 0};

    if (gnutls_x509_crt_get_dn3(crt, &dn, 0) != 0)
        return;
    add_name(n, "subject:", (const char *)dn.data, dn.size);
    gnutls_free(dn.data);
}

size_t
shown_names(const gnutls_datum_t *der, char text[SHOWN_BYTES])
{
    struct names names = {.text = text};
    gnutls_x509_crt_t crt;

    if (gnutls_x509_crt_init(&crt) != 0)
        return 0;
    if (gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER) == 0) {
        add_alternatives(&names, crt);
        add_subject(&names, crt);
    }
    gnutls_x509_crt_deinit(crt);
    return names.len;
}

struct certificate *
shown_read(struct mem *mem, gnutls_session_t session)
{
    unsigned count = 0;
    const gnutls_datum_t *peers = gnutls_certificate_get_peers(session, &count);
    char text[SHOWN_BYTES];
    struct certificate *shown;
    size_t len;

    if (peers == NULL || count == 0)
        return NULL;
    if (!is_good(session))
        return &unknown;
    len = shown_names(&peers[0], text);
    shown = mem_alloc(mem, sizeof(*shown) + len);
    if (shown == NULL)
        return &unknown;
    memcpy(shown + 1, text, len);
    *shown = (struct certificate){.good = true,
                                  .names = bytes_of((const char *)(shown + 1), len)};
    return shown;
}

void
shown_free(struct mem *mem, struct certificate *shown)
{
    if (shown != &unknown)
        mem_free(mem, shown);
}
