/* tzif: reads a zone from its file (RFC 9636). All counts and indices are checked. */
#include "schedule/zone_private.h"

#include <inttypes.h>

enum {
    HEADER_SIZE = 44,
    TYPE_SIZE = 6,    /* offset, daylight, index of its name */
    TYPES_MOST = 256, /* their indices have a byte */
};

/* The counts of a header, in its order. */
struct tzif_header {
    char version;
    uint32_t isut, isstd, leaps, changes, types, names;
};

static enum status
damaged(struct reason *why, const char *what)
{
    return reason_give(why, ST_IO, "the file is damaged: %s", what);
}

static uint32_t
number32(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static int64_t
number64(const char *at)
{
    return (int64_t)((uint64_t)number32(at) << 32 | number32(at + 4));
}

/* Removes and returns the first `len` bytes of *rest. False: there are fewer. */
static bool
cut_bytes(struct bytes *rest, uint64_t len, struct bytes *out)
{
    if (rest->len < len)
        return false;
    *out = bytes_of(rest->data, (size_t)len);
    *rest = bytes_of(rest->data + len, rest->len - (size_t)len);
    return true;
}

static bool
cut_header(struct bytes *rest, struct tzif_header *out)
{
    static const struct bytes magic = BYTES_LIT("TZif");
    struct bytes text;
    const char *counts;

    if (!cut_bytes(rest, HEADER_SIZE, &text) || !bytes_begin_with(text, magic))
        return false;
    counts = text.data + 20;
    *out = (struct tzif_header){.version = text.data[4],
                                .isut = number32(counts),
                                .isstd = number32(counts + 4),
                                .leaps = number32(counts + 8),
                                .changes = number32(counts + 12),
                                .types = number32(counts + 16),
                                .names = number32(counts + 20)};
    return true;
}

/* Removes the block of 32-bit times, which repeats a part of the other. */
static bool
cut_old_block(struct bytes *rest, const struct tzif_header *h)
{
    const uint64_t len = (uint64_t)h->changes * 5 + (uint64_t)h->types * TYPE_SIZE +
                         h->names + (uint64_t)h->leaps * 8 + h->isstd + h->isut;
    struct bytes block;

    return cut_bytes(rest, len, &block);
}

/* The parts of the block of 64-bit times. */
struct tzif_block {
    struct bytes times, indices, types;
};

static bool
cut_block(struct bytes *rest, const struct tzif_header *h, struct tzif_block *out)
{
    struct bytes names, marks;

    return cut_bytes(rest, (uint64_t)h->changes * 8, &out->times) &&
           cut_bytes(rest, h->changes, &out->indices) &&
           cut_bytes(rest, (uint64_t)h->types * TYPE_SIZE, &out->types) &&
           cut_bytes(rest, h->names, &names) &&
           cut_bytes(rest, (uint64_t)h->isstd + h->isut, &marks);
}

static int64_t
type_offset(const struct tzif_block *block, uint32_t type)
{
    return (int32_t)number32(block->types.data + (size_t)type * TYPE_SIZE);
}

static enum status
check_types(const struct tzif_header *h, const struct tzif_block *block,
            struct reason *why)
{
    if (h->types == 0 || h->types > TYPES_MOST)
        return damaged(why, "it has no offsets, or too many");
    for (uint32_t i = 0; i < h->types; i++) {
        const int64_t offset = type_offset(block, i);

        if (offset < -ZONE_OFFSET_MOST || offset > ZONE_OFFSET_MOST)
            return reason_give(why, ST_IO,
                               "the file is damaged: an offset is %" PRId64
                               " seconds. The allowed range is -%d to %d",
                               offset, ZONE_OFFSET_MOST, ZONE_OFFSET_MOST);
    }
    return ST_OK;
}

static enum status
fill_changes(struct zone *zone, const struct tzif_header *h,
             const struct tzif_block *block, struct reason *why)
{
    for (uint32_t i = 0; i < h->changes; i++) {
        const unsigned type = (unsigned char)block->indices.data[i];
        const int64_t at = number64(block->times.data + (size_t)i * 8);

        if (type >= h->types)
            return damaged(why, "a change has an unknown offset");
        if (i > 0 && at <= zone->changes[i - 1].at)
            return damaged(why, "its changes are not in order");
        zone->changes[i] = (struct zone_change){at, type_offset(block, type)};
    }
    zone->count = h->changes;
    zone->first_offset = type_offset(block, 0);
    return ST_OK;
}

/* The footer is a line of its own, which may be empty. */
static enum status
fill_rule(struct zone *zone, struct bytes footer, struct reason *why)
{
    const char *end = NULL;

    if (footer.len > 1 && footer.data[0] == '\n')
        end = memchr(footer.data + 1, '\n', footer.len - 1);
    if (end == NULL)
        return damaged(why, "its last line is incomplete");
    zone->has_rule = end != footer.data + 1;
    footer = bytes_of(footer.data + 1, (size_t)(end - footer.data) - 1);
    if (zone->has_rule && !posix_tz_parse(footer, &zone->rule))
        return damaged(why, "its last line is no rule");
    return ST_OK;
}

enum status
zone_read(struct mem *mem, struct bytes file, struct zone **out, struct reason *why)
{
    struct tzif_header header;
    struct tzif_block block;
    struct zone *zone;
    enum status st;

    if (!cut_header(&file, &header) || header.version < '2')
        return reason_give(why, ST_BAD_VALUE,
                           "the file is no TZif file of version 2 or later");
    if (!cut_old_block(&file, &header) || !cut_header(&file, &header))
        return damaged(why, "it is too short");
    if (header.leaps != 0)
        return reason_give(why, ST_BAD_VALUE, "the file counts leap seconds");
    if (!cut_block(&file, &header, &block))
        return damaged(why, "it is too short");
    st = check_types(&header, &block, why);
    if (st != ST_OK)
        return st;
    zone = zone_new(mem, header.changes);
    if (zone == NULL)
        return ST_NO_MEMORY;
    st = fill_changes(zone, &header, &block, why);
    if (st == ST_OK)
        st = fill_rule(zone, file, why);
    if (st == ST_OK)
        *out = zone;
    else
        zone_unref(zone);
    return st;
}
