#include "claimd/http/listen.h"

#include "claimd/base/bytes.h"
#include "http/address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char blanks[] = " \t";
static const char local[] = "unix:";

static const struct {
    const char *name, *prefix;
} kinds[] = {[LISTEN_API] = {"api", ""},
             [LISTEN_TLS] = {"tls", "tls:"},
             [LISTEN_METRICS] = {"metrics", "metrics:"}};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

const char *
listen_kind_name(enum listen_kind kind)
{
    return kinds[kind].name;
}

const char *
listen_scheme(enum listen_kind kind, const char *address)
{
    if (strncmp(address, local, sizeof(local) - 1) == 0)
        return "";
    return kind == LISTEN_TLS ? "https://" : "http://";
}

/* ------------------------------------------------------------------ an entry */

static enum listen_kind
take_prefix(const char **text)
{
    for (int kind = LISTEN_API + 1; kind < KINDS; kind++) {
        size_t len = strlen(kinds[kind].prefix);

        if (strncmp(*text, kinds[kind].prefix, len) == 0) {
            *text += len;
            return (enum listen_kind)kind;
        }
    }
    return LISTEN_API;
}

/* Letters and a colon before what is an address otherwise. */
static bool
has_unknown_prefix(const char *text)
{
    char unheard[LISTEN_ADDRESS_CAP];
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return len > 0 && text[len] == ':' && strncmp(text, local, sizeof(local) - 1) != 0 &&
           address_check(text + len + 1, unheard, sizeof(unheard));
}

/* How long the entry is that begins here. */
static size_t
entry_length(const char *text)
{
    const char *address = text;

    (void)take_prefix(&address);
    return strncmp(address, local, sizeof(local) - 1) == 0 ? strcspn(text, ",")
                                                           : strcspn(text, ", \t");
}

static bool
read_entry(struct bytes text, struct listen_entry *out, char *why, size_t why_cap)
{
    char whole[LISTEN_ADDRESS_CAP];
    const char *address = whole;

    text = bytes_trim(text);
    if (text.len >= sizeof(whole)) {
        (void)snprintf(why, why_cap, "has an address that is too long: %zu characters",
                       text.len);
        return false;
    }
    memcpy(whole, text.data, text.len);
    whole[text.len] = '\0';
    out->kind = take_prefix(&address);
    out->inherited = -1;
    (void)snprintf(out->address, sizeof(out->address), "%s", address);
    if (!has_unknown_prefix(address))
        return address_check(address, why, why_cap);
    (void)snprintf(
        why, why_cap,
        "has the unknown prefix \"%.*s\". An address may begin with tls: or metrics:",
        (int)strcspn(address, ":") + 1, address);
    return false;
}

/* ------------------------------------------------------------------ collisions */

static bool
is_local(const struct listen_entry *e)
{
    return strncmp(e->address, local, sizeof(local) - 1) == 0;
}

static bool
is_everywhere(const char *address, size_t host_len)
{
    static const char *const all[] = {"0.0.0.0", "[::]"};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strlen(all[i]) == host_len && memcmp(address, all[i], host_len) == 0)
            return true;
    return false;
}

/* Would the second of them find its address taken? Port 0 is another port each time. */
static bool
collide(const struct listen_entry *a, const struct listen_entry *b)
{
    const char *a_port = strrchr(a->address, ':'), *b_port = strrchr(b->address, ':');
    uint64_t a_number, b_number;

    if (is_local(a) || is_local(b))
        return strcmp(a->address, b->address) == 0;
    if (!bytes_to_u64(bytes_str(a_port + 1), &a_number) ||
        !bytes_to_u64(bytes_str(b_port + 1), &b_number) || a_number != b_number ||
        a_number == 0)
        return false;
    return bytes_equal_nocase(bytes_of(a->address, (size_t)(a_port - a->address)),
                              bytes_of(b->address, (size_t)(b_port - b->address))) ||
           is_everywhere(a->address, (size_t)(a_port - a->address)) ||
           is_everywhere(b->address, (size_t)(b_port - b->address));
}

static bool
check_collisions(const struct listen_list *list, char *why, size_t why_cap)
{
    const struct listen_entry *last = &list->entries[list->count - 1];

    for (const struct listen_entry *e = list->entries; e < last; e++)
        if (collide(e, last)) {
            (void)snprintf(why, why_cap, "has %s%s and %s%s, which are the same address",
                           kinds[e->kind].prefix, e->address, kinds[last->kind].prefix,
                           last->address);
            return false;
        }
    return true;
}

/* ------------------------------------------------------------------ the list */

bool
listen_read(const char *text, struct listen_list *out, char *why, size_t why_cap)
{
    out->count = 0;
    for (;;) {
        size_t len;

        text += strspn(text, blanks);
        len = entry_length(text);
        if (len == 0) {
            (void)snprintf(why, why_cap, "must have an address %s its comma",
                           *text == ',' ? "before" : "after");
            return false;
        }
        if (out->count == LISTEN_MAX) {
            (void)snprintf(why, why_cap, "must have at most %d addresses", LISTEN_MAX);
            return false;
        }
        if (!read_entry(bytes_of(text, len), &out->entries[out->count], why, why_cap))
            return false;
        out->count++;
        if (!check_collisions(out, why, why_cap))
            return false;
        text += len;
        text += strspn(text, blanks);
        if (*text == '\0')
            return true;
        if (*text == ',')
            text++;
    }
}

/* ------------------------------------------------------------------ inherited */

/* What is wrong with it, NULL if it is a stream socket that listens. */
static const char *
judge_socket(int fd)
{
    int type = 0, listens = 0;
    socklen_t type_len = sizeof(type), listens_len = sizeof(listens);

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0)
        return errno == EBADF ? "is not open" : "is no socket";
    if (type != SOCK_STREAM)
        return "is not a stream socket";
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_len) != 0 ||
        listens == 0)
        return "does not listen";
    return NULL;
}

static bool
keep_to_ourselves(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

bool
listen_inherit(int fd, enum listen_kind kind, struct listen_entry *out, const char **why)
{
    char text[ADDRESS_TEXT_CAP];
    struct address address = {.len = sizeof(address.sock)};

    *why = judge_socket(fd);
    if (*why != NULL)
        return false;
    if (!keep_to_ourselves(fd) || getsockname(fd, &address.sock.any, &address.len) != 0) {
        *why = strerror(errno);
        return false;
    }
    address_text(&address.sock.any, address.len, text);
    *out = (struct listen_entry){.kind = kind, .inherited = fd};
    (void)snprintf(out->address, sizeof(out->address), "%s", text);
    return true;
}
