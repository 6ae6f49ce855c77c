#include "support/sim_file.h"

#include <stdlib.h>
#include <string.h>

enum { SECTORS = SIM_PAGE / SIM_SECTOR };

struct sim_page {
    uint8_t bytes[SIM_PAGE];              /* as they are read */
    struct sim_sector *unsynced[SECTORS]; /* NULL: as it is durable */
};

/* A sector between two of its writes. */
struct older {
    struct older *before;
    uint8_t bytes[SIM_SECTOR];
};

struct sim_sector {
    struct sim_sector *next; /* of the file */
    struct sim_page *page;
    uint64_t at;         /* its first byte, in the file */
    unsigned writes;     /* since it was durable */
    bool dropped;        /* by a sync that failed, and still read */
    struct older *older; /* after each write but the last, which is in the page */
    uint8_t durable[SIM_SECTOR];
};

void *
sim_alloc(size_t size)
{
    void *block = calloc(1, size);

    if (block == NULL)
        abort();
    return block;
}

unsigned
sim_bias(struct random *dice)
{
    static const unsigned percent[] = {0, 10, 50, 90, 100};

    return percent[random_below(dice, sizeof(percent) / sizeof(percent[0]))];
}

/* ------------------------------------------------------------------ sectors */

/* The sector as it is read. */
static uint8_t *
bytes_of(const struct sim_sector *s)
{
    return s->page->bytes + s->at % SIM_PAGE;
}

static struct sim_sector **
slot_of(const struct sim_sector *s)
{
    return &s->page->unsynced[s->at % SIM_PAGE / SIM_SECTOR];
}

static void
free_older(struct sim_sector *s)
{
    while (s->older != NULL) {
        struct older *o = s->older;

        s->older = o->before;
        free(o);
    }
}

/* Takes the first of the unsynced sectors out of the file; NULL if there is none. */
static struct sim_sector *
take_first(struct sim_file *f)
{
    struct sim_sector *s = f->unsynced;

    if (s != NULL)
        f->unsynced = s->next;
    return s;
}

/* It is durable as it is read now. */
static void
sector_free(struct sim_sector *s)
{
    *slot_of(s) = NULL;
    free_older(s);
    free(s);
}

/* Puts it back to what it was after so many of its writes. */
static void
put_back(struct sim_sector *s, unsigned writes)
{
    const struct older *o = s->older;

    if (writes == s->writes)
        return;
    for (unsigned at = s->writes - 1; writes > 0 && at > writes; at--)
        o = o->before;
    memcpy(bytes_of(s), writes == 0 ? s->durable : o->bytes, SIM_SECTOR);
}

/* Remembers what the sector is before it is written to. */
static void
remember(struct sim_file *f, struct sim_page *page, uint64_t at)
{
    struct sim_sector **slot = &page->unsynced[at % SIM_PAGE / SIM_SECTOR];
    struct sim_sector *s = *slot;
    struct older *o;

    if (s == NULL) {
        s = *slot = sim_alloc(sizeof(*s));
        *s = (struct sim_sector){.next = f->unsynced, .page = page, .at = at};
        memcpy(s->durable, bytes_of(s), SIM_SECTOR);
        f->unsynced = s;
    } else if (s->dropped) {
        s->writes = 0; /* dropped data comes back with this write or not at all */
    } else {
        o = sim_alloc(sizeof(*o));
        o->before = s->older;
        memcpy(o->bytes, bytes_of(s), SIM_SECTOR);
        s->older = o;
    }
    s->writes++;
    s->dropped = false;
}

/* ------------------------------------------------------------------ pages */

static const struct sim_page *
find_page(const struct sim_file *f, uint64_t offset)
{
    return offset / SIM_PAGE < f->capacity ? f->pages[offset / SIM_PAGE] : NULL;
}

static struct sim_page *
make_page(struct sim_file *f, uint64_t offset)
{
    size_t index = (size_t)(offset / SIM_PAGE), capacity = f->capacity;

    if (index >= capacity) {
        capacity = capacity == 0 ? 16 : capacity;
        while (capacity <= index)
            capacity *= 2;
        f->pages = realloc(f->pages, capacity * sizeof(*f->pages));
        if (f->pages == NULL)
            abort();
        memset(f->pages + f->capacity, 0, (capacity - f->capacity) * sizeof(*f->pages));
        f->capacity = capacity;
    }
    if (f->pages[index] == NULL)
        f->pages[index] = sim_alloc(sizeof(*f->pages[index]));
    return f->pages[index];
}

/* How many of len bytes from offset stand in the block of this size in which they
 * begin. */
static size_t
in_block(uint64_t offset, size_t len, size_t block)
{
    size_t left = block - (size_t)(offset % block);

    return len < left ? len : left;
}

void
sim_file_fini(struct sim_file *f)
{
    struct sim_sector *s;

    while ((s = take_first(f)) != NULL)
        sector_free(s);
    for (size_t i = 0; i < f->capacity; i++)
        free(f->pages[i]);
    free(f->pages);
    *f = (struct sim_file){0};
}

/* --------------------------------------------------------------- reading and writing */

size_t
sim_file_read(const struct sim_file *f, uint64_t offset, void *to, size_t len)
{
    size_t done, part;

    if (offset >= f->size)
        return 0;
    if (len > f->size - offset)
        len = (size_t)(f->size - offset);
    for (done = 0; done < len; done += part) {
        const struct sim_page *page = find_page(f, offset + done);

        part = in_block(offset + done, len - done, SIM_PAGE);
        if (page != NULL)
            memcpy((char *)to + done, page->bytes + (offset + done) % SIM_PAGE, part);
        else
            memset((char *)to + done, 0, part);
    }
    return len;
}

void
sim_file_write(struct sim_file *f, uint64_t offset, const void *from, size_t len)
{
    size_t part;

    for (size_t done = 0; done < len; done += part) {
        uint64_t at = offset + done;
        struct sim_page *page = make_page(f, at);

        part = in_block(at, len - done, SIM_SECTOR);
        remember(f, page, at - at % SIM_SECTOR);
        memcpy(page->bytes + at % SIM_PAGE, (const char *)from + done, part);
    }
    sim_file_grow(f, offset + len);
}

void
sim_file_grow(struct sim_file *f, uint64_t size)
{
    if (f->size < size)
        f->size = size;
}

/* Zeros, however a crash may leave it. */
static bool
sector_blank(const struct sim_file *f, uint64_t at)
{
    static const uint8_t zeros[SIM_SECTOR];
    const struct sim_page *page = find_page(f, at);
    const struct sim_sector *s =
        page == NULL ? NULL : page->unsynced[at % SIM_PAGE / SIM_SECTOR];
    bool blank =
        page == NULL || memcmp(page->bytes + at % SIM_PAGE, zeros, SIM_SECTOR) == 0;

    if (s == NULL)
        return blank;
    for (const struct older *o = s->older; o != NULL; o = o->before)
        blank = blank && memcmp(o->bytes, zeros, SIM_SECTOR) == 0;
    return blank && memcmp(s->durable, zeros, SIM_SECTOR) == 0;
}

bool
sim_file_cut(struct sim_file *f, uint64_t size)
{
    uint64_t end = f->size;
    bool blank = true;

    if (size >= end)
        return true;
    f->size = size;
    for (uint64_t at = size; at < end && at / SIM_PAGE < f->capacity; at += SIM_SECTOR)
        blank = blank && sector_blank(f, at);
    return blank;
}

/* ------------------------------------------------------------------ durable or not */

void
sim_file_sync(struct sim_file *f)
{
    struct sim_sector *s, *dropped = NULL;

    while ((s = take_first(f)) != NULL) {
        if (s->dropped) {
            s->next = dropped;
            dropped = s;
        } else {
            sector_free(s);
        }
    }
    f->unsynced = dropped;
    f->durable_size = f->size;
}

void
sim_file_drop(struct sim_file *f, bool lying)
{
    for (struct sim_sector *s = f->unsynced; s != NULL; s = s->next) {
        s->dropped = true;
        free_older(s);
    }
    if (!lying)
        sim_file_forget(f);
}

void
sim_file_forget(struct sim_file *f)
{
    struct sim_sector *s, *kept = NULL;

    while ((s = take_first(f)) != NULL) {
        if (s->dropped) {
            put_back(s, 0);
            sector_free(s);
        } else {
            s->next = kept;
            kept = s;
        }
    }
    f->unsynced = kept;
}

/* How long the file is after a crash. */
static uint64_t
crash_size(const struct sim_file *f, struct random *dice)
{
    uint64_t grown = f->size - f->durable_size;

    if (dice == NULL || grown == 0)
        return f->durable_size;
    if (f->size < f->durable_size)
        return random_chance(dice, 50) ? f->size : f->durable_size;
    switch (random_below(dice, 3)) {
    case 0:
        return f->durable_size;
    case 1:
        return f->size;
    default:
        return f->durable_size + random_below(dice, grown);
    }
}

/* Which of its writes a sector has kept: so many of them. */
static unsigned
crash_writes(const struct sim_sector *s, struct random *dice, unsigned bias)
{
    if (dice == NULL || s->dropped || !random_chance(dice, bias))
        return 0;
    if (bias == 100)
        return s->writes;
    return 1 + (unsigned)random_below(dice, s->writes);
}

void
sim_file_crash(struct sim_file *f, struct random *dice)
{
    uint64_t size = crash_size(f, dice);
    unsigned bias = dice == NULL ? 0 : sim_bias(dice);
    struct sim_sector *s;

    while ((s = take_first(f)) != NULL) {
        put_back(s, crash_writes(s, dice, bias));
        /* Behind the end are zeros, should the file grow again. */
        if (s->at >= size)
            memset(bytes_of(s), 0, SIM_SECTOR);
        else if (size - s->at < SIM_SECTOR)
            memset(bytes_of(s) + (size - s->at), 0, SIM_SECTOR - (size - s->at));
        sector_free(s);
    }
    f->size = f->durable_size = size;
}

void
sim_file_flip(struct sim_file *f, uint64_t offset, unsigned bit)
{
    struct sim_page *page = make_page(f, offset);
    struct sim_sector *s = page->unsynced[offset % SIM_PAGE / SIM_SECTOR];
    uint8_t *sector = page->bytes + offset % SIM_PAGE / SIM_SECTOR * SIM_SECTOR;

    if (s != NULL)
        sector = s->durable;
    sector[offset % SIM_SECTOR] ^= (uint8_t)(1U << bit);
}

/* ------------------------------------------------------------------ copies */

static void
copy_sector(const struct sim_sector *s, struct sim_file *to)
{
    struct sim_sector *copy = sim_alloc(sizeof(*copy));
    struct older **end = &copy->older;

    *copy = *s;
    copy->page = make_page(to, s->at);
    copy->next = to->unsynced;
    to->unsynced = *slot_of(copy) = copy;
    for (const struct older *o = s->older; o != NULL; o = o->before) {
        *end = sim_alloc(sizeof(**end));
        memcpy((*end)->bytes, o->bytes, SIM_SECTOR);
        end = &(*end)->before;
    }
    *end = NULL;
}

void
sim_file_copy(const struct sim_file *f, struct sim_file *to)
{
    to->size = f->size;
    to->durable_size = f->durable_size;
    for (size_t i = 0; i < f->capacity; i++) {
        if (f->pages[i] != NULL)
            memcpy(make_page(to, (uint64_t)i * SIM_PAGE)->bytes, f->pages[i]->bytes,
                   SIM_PAGE);
    }
    for (const struct sim_sector *s = f->unsynced; s != NULL; s = s->next)
        copy_sector(s, to);
}
