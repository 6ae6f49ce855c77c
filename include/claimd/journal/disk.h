/*
 * disk: what the journal asks of a file system, and nothing else.
 *
 * A disk is one directory; files in it are named without a path. There are two: the real
 * one (disk_open(), POSIX), and one that tests own (tests/support/sim_disk.h), which forgets
 * what was not synced, tears, fails and fills up.
 *
 *   Errors   0, or an errno: ENOSPC and EDQUOT the disk is full, EWOULDBLOCK somebody else has
 *            the lock, ENOENT, EEXIST, EIO... What failed is not tried again here
 *   Names    as disk_name_check() has them. Only regular files are opened: ELOOP for a
 *            symbolic link, EISDIR for a directory, EINVAL or ENXIO for whatever else
 *   Order    writes become durable with disk_sync() of their file, in any order before; that
 *            a file is there, is gone or has another name, with disk_sync_names()
 *   Threads  any; a file is written by one at a time
 */
#ifndef CLAIMD_JOURNAL_DISK_H
#define CLAIMD_JOURNAL_DISK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk;
struct disk_file; /* an open file; private to its disk */

enum { DISK_NAME_CAP = 64 }; /* with its NUL */

enum disk_mode {
    DISK_READ,
    DISK_WRITE, /* read and write a file that is there */
    DISK_NEW    /* the same with a new one; EEXIST */
};

/* read and write may do less than they are asked for, but nothing only at the end of a file. */
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
 * The directory with this path, owned: disk_shut() it. With `make` it is made if it is not
 * there (0700; what it stands in must be), and that is made durable. ENOMEM, or what the
 * system says.
 */
int disk_open(const char *path, bool make, struct disk **out);

/* For errno_text(). */
#define DISK_ADVICE                                                                      \
    "The user of the service must own the directory and all its files (chown -R USER "   \
    "DIR)"

/* Has it failed for want of room? */
static inline bool
disk_is_full(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/* What every disk says of a name: EINVAL if it is "", ".", ".." or has a '/', ENAMETOOLONG. */
int disk_name_check(const char *name);

/* The macros below call an operation. `d` must have no side effects. */

/* Its files have been closed before. NULL is fine. */
static inline void
disk_shut(struct disk *d)
{
    if (d != NULL)
        d->vtable->shut(d);
}

/* Opens a file, owned: disk_close() it. */
#define disk_file_open(d, name, mode, out) ((d)->vtable->open((d), (name), (mode), (out)))

/* NULL is fine. */
static inline void
disk_close(struct disk *d, struct disk_file *f)
{
    if (f != NULL)
        d->vtable->close(d, f);
}

/* Reads len bytes from offset; fewer (*got) only at the end of the file. */
int disk_read(struct disk *d, struct disk_file *f, uint64_t offset, void *to, size_t len,
              size_t *got);

/* Writes all of it at offset, whatever number of calls that takes. */
int disk_write(struct disk *d, struct disk_file *f, uint64_t offset, const void *from,
               size_t len);

/* What was written before is durable when it returns 0. After an error nobody knows. */
#define disk_sync(d, f) ((d)->vtable->sync((d), (f)))

/*
 * Makes the file `size` bytes long, unless it is longer, of zeros where nothing was written,
 * and their room its own: writing there cannot be refused for want of room. If that fails,
 * the file is as long as before.
 */
#define disk_allocate(d, f, size) ((d)->vtable->allocate((d), (f), (size)))

/*
 * Makes the file no longer than `size`, and gives back the room behind it, where there must be
 * nothing but zeros: so it does not matter that after a crash it may be as long as before.
 */
#define disk_cut(d, f, size) ((d)->vtable->cut((d), (f), (size)))

#define disk_size(d, f, out) ((d)->vtable->size((d), (f), (out)))

/*
 * Has what is read of a synced file from now on come from the device, not from memory, where
 * the file system can do that.
 */
#define disk_forget(d, f) ((d)->vtable->forget((d), (f)))

/* Gives a file another name, in one step; a file of that name is gone then. */
#define disk_rename(d, from, to) ((d)->vtable->rename((d), (from), (to)))

#define disk_unlink(d, name) ((d)->vtable->unlink((d), (name)))

/*
 * Names what stands in the directory, files or not, in no order; a name that is too long is
 * cut off. `each` may do what it likes with the disk.
 */
#define disk_list(d, each, arg) ((d)->vtable->list((d), (each), (arg)))

/* Files made, renamed and unlinked before are so after a crash when it returns 0. */
#define disk_sync_names(d) ((d)->vtable->sync_names((d)))

/*
 * Makes the file if need be and takes its lock and the directory's, for as long as the file is
 * open and the process lives. EWOULDBLOCK: another process (or another open file of this one)
 * has one of them. The lock of the directory stays when the file is deleted; a file system
 * without such locks does without.
 */
#define disk_lock(d, name, out) ((d)->vtable->lock((d), (name), (out)))

/*
 * Is this locked file still the one of that name? ESTALE: it was deleted or replaced, and
 * another process may have locked its successor.
 */
#define disk_check_lock(d, name, f) ((d)->vtable->check_lock((d), (name), (f)))

/* How many bytes more can be written by this process. */
#define disk_free_bytes(d, out) ((d)->vtable->free_bytes((d), (out)))

#endif
