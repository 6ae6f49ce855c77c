#include "main/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_ROOM = 16384 };

static const char rights_advice[] = "Let the group of the service's user read it: chgrp "
                                    "GROUP FILE, chmod 0640 FILE";

struct reading {
    struct mem *mem;
    char *text;
    size_t len, room;
};

/* Room for one byte more than is allowed tells that there is more. */
static enum status
make_room(struct reading *r, size_t most)
{
    size_t room = r->room == 0 ? FIRST_ROOM : 2 * r->room;
    char *text;

    if (r->len < r->room)
        return ST_OK;
    if (room > most + 1)
        room = most + 1;
    text = mem_realloc(r->mem, r->text, room);
    if (text == NULL)
        return ST_NO_MEMORY;
    r->text = text;
    r->room = room;
    return ST_OK;
}

/* *error: an errno, if that is why. */
static enum status
read_all(int fd, struct reading *r, size_t most, int *error)
{
    ssize_t n = 1;

    while (n != 0 && r->len <= most) {
        if (make_room(r, most) != ST_OK)
            return ST_NO_MEMORY;
        n = read(fd, r->text + r->len, r->room - r->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            *error = errno;
            return ST_BAD_VALUE;
        }
        r->len += (size_t)n;
    }
    return r->len <= most ? ST_OK : ST_TOO_LARGE;
}

static enum status
check_rights(int fd, const struct text_file *file, struct config_errors *errors)
{
    struct stat st;

    if (!file->secret || fstat(fd, &st) != 0 || (st.st_mode & S_IRWXO) == 0)
        return ST_OK;
    config_error(
        errors,
        "%s: %s may be read or written by other users (mode %04o). Run chmod o-rwx %s",
        file->option, file->path, st.st_mode & 07777, file->path);
    return ST_BAD_VALUE;
}

/* Whoever reloads would wait for the one who writes into it, and claimd could not be ended. */
static enum status
check_kind(int fd, const struct text_file *file, struct config_errors *errors)
{
    struct stat st;

    if (file->once || fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))
        return ST_OK;
    config_error(errors,
                 "%s: %s is a pipe, which claimd cannot read again on SIGHUP. Use a file",
                 file->option, file->path);
    return ST_BAD_VALUE;
}

static enum status
read_open(int fd, const struct text_file *file, struct reading *r,
          struct config_errors *errors)
{
    enum status st = check_kind(fd, file, errors);
    int error = 0;

    if (st == ST_OK)
        st = check_rights(fd, file, errors);
    if (st != ST_OK)
        return st;
    st = read_all(fd, r, file->most, &error);
    if (st == ST_BAD_VALUE)
        config_error(errors, "%s: %s: %s", file->option, file->path, strerror(error));
    if (st == ST_TOO_LARGE)
        config_error(errors, "%s: %s is larger than %zuM, the maximum", file->option,
                     file->path, file->most >> 20);
    return st == ST_TOO_LARGE ? ST_BAD_VALUE : st;
}

enum status
text_file_read(const struct text_file *file, struct mem *mem, struct bytes *out,
               struct config_errors *errors)
{
    struct reading r = {.mem = mem};
    int fd =
        open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (file->once ? 0 : O_NONBLOCK));
    enum status st;

    if (fd < 0) {
        const char *hint = errno == ENOENT ? file->hint : NULL;
        char text[ERRNO_TEXT_CAP];

        config_error(errors, "%s: %s: %s%s%s", file->option, file->path,
                     errno_text(errno, rights_advice, text), hint == NULL ? "" : ": ",
                     hint == NULL ? "" : hint);
        return ST_BAD_VALUE;
    }
    st = read_open(fd, file, &r, errors);
    (void)close(fd); /* nothing was written */
    if (st != ST_OK) {
        mem_free(mem, r.text);
        return st;
    }
    *out = bytes_of(r.text, r.len);
    return ST_OK;
}
