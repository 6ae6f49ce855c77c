#include "claimd/json/line_list.h"

enum status
line_list_read(struct bytes list, line_fn *take, void *ctx, size_t *bad_line,
               struct reason *why)
{
    enum status st = ST_OK;

    *bad_line = 0;
    for (size_t number = 1; st == ST_OK && bytes_present(list); number++) {
        const struct bytes line = bytes_trim(bytes_cut(&list, '\n'));

        if (!line_is_comment(line))
            st = take(ctx, line, why);
        if (st != ST_OK)
            *bad_line = number;
    }
    return st;
}

size_t
line_list_count(struct bytes list)
{
    size_t count = 1;

    for (size_t i = 0; i < list.len; i++)
        count += list.data[i] == '\n';
    return count;
}

struct key_reader {
    struct key_ring *ring;
    key_fn *read;
};

static enum status
add_key(void *ctx, struct bytes line, struct reason *why)
{
    const struct key_reader *r = ctx;
    struct key_ring *ring = r->ring;
    enum status st;

    if (ring->count == KEY_RING_MAX)
        return reason_give(why, ST_BAD_VALUE, "the file has more than %d keys",
                           KEY_RING_MAX);
    st = r->read(ring, line, &ring->keys[ring->count], why);
    if (st == ST_OK)
        ring->count++;
    return st;
}

enum status
key_ring_read(struct bytes list, key_fn *read, struct key_ring *out, size_t *bad_line,
              struct reason *why)
{
    struct key_reader reader = {out, read};
    enum status st;

    out->count = 0;
    st = line_list_read(list, add_key, &reader, bad_line, why);
    if (st == ST_OK && out->count == 0)
        return reason_give(why, ST_BAD_VALUE, "the file has no key");
    return st;
}
