#include "claimd/json/line_list.h"

enum status
line_list_read(struct bytes list, line_fn *read, void *ctx, size_t *bad_line,
               struct reason *why)
{
    enum status st = ST_OK;

    *bad_line = 0;
    for (size_t number = 1; st == ST_OK && bytes_present(list); number++) {
        const struct bytes line = bytes_trim(bytes_cut(&list, '\n'));

        if (!line_is_comment(line))
            st = read(ctx, line, why);
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

void
shared_keys_init(struct shared_keys *keys, void (*replaced)(struct shared_keys *keys))
{
    keys->ring.count = 0;
    keys->replaced = replaced;
    lock_init(&keys->lock);
}

void
shared_keys_fini(struct shared_keys *keys)
{
    lock_fini(&keys->lock);
    explicit_bzero(&keys->ring, sizeof(keys->ring));
}

void
shared_keys_copy(struct shared_keys *keys, struct key_ring *out)
{
    lock_acquire(&keys->lock);
    *out = keys->ring;
    lock_release(&keys->lock);
}

static void
set_keys(struct shared_keys *keys, const struct key_ring *ring)
{
    lock_acquire(&keys->lock);
    keys->ring = *ring;
    if (keys->replaced != NULL)
        keys->replaced(keys);
    lock_release(&keys->lock);
}

enum status
shared_keys_replace(struct shared_keys *keys, struct bytes list, key_fn *read,
                    size_t *bad_line, struct reason *why)
{
    struct key_ring ring = {.count = 0};
    struct key_reader reader = {&ring, read};
    enum status st = line_list_read(list, add_key, &reader, bad_line, why);

    if (st == ST_OK && ring.count == 0)
        st = reason_give(why, ST_BAD_VALUE, "the file has no key");
    if (st == ST_OK)
        set_keys(keys, &ring);
    explicit_bzero(&ring, sizeof(ring));
    return st;
}

void
shared_keys_swap(struct shared_keys *keys, struct shared_keys *with)
{
    struct key_ring mine, others;

    shared_keys_copy(keys, &mine);
    shared_keys_copy(with, &others);
    set_keys(keys, &others);
    set_keys(with, &mine);
    explicit_bzero(&mine, sizeof(mine));
    explicit_bzero(&others, sizeof(others));
}
