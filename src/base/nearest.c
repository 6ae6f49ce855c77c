#include "claimd/base/nearest.h"

#include <stdio.h>

/* Longer names are not compared. */
enum { NAME_MOST = 63 };

struct nearest
nearest_begin(struct bytes name)
{
    return (struct nearest){.name = name,
                            .distance = name.len / 3 > 1 ? name.len / 3
                                        : name.len < 2   ? 0
                                                         : 1};
}

static char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Characters to insert, delete, change or swap, so that one text becomes the other. Both
 * are short. */
static size_t
edit_distance(struct bytes a, struct bytes b)
{
    size_t rows[3][NAME_MOST + 1] = {{0}};
    size_t *before = rows[0], *last = rows[1], *row = rows[2], *spare;

    for (size_t j = 0; j <= b.len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            const char x = lower(a.data[i - 1]), y = lower(b.data[j - 1]);

            row[j] = least(least(row[j - 1], last[j]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == lower(b.data[j - 2]) && lower(a.data[i - 2]) == y)
                row[j] = least(row[j], before[j - 2] + 1);
        }
        spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[b.len];
}

/* True if one name begins as the other does, but for its last character: _max_claims,
 * _max_claim_count. */
static bool
begins_alike(struct bytes name, struct bytes other)
{
    enum { LEAST = 5 };
    const size_t len = name.len - 1;

    return len >= LEAST && other.len >= len &&
           bytes_equal_nocase(bytes_of(name.data, len), bytes_of(other.data, len));
}

void
nearest_offer(struct nearest *n, const char *known)
{
    const struct bytes other = bytes_str(known);
    size_t distance;

    if (n->name.len == 0 || n->name.len > NAME_MOST || other.len > NAME_MOST)
        return;
    distance = edit_distance(n->name, other);
    if (distance > n->distance && n->found == NULL && begins_alike(n->name, other))
        distance = n->distance;
    if (distance < n->distance || (distance == n->distance && n->found == NULL)) {
        n->found = known;
        n->distance = distance;
    }
}

const char *
nearest_of(struct bytes name, const char *const *known, size_t count)
{
    struct nearest near = nearest_begin(name);

    for (size_t i = 0; i < count; i++)
        nearest_offer(&near, known[i]);
    return near.found == NULL || bytes_equal_str(name, near.found) ? NULL : near.found;
}

struct nearest_hint
nearest_hint(struct bytes name, const char *const *known, size_t count)
{
    const char *found = nearest_of(name, known, count);
    struct nearest_hint hint = {.text = ""};

    if (found != NULL)
        (void)snprintf(hint.text, sizeof(hint.text), " (did you mean \"%s\"?)", found);
    return hint;
}
