/*
 * The functions that all disks share, and the real disk: a directory that is kept open,
 * so that it may be renamed, and files in it that are opened by their names alone.
 *
 * A call that a signal interrupts before it did anything is repeated. Only syncs are not:
 * the system reports a failed write once, and this may have been that report.
 */
#include "claimd/journal/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* renameat() */
#include <stdlib.h>
#include <string.h>
#include <sys/file.h> /* flock() */
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { FILE_MODE = 0600, FOLDER_MODE = 0700, FILL_PIECE = 64 * 1024 };

const struct bucket_bounds disk_bounds_us = {14,
                                             {50, 100, 250, 500, 1000, 2500, 5000, 10000,
                                              25000, 50000, 100000, 250000, 1000000,
                                              5000000}};

int
disk_name_check(const char *name)
{
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strchr(name, '/') != NULL)
        return EINVAL;
    return strlen(name) < DISK_NAME_CAP ? 0 : ENAMETOOLONG;
}

int
disk_read(struct disk *d, struct disk_file *f, uint64_t offset, void *to, size_t len,
          size_t *got)
{
    size_t have = 0;

    while (have < len) {
        size_t part = 0;
        int error =
            d->vtable->read(d, f, offset + have, (char *)to + have, len - have, &part);

        if (error != 0)
            return error;
        if (part == 0)
            break; /* the end of the file */
        have += part;
    }
    *got = have;
    return 0;
}

int
disk_write(struct disk *d, struct disk_file *f, uint64_t offset, const void *from,
           size_t len)
{
    size_t written = 0;

    while (written < len) {
        size_t part = 0;
        int error = d->vtable->write(d, f, offset + written, (const char *)from + written,
                                     len - written, &part);

        if (error != 0)
            return error;
        if (part == 0)
            return EIO; /* no error is known, and a retry might never end */
        written += part;
    }
    return 0;
}

struct posix_disk {
    struct disk disk; /* first: the seam's handle */
    int fd;           /* of the directory */
};

struct disk_file {
    int fd;
    int folder; /* of a lock file: the locked directory; otherwise -1 */
};

static int
folder_of(const struct disk *d)
{
    return ((const struct posix_disk *)d)->fd;
}

/* Opens a file below a directory, and repeats interrupted calls; -1 and errno. */
static int
open_at(int folder, const char *name, int flags)
{
    int fd;

    do {
        fd = openat(folder, name, flags | O_CLOEXEC, FILE_MODE);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* ------------------------------------------------------------------ files */

static int
open_file(struct disk *d, const char *name, int flags, struct disk_file **out)
{
    int error = disk_name_check(name);
    struct disk_file *f;
    struct stat st;

    if (error != 0)
        return error;
    f = malloc(sizeof(*f));
    if (f == NULL)
        return ENOMEM;
    f->folder = -1;
    /* Not blocking: the name may be a pipe, which would wait for its writer. */
    f->fd = open_at(folder_of(d), name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        error = errno;
    else if (!S_ISREG(st.st_mode))
        error = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    if (error == 0) {
        *out = f;
        return 0;
    }
    if (f->fd >= 0)
        (void)close(f->fd);
    free(f);
    return error;
}

static int
posix_open(struct disk *d, const char *name, enum disk_mode mode, struct disk_file **out)
{
    static const int flags[] = {[DISK_READ] = O_RDONLY,
                                [DISK_WRITE] = O_RDWR,
                                [DISK_NEW] = O_RDWR | O_CREAT | O_EXCL};

    return open_file(d, name, flags[mode], out);
}

static void
posix_close(struct disk *d, struct disk_file *f)
{
    (void)d;
    (void)close(f->fd); /* everything that matters was synced */
    if (f->folder >= 0)
        (void)close(f->folder);
    free(f);
}

static bool
beyond_files(uint64_t offset, size_t len)
{
    return offset > INT64_MAX || len > INT64_MAX - offset;
}

static int
posix_read(struct disk *d, struct disk_file *f, uint64_t offset, void *to, size_t len,
           size_t *got)
{
    ssize_t n;

    (void)d;
    if (beyond_files(offset, len))
        return EINVAL;
    do {
        n = pread(f->fd, to, len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    *got = (size_t)n;
    return 0;
}

static int
posix_write(struct disk *d, struct disk_file *f, uint64_t offset, const void *from,
            size_t len, size_t *done)
{
    ssize_t n;

    (void)d;
    if (beyond_files(offset, len))
        return EFBIG;
    do {
        n = pwrite(f->fd, from, len, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    *done = (size_t)n;
    return 0;
}

static int
posix_sync(struct disk *d, struct disk_file *f)
{
    (void)d;
    return fdatasync(f->fd) == 0 ? 0 : errno;
}

static int
posix_size(struct disk *d, struct disk_file *f, uint64_t *out)
{
    struct stat st;

    (void)d;
    if (fstat(f->fd, &st) != 0)
        return errno;
    *out = (uint64_t)st.st_size;
    return 0;
}

static void
posix_forget(struct disk *d, struct disk_file *f)
{
    (void)d;
    (void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED); /* advice only */
}

/* ------------------------------------------------------------------ space */

/*
 * For file systems that cannot allocate: writes what it reads, and zeros in holes, so
 * that holes have space as well. A file system that compresses data or writes it to
 * another place each time cannot guarantee space at all.
 */
static int
write_zeros(struct disk *d, struct disk_file *f, uint64_t size)
{
    char *piece = malloc(FILL_PIECE);
    int error = piece == NULL ? ENOMEM : 0;
    size_t len, got = 0;

    for (uint64_t at = 0; at < size && error == 0; at += len) {
        len = size - at < FILL_PIECE ? (size_t)(size - at) : FILL_PIECE;
        error = disk_read(d, f, at, piece, len, &got);
        if (error != 0)
            break;
        memset(piece + got, 0, len - got);
        error = disk_write(d, f, at, piece, len);
    }
    free(piece);
    return error;
}

static int
posix_allocate(struct disk *d, struct disk_file *f, uint64_t size)
{
    uint64_t before = 0, after = 0;
    int error;

    if (size > INT64_MAX)
        return EFBIG;
    error = posix_size(d, f, &before);
    if (error != 0 || size == 0)
        return error;
    do
        error = fallocate(f->fd, 0, 0, (off_t)size) == 0 ? 0 : errno;
    while (error == EINTR);
    if (error == EOPNOTSUPP)
        error = write_zeros(d, f, size);
    /* A part may have been allocated: it is freed. */
    if (error != 0 && posix_size(d, f, &after) == 0 && after > before &&
        ftruncate(f->fd, (off_t)before) != 0)
        return error; /* the first error is reported */
    return error;
}

static int
posix_cut(struct disk *d, struct disk_file *f, uint64_t size)
{
    uint64_t before;
    int error = posix_size(d, f, &before);

    if (error != 0 || before <= size)
        return error;
    return ftruncate(f->fd, (off_t)size) == 0 ? 0 : errno;
}

static int
posix_free_bytes(struct disk *d, uint64_t *out)
{
    struct statvfs st;

    if (fstatvfs(folder_of(d), &st) != 0)
        return errno;
    *out = (uint64_t)st.f_bavail * st.f_frsize;
    return 0;
}

/* ------------------------------------------------------------------ names */

static int
posix_rename(struct disk *d, const char *from, const char *to)
{
    int folder = folder_of(d);
    int error = disk_name_check(from);

    if (error == 0)
        error = disk_name_check(to);
    if (error != 0)
        return error;
    return renameat(folder, from, folder, to) == 0 ? 0 : errno;
}

static int
posix_unlink(struct disk *d, const char *name)
{
    int error = disk_name_check(name);

    if (error != 0)
        return error;
    return unlinkat(folder_of(d), name, 0) == 0 ? 0 : errno;
}

static int
read_names(DIR *folder, void (*each)(void *arg, const char *name), void *arg)
{
    char name[DISK_NAME_CAP];
    const struct dirent *entry;
    size_t len;

    for (;;) {
        errno = 0;
        entry = readdir(folder);
        if (entry == NULL)
            return errno;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        len = strnlen(entry->d_name, sizeof(name) - 1);
        memcpy(name, entry->d_name, len);
        name[len] = '\0';
        each(arg, name);
    }
}

static int
posix_list(struct disk *d, void (*each)(void *arg, const char *name), void *arg)
{
    /* A descriptor of its own: the position in the directory belongs to the open file. */
    int error, fd = open_at(folder_of(d), ".", O_RDONLY | O_DIRECTORY);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);

    if (folder == NULL) {
        error = errno;
        if (fd >= 0)
            (void)close(fd);
        return error;
    }
    error = read_names(folder, each, arg);
    (void)closedir(folder);
    return error;
}

/* fsync(2) of a directory is EINVAL on CIFS, and on shared folders of virtual
 * machines. */
static int
sync_folder(int fd)
{
    if (fsync(fd) == 0)
        return 0;
    return errno == EINVAL ? DISK_CANNOT_SYNC_NAMES : errno;
}

static int
posix_sync_names(struct disk *d)
{
    return sync_folder(folder_of(d));
}

static int
posix_lock(struct disk *d, const char *name, struct disk_file **out)
{
    /* A lock of the open file: a lock of the process would end when any other descriptor
     * of the file is closed. */
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct disk_file *f = NULL;
    int error = open_file(d, name, O_RDWR | O_CREAT, &f);

    if (error != 0)
        return error;
    if (fcntl(f->fd, F_OFD_SETLK, &whole) != 0)
        error = errno;
    /*
     * The directory is locked, too: the lock file could be deleted and made again by
     * another process. Some file systems (NFS) cannot lock directories. There the file
     * must do.
     */
    if (error == 0) {
        f->folder = open_at(folder_of(d), ".", O_RDONLY | O_DIRECTORY);
        if (f->folder < 0)
            error = errno;
        else if (flock(f->folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
            error = EWOULDBLOCK;
    }
    if (error == 0) {
        *out = f;
        return 0;
    }
    posix_close(d, f);
    return error == EAGAIN || error == EACCES ? EWOULDBLOCK : error;
}

static int
posix_check_lock(struct disk *d, const char *name, const struct disk_file *f)
{
    struct stat there, ours;

    if (fstatat(folder_of(d), name, &there, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? ESTALE : errno;
    if (fstat(f->fd, &ours) != 0)
        return errno;
    return there.st_dev == ours.st_dev && there.st_ino == ours.st_ino ? 0 : ESTALE;
}

/* ------------------------------------------------------------------ the directory */

static void
posix_shut(struct disk *d)
{
    (void)close(folder_of(d));
    free(d);
}

static const struct disk_vtable posix_ops = {
    .open = posix_open,
    .close = posix_close,
    .read = posix_read,
    .write = posix_write,
    .sync = posix_sync,
    .allocate = posix_allocate,
    .cut = posix_cut,
    .size = posix_size,
    .forget = posix_forget,
    .rename = posix_rename,
    .unlink = posix_unlink,
    .list = posix_list,
    .sync_names = posix_sync_names,
    .lock = posix_lock,
    .check_lock = posix_check_lock,
    .free_bytes = posix_free_bytes,
    .shut = posix_shut,
};

/*
 * Makes the name of a directory durable, even if the directory existed: the process that
 * made it may have crashed before it did so. If the parent cannot be opened or synced and
 * the directory existed, this is skipped.
 */
static int
sync_parent(int folder, bool made)
{
    int error, parent = open_at(folder, "..", O_RDONLY | O_DIRECTORY);

    if (parent < 0)
        return errno == EACCES && !made ? 0 : errno;
    error = sync_folder(parent);
    (void)close(parent);
    /* The directory may be a mount, and its parent of another file system. */
    return error == DISK_CANNOT_SYNC_NAMES && !made ? 0 : error;
}

static int
open_folder(const char *path, bool make, int *out)
{
    bool made = make && mkdir(path, FOLDER_MODE) == 0;
    int fd, error = 0;

    if (make && !made && errno != EEXIST)
        return errno;
    fd = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return errno;
    if (make)
        error = sync_parent(fd, made);
    if (error == 0)
        *out = fd;
    else
        (void)close(fd);
    return error;
}

const char *
disk_error_text(int error, char out[ERRNO_TEXT_CAP])
{
    if (error == DISK_CANNOT_SYNC_NAMES)
        return "its file system cannot sync a directory (fsync: Invalid argument), so a "
               "power "
               "loss could lose whole files. Use a directory on a file system such as "
               "ext4, "
               "XFS, Btrfs, ZFS or NFS";
    return errno_text(error,
                      "The user of the service must own the directory and all its files "
                      "(chown -R USER DIR)",
                      out);
}

int
disk_open(const char *path, bool make, struct disk **out)
{
    struct posix_disk *p = malloc(sizeof(*p));
    int error;

    if (p == NULL)
        return ENOMEM;
    p->disk.vtable = &posix_ops;
    error = open_folder(path, make, &p->fd);
    if (error == 0)
        *out = &p->disk;
    else
        free(p);
    return error;
}
