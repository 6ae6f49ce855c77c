#include "claimd/auth/certificates.h"

#include "claimd/auth/token_line.h"
#include "claimd/base/hash.h"
#include "claimd/json/line_list.h"

#include <ctype.h>

struct certificates {
    struct mem *mem;
    char *text;                     /* owned: what the lines point into */
    struct certificate_line *lines; /* owned */
    size_t count;
    uint32_t
        *slots; /* owned: indexes of lines by their subject, or FREE_SLOT; 2^n of them */
    size_t mask;
};

#define FREE_SLOT UINT32_MAX

static const struct bytes dns = BYTES_LIT("dns:");

/* ------------------------------------------------------------------ a line */

static bool
begins_with(struct bytes text, struct bytes with)
{
    return text.len > with.len && memcmp(text.data, with.data, with.len) == 0;
}

static bool
is_subject(struct bytes text)
{
    static const struct bytes kinds[] = {BYTES_LIT("dns:"), BYTES_LIT("email:"),
                                         BYTES_LIT("uri:"), BYTES_LIT("subject:")};
    bool known = false;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        known = known || begins_with(text, kinds[i]);
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return false;
    return known;
}

enum status
certificate_line_read(struct bytes line, struct certificate_line *out, struct reason *why)
{
    struct certificate_line l;
    struct bytes rest = line, role;
    enum status st;

    l.name = token_line_field(&rest);
    role = token_line_field(&rest);
    l.projects = token_line_field(&rest);
    l.subject = bytes_trim(rest);
    if (!bytes_present(l.projects) || l.subject.len == 0)
        return reason_give(
            why, ST_BAD_VALUE,
            "a line must be NAME ROLE PROJECTS dns:HOST (or email:, uri:, subject:)");
    st = token_line_check(l.name, role, l.projects, &l.role, why);
    if (st != ST_OK)
        return st;
    if (!is_subject(l.subject))
        return reason_give(
            why, ST_BAD_VALUE,
            "a certificate is identified by dns:, email:, uri: or subject:, not by %.*s",
            (int)(l.subject.len & 0xff), l.subject.data);
    *out = l;
    return ST_OK;
}

/* ------------------------------------------------------------------ the list */

/* The slot with this subject, or the free one where it would be. They are no secrets. */
static uint32_t *
find_slot(const struct certificates *c, struct bytes subject)
{
    static const struct hash_key key = {0x6365727469666963, 0x6174657320746f6f};
    size_t at = (size_t)hash_bytes(&key, subject) & c->mask;

    while (c->slots[at] != FREE_SLOT &&
           !bytes_equal(c->lines[c->slots[at]].subject, subject))
        at = (at + 1) & c->mask;
    return &c->slots[at];
}

static enum status
add_line(void *ctx, struct bytes line, struct reason *why)
{
    struct certificates *c = ctx;
    struct certificate_line *next = &c->lines[c->count];
    enum status st = certificate_line_read(line, next, why);
    char *text; /* in our own copy */
    uint32_t *slot;

    if (st != ST_OK)
        return st;
    text = (char *)(uintptr_t)next->subject.data;
    if (begins_with(next->subject, dns)) /* names of hosts know no case */
        for (size_t i = 0; i < next->subject.len; i++)
            text[i] = (char)tolower((unsigned char)text[i]);
    slot = find_slot(c, next->subject);
    if (*slot != FREE_SLOT)
        return reason_give(why, ST_BAD_VALUE,
                           "the certificate of %.*s is also that of %.*s",
                           (int)next->name.len, next->name.data,
                           (int)c->lines[*slot].name.len, c->lines[*slot].name.data);
    *slot = (uint32_t)c->count++;
    return ST_OK;
}

/* At most half of the slots are used. */
static enum status
make_room(struct certificates *c, struct bytes list)
{
    const size_t lines = line_list_count(list);
    size_t slots = 4;

    while (slots < 2 * lines)
        slots *= 2;
    c->mask = slots - 1;
    c->text = mem_alloc(c->mem, list.len + 1);
    c->lines = mem_calloc(c->mem, lines, sizeof(*c->lines));
    c->slots = mem_calloc(c->mem, slots, sizeof(*c->slots));
    if (c->text == NULL || c->lines == NULL || c->slots == NULL)
        return ST_NO_MEMORY;
    if (list.len > 0)
        memcpy(c->text, list.data, list.len);
    for (size_t i = 0; i < slots; i++)
        c->slots[i] = FREE_SLOT;
    return ST_OK;
}

enum status
certificates_read(struct mem *mem, struct bytes list, struct certificates **out,
                  size_t *bad_line, struct reason *why)
{
    struct certificates *c = mem_calloc(mem, 1, sizeof(*c));
    enum status st;

    if (c == NULL)
        return ST_NO_MEMORY;
    c->mem = mem;
    st = make_room(c, list);
    if (st == ST_OK)
        st = line_list_read(bytes_of(c->text, list.len), add_line, c, bad_line, why);
    if (st != ST_OK) {
        certificates_free(c);
        return st;
    }
    *out = c;
    return ST_OK;
}

void
certificates_free(struct certificates *c)
{
    if (c == NULL)
        return;
    mem_free(c->mem, c->text);
    mem_free(c->mem, c->lines);
    mem_free(c->mem, c->slots);
    mem_free(c->mem, c);
}

size_t
certificates_count(const struct certificates *c)
{
    return c->count;
}

const struct certificate_line *
certificates_find(const struct certificates *c, const struct certificate *shown)
{
    struct bytes rest = shown->names;
    uint32_t first = FREE_SLOT;

    while (bytes_present(rest)) {
        uint32_t found = *find_slot(c, bytes_cut(&rest, '\n'));

        if (found < first)
            first = found;
    }
    return first == FREE_SLOT ? NULL : &c->lines[first];
}
