#include "claimd/schedule/zones.h"

#include "claimd/base/lock.h"
#include "schedule/small_file.h"
#include "schedule/zone_names.h"
#include "schedule/zone_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tells one version of a file from another. */
struct stamp {
    int64_t size, inode, modified_s, modified_ns;
};

struct zone_entry {
    char name[ZONE_NAME_MOST + 1];
    struct zone *zone; /* a reference */
    struct stamp stamp;
    int64_t looked_ms; /* when the file was looked at last */
};

struct zones {
    struct mem *mem;
    char *directory;
    struct zone *utc;
    struct lock lock;                       /* zones.lock: the entries */
    struct zone_entry *entries[ZONES_MOST]; /* owned, ordered by name */
    size_t count;
};

/* ------------------------------------------------------------------ entries */

/* The index of the entry with this name, or of the one before which it belongs. */
static size_t
entry_find(const struct zones *zones, struct bytes name, bool *found)
{
    size_t low = 0, high = zones->count;

    *found = false;
    while (low < high && !*found) {
        const size_t middle = low + (high - low) / 2;
        const int order = bytes_compare(bytes_str(zones->entries[middle]->name), name);

        *found = order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return high;
}

static bool
stamp_equal(const struct stamp *a, const struct stamp *b)
{
    return a->size == b->size && a->inode == b->inode && a->modified_s == b->modified_s &&
           a->modified_ns == b->modified_ns;
}

/* True: *known, a reference, is in force. False: the caller looks at the file, and no
 * other thread does for an hour. *known is the old zone then, or NULL. */
static bool
zones_find(struct zones *zones, struct bytes name, int64_t now_ms, struct zone **known,
           struct stamp *stamp)
{
    bool found, in_force = false;
    size_t at;

    *known = NULL;
    lock_acquire(&zones->lock);
    at = entry_find(zones, name, &found);
    if (found) {
        struct zone_entry *e = zones->entries[at];

        *known = zone_ref(e->zone);
        *stamp = e->stamp;
        in_force = now_ms >= e->looked_ms && now_ms - e->looked_ms < ZONES_LOOK_MS;
        if (!in_force)
            e->looked_ms = now_ms;
    }
    lock_release(&zones->lock);
    return in_force;
}

/* Inserts `fresh` or updates the entry with its name. Returns a reference to the zone in
 * force, and the block that is not used, for the caller to free. */
static struct zone *
zones_keep(struct zones *zones, struct zone_entry *fresh, struct zone_entry **unused)
{
    struct zone *zone = zone_ref(fresh->zone);
    bool found;
    size_t at;

    *unused = fresh;
    lock_acquire(&zones->lock);
    at = entry_find(zones, bytes_str(fresh->name), &found);
    if (found && stamp_equal(&zones->entries[at]->stamp, &fresh->stamp)) {
        zone_unref(zone); /* another thread has read the same file */
        zone = zone_ref(zones->entries[at]->zone);
    } else if (found) {
        *unused = zones->entries[at];
        zones->entries[at] = fresh;
    } else if (zones->count < ZONES_MOST) {
        memmove(&zones->entries[at + 1], &zones->entries[at],
                (zones->count - at) * sizeof(zones->entries[0]));
        zones->entries[at] = fresh;
        zones->count++;
        *unused = NULL;
    }
    lock_release(&zones->lock);
    return zone;
}

static void
entry_free(struct mem *mem, struct zone_entry *e)
{
    if (e != NULL)
        zone_unref(e->zone);
    mem_free(mem, e);
}

/* ------------------------------------------------------------------ files */

/* `directory` is a descriptor, borrowed. */
static enum status
refuse_unknown(const struct zones *zones, int directory, struct bytes name,
               struct reason *why)
{
    char near[ZONE_NAME_MOST + 1];

    if (zone_names_nearest(zones->mem, directory, name, near))
        return reason_give(why, ST_BAD_VALUE,
                           "time zone is %s, which does not exist. Did you mean %s?",
                           received(name).text, near);
    return reason_give(why, ST_BAD_VALUE,
                       "time zone is %s, which does not exist. Write a name of tzdata, "
                       "such as Europe/Berlin or UTC",
                       received(name).text);
}

static enum status
refuse_file(const struct zones *zones, struct bytes name, int error, struct reason *why)
{
    return reason_give(why, ST_IO, "time zone %s: the file in %s cannot be read: %s",
                       received(name).text, zones->directory, strerror(error));
}

/* Opens the directory of tzdata. */
static enum status
open_directory(const struct zones *zones, int *fd, struct reason *why)
{
    *fd = open(zones->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd >= 0)
        return ST_OK;
    if (errno == ENOENT || errno == ENOTDIR)
        return reason_give(why, ST_IO,
                           "time zones: there is no directory %s. Install the package "
                           "tzdata",
                           zones->directory);
    return reason_give(why, ST_IO, "time zones: %s: %s", zones->directory,
                       strerror(errno));
}

static enum status
open_file_in(const struct zones *zones, int directory, struct bytes name, int *fd,
             struct stat *file, struct reason *why)
{
    char path[ZONE_NAME_MOST + 1] = "", *to = path;
    int error = 0;

    (void)bytes_copy_to(&to, name);
    *fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*fd < 0 || fstat(*fd, file) != 0)
        error = errno;
    if (error == 0 && S_ISREG(file->st_mode))
        return ST_OK;
    if (*fd >= 0)
        (void)close(*fd);
    if (error == 0 || error == ENOENT || error == ENOTDIR)
        return refuse_unknown(zones, directory, name, why);
    return refuse_file(zones, name, error, why);
}

static enum status
open_file(const struct zones *zones, struct bytes name, int *fd, struct stat *file,
          struct reason *why)
{
    int directory;
    enum status st = open_directory(zones, &directory, why);

    if (st != ST_OK)
        return st;
    st = open_file_in(zones, directory, name, fd, file, why);
    (void)close(directory);
    return st;
}

/* Reads the zone from an open file of this size. */
static enum status
read_file(struct zones *zones, struct bytes name, int fd, int64_t size, struct zone **out,
          struct reason *why)
{
    struct reason what = {""};
    struct bytes text;
    enum status st;
    int error = 0;

    if (size > ZONE_FILE_MOST)
        return reason_give(why, ST_BAD_VALUE,
                           "time zone %s: the file is larger than %d bytes, the maximum",
                           received(name).text, ZONE_FILE_MOST);
    st = small_file_read(zones->mem, fd, (size_t)size, &text, &error);
    if (st == ST_IO)
        return refuse_file(zones, name, error, why);
    if (st != ST_OK)
        return st;
    st = zone_read(zones->mem, text, out, &what);
    small_file_free(zones->mem, text);
    if (st != ST_OK)
        (void)reason_give(why, st, "time zone %s: %s", received(name).text, what.text);
    return st;
}

/* Reads a zone. *out is NULL if the file is that of *known, which may be NULL. */
static enum status
zones_load(struct zones *zones, struct bytes name, const struct stamp *known,
           struct zone_entry **out, struct reason *why)
{
    struct zone_entry *e;
    struct stat file;
    char *to;
    int fd;
    enum status st = open_file(zones, name, &fd, &file, why);

    *out = NULL;
    if (st != ST_OK)
        return st;
    e = mem_calloc(zones->mem, 1, sizeof(*e));
    if (e == NULL)
        goto out_of_memory;
    e->stamp = (struct stamp){file.st_size, (int64_t)file.st_ino, file.st_mtim.tv_sec,
                              file.st_mtim.tv_nsec};
    to = e->name;
    (void)bytes_copy_to(&to, name);
    if (known == NULL || !stamp_equal(known, &e->stamp))
        st = read_file(zones, name, fd, file.st_size, &e->zone, why);
    if (st == ST_OK && e->zone != NULL)
        *out = e;
    else
        mem_free(zones->mem, e);
    (void)close(fd);
    return st;
out_of_memory:
    (void)close(fd);
    return ST_NO_MEMORY;
}

/* ------------------------------------------------------------------ interface */

static bool
is_utc(struct bytes name)
{
    return bytes_equal_str(name, "UTC") || bytes_equal_str(name, "Etc/UTC");
}

enum status
zones_get(struct zones *zones, struct bytes name, int64_t now_ms, struct zone **out,
          struct reason *why)
{
    struct zone_entry *fresh, *unused;
    struct zone *known;
    struct stamp stamp;
    enum status st = zone_check_name(name, why);

    if (st != ST_OK)
        return st;
    if (is_utc(name)) {
        *out = zone_ref(zones->utc);
        return ST_OK;
    }
    if (zones_find(zones, name, now_ms, &known, &stamp)) {
        *out = known;
        return ST_OK;
    }
    st = zones_load(zones, name, known == NULL ? NULL : &stamp, &fresh, why);
    if (fresh == NULL) {
        /* The file is as before, or unreadable during an update: the old zone stays. */
        *out = known;
        return known == NULL ? st : ST_OK;
    }
    fresh->looked_ms = now_ms;
    *out = zones_keep(zones, fresh, &unused);
    entry_free(zones->mem, unused);
    zone_unref(known);
    return ST_OK;
}

enum status
zones_open(struct mem *mem, const char *directory, struct zones **out)
{
    struct zones *zones = mem_calloc(mem, 1, sizeof(*zones));
    const size_t size = strlen(directory) + 1;

    if (zones == NULL)
        return ST_NO_MEMORY;
    zones->mem = mem;
    zones->directory = mem_alloc(mem, size);
    zones->utc = zone_new(mem, 0);
    lock_init(&zones->lock);
    if (zones->directory == NULL || zones->utc == NULL) {
        zones_close(zones);
        return ST_NO_MEMORY;
    }
    memcpy(zones->directory, directory, size);
    *out = zones;
    return ST_OK;
}

void
zones_close(struct zones *zones)
{
    if (zones == NULL)
        return;
    for (size_t i = 0; i < zones->count; i++)
        entry_free(zones->mem, zones->entries[i]);
    zone_unref(zones->utc);
    lock_fini(&zones->lock);
    mem_free(zones->mem, zones->directory);
    mem_free(zones->mem, zones);
}
