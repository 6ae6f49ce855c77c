#include "main/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is it still the file of this name? Whoever had the lock may have replaced it. */
static bool
is_current(int fd, const char *path)
{
    struct stat own, named;

    return fstat(fd, &own) == 0 && stat(path, &named) == 0 &&
           own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

/*
 * A file that root has made in a folder of root that is closed to others belongs to the folder's
 * group, which may read it: so the service does, and nobody else. Elsewhere it stays with its
 * owner alone.
 */
static int
share_with_group(int fd, const char *path)
{
    char copy[PATH_MAX];
    struct stat folder;

    (void)snprintf(copy, sizeof(copy), "%s", path);
    if (geteuid() != 0 || stat(dirname(copy), &folder) != 0 || folder.st_uid != 0 ||
        folder.st_gid == getegid() || (folder.st_mode & S_IRWXO) != 0)
        return 0;
    if (fchown(fd, (uid_t)-1, folder.st_gid) != 0 ||
        fchmod(fd, S_IRUSR | S_IWUSR | S_IRGRP) != 0)
        return errno;
    return 0;
}

/* Opens it, or makes it first. -1: errno says why not. */
static int
open_or_make(const char *path, bool make)
{
    int fd = open(path, O_RDWR | O_CLOEXEC), error;

    if (fd >= 0 || errno != ENOENT || !make)
        return fd;
    fd = open(path, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return errno == EEXIST ? open(path, O_RDWR | O_CLOEXEC) : -1;
    error = share_with_group(fd, path);
    if (error == 0)
        return fd;
    (void)close(fd);
    (void)unlink(path); /* it is empty: the next one tries again */
    errno = error;
    return -1;
}

/* What is replaced is the file, wherever a link to it is; not the link, and no device. */
static int
find(int fd, const char *path, char out[PATH_MAX])
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return ENOTSUP;
    return realpath(path, out) != NULL || errno == ENOENT ? 0 : errno;
}

/* 0 without f->fd: another file has come in its place. */
static int
take(struct token_file *f, int fd, const char *path)
{
    int error = find(fd, path, f->path);

    if (error == 0 && flock(fd, LOCK_EX) != 0)
        error = errno;
    if (error == 0 && is_current(fd, f->path))
        f->fd = fd;
    else
        (void)close(fd);
    return error == EINTR ? 0 : error;
}

int
token_file_open(struct token_file *f, const char *path, bool make)
{
    *f = (struct token_file){.fd = -1};
    while (f->fd < 0) {
        int fd = open_or_make(path, make);
        int error = fd < 0 ? errno : take(f, fd, path);

        if (error != 0)
            return error;
    }
    return 0;
}

void
token_file_close(struct token_file *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    f->fd = -1;
}

static int
write_all(int fd, struct bytes text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.data, text.len);

        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            text.data += n;
            text.len -= (size_t)n;
        }
    }
    return fsync(fd) == 0 ? 0 : errno;
}

static int
sync_folder(const char *path)
{
    char copy[PATH_MAX];
    int fd, error;

    (void)snprintf(copy, sizeof(copy), "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    error = fsync(fd) == 0 ? 0 : errno;
    (void)close(fd);
    return error;
}

/* Owner first: a change of owner may take rights away. */
static int
keep_rights(int from, int to)
{
    struct stat st;

    if (fstat(from, &st) != 0 || fchown(to, st.st_uid, st.st_gid) != 0 ||
        fchmod(to, st.st_mode & 07777) != 0)
        return errno;
    return 0;
}

int
token_file_replace(const struct token_file *f, struct bytes text)
{
    char beside[PATH_MAX];
    int fd, error;

    if ((size_t)snprintf(beside, sizeof(beside), "%s.XXXXXX", f->path) >= sizeof(beside))
        return ENAMETOOLONG;
    fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return errno;
    error = keep_rights(f->fd, fd);
    if (error == 0)
        error = write_all(fd, text);
    (void)close(fd); /* synced */
    if (error == 0 && rename(beside, f->path) != 0)
        error = errno;
    if (error != 0)
        (void)unlink(beside);
    return error == 0 ? sync_folder(f->path) : error;
}
