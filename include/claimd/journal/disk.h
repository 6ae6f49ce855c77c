/*
 * disk: the operations that the journal needs from a file system.
 *
 * A disk is one directory. Files in it are named without a path. There is the real one
 * (disk_open(), POSIX), and one for tests (tests/support/sim_disk.h), which loses
 * unsynced data, tears writes, fails and fills up.
 *
 *   Errors   0, or an errno: ENOSPC and EDQUOT: the disk is full; EWOULDBLOCK: another
 *            process has the lock; ENOENT, EEXIST, EIO... Failed calls are not repeated
 *   Names    see disk_name_check(). Only regular files can be opened: ELOOP for a
 *            symbolic link, EISDIR for a directory, EINVAL or ENXIO for anything else
 *   Order    disk_sync() makes the writes to its file durable, in any order.
 *            disk_sync_names() makes durable which files exist and their names
 *   Threads  any; one thread at a time writes a file
 */
#ifndef CLAIMD_JOURNAL_DISK_H
#define CLAIMD_JOURNAL_DISK_H

#include "claimd/base/counter.h"
#include "claimd/base/status.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For histograms of durations, in microseconds. */
extern const struct bucket_bounds disk_bounds_us;

struct disk;
struct disk_file; /* an open file; private to its disk */

enum { DISK_NAME_CAP = 64 }; /* including the NUL */

enum disk_mode {
    DISK_READ,
    DISK_WRITE, /* read and write an existing file */
    DISK_NEW    /* read and write a new file; EEXIST */
};

/* read and write may be partial. A read of no bytes means the end of the file. */
struct disk_vtable {
    int (*open)(struct disk *d, const char *name, enum disk_mode mode,
                struct disk_file **out);
    void (*close)(struct disk *d, struct disk_file *f);
    int (*read)(struct disk *d, struct disk_file *f, uint64_t offset, void *to,
                size_t len, size_t *got);
    int (*write)(struct disk *d, struct disk_file *f, uint64_t offset, const void *from,
                 size_t len, size_t *done);
    int (*sync)(struct disk *d, struct disk_file *f);
    int (*allocate)(struct disk *d, struct disk_file *f, uint64_t size);
    int (*cut)(struct disk *d, struct disk_file *f, uint64_t size);
    int (*size)(struct disk *d, struct disk_file *f, uint64_t *out);
    void (*forget)(struct disk *d, struct disk_file *f);
    int (*rename)(struct disk *d, const char *from, const char *to);
    int (*unlink)(struct disk *d, const char *name);
    int (*list)(struct disk *d, void (*each)(void *arg, const char *name), void *arg);
    int (*sync_names)(struct disk *d);
    int (*lock)(struct disk *d, const char *name, struct disk_file **out);
    int (*check_lock)(struct disk *d, const char *name, const struct disk_file *f);
    int (*free_bytes)(struct disk *d, uint64_t *out);
    void (*shut)(struct disk *d);
};

/* An implementation embeds it first. */
struct disk {
    const struct disk_vtable *vtable;
};

/*
 * Opens a directory; the caller calls disk_shut(). `make`: makes it if it does not exist
 * (0700; its parent must exist), and makes its name durable. ENOMEM, or an error of the
 * system.
 */
int disk_open(const char *path, bool make, struct disk **out);

/* The error of a file system that cannot sync directories. */
enum { DISK_CANNOT_SYNC_NAMES = EOPNOTSUPP };

/* Describes an error in out[], and returns it, with advice for the operator. */
const char *disk_error_text(int error, char out[ERRNO_TEXT_CAP]);

/* True if a call failed because the disk is full. */
static inline bool
disk_is_full(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/* Checks a name: EINVAL if it is "", ".", ".." or has a '/', ENAMETOOLONG. */
int disk_name_check(const char *name);

/* The macros below call an operation. `d` must have no side effects. */

/* Closes a disk without open files. NULL has no effect. */
static inline void
disk_shut(struct disk *d)
{
    if (d != NULL)
        d->vtable->shut(d);
}

/* Opens a file; the caller calls disk_close(). */
#define disk_file_open(d, name, mode, out) ((d)->vtable->open((d), (name), (mode), (out)))

/* NULL has no effect. */
static inline void
disk_close(struct disk *d, struct disk_file *f)
{
    if (f != NULL)
        d->vtable->close(d, f);
}

/* Reads len bytes from offset; fewer (*got) only at the end of the file. */
int disk_read(struct disk *d, struct disk_file *f, uint64_t offset, void *to, size_t len,
              size_t *got);

/* Writes all bytes at offset, with as many calls as that takes. */
int disk_write(struct disk *d, struct disk_file *f, uint64_t offset, const void *from,
               size_t len);

/* If it returns 0, all earlier writes are durable. After an error their state is
 * unknown. */
#define disk_sync(d, f) ((d)->vtable->sync((d), (f)))

/*
 * Extends the file to `size` bytes, unless it is longer, with zeros, and allocates their
 * space: later writes there cannot fail because the disk is full. After a failure the
 * file has its old size.
 */
#define disk_allocate(d, f, size) ((d)->vtable->allocate((d), (f), (size)))

/* Truncates the file to `size`, and frees the space behind it, where there must be only
 * zeros. So a crash that undoes this is harmless. */
#define disk_cut(d, f, size) ((d)->vtable->cut((d), (f), (size)))

#define disk_size(d, f, out) ((d)->vtable->size((d), (f), (out)))

/* Makes later reads of a synced file come from the device, not from memory, if the file
 * system can do that. */
#define disk_forget(d, f) ((d)->vtable->forget((d), (f)))

/* Renames a file atomically, and replaces a file of that name. */
#define disk_rename(d, from, to) ((d)->vtable->rename((d), (from), (to)))

#define disk_unlink(d, name) ((d)->vtable->unlink((d), (name)))

/* Calls `each` with every name in the directory, in no order. Long names are truncated.
 * `each` may use the disk. */
#define disk_list(d, each, arg) ((d)->vtable->list((d), (each), (arg)))

/* If it returns 0, all earlier creations, renames and removals of files are durable. */
#define disk_sync_names(d) ((d)->vtable->sync_names((d)))

/*
 * Opens or makes the file, and locks it and the directory while the file is open and the
 * process lives. EWOULDBLOCK: another process (or another open file of this one) has one
 * of the locks. The lock of the directory remains if the file is deleted. File systems
 * without such locks do without.
 */
#define disk_lock(d, name, out) ((d)->vtable->lock((d), (name), (out)))

/* Checks that the locked file still has its name. ESTALE: it was deleted or replaced, and
 * another process may have locked its successor. */
#define disk_check_lock(d, name, f) ((d)->vtable->check_lock((d), (name), (f)))

/* Bytes that this process can still write. */
#define disk_free_bytes(d, out) ((d)->vtable->free_bytes((d), (out)))

#endif
