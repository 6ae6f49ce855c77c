#include "main/text_file.h"

#include "claimd/base/invariant.h"
#include "main/option.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { FIRST_CAPACITY = 16384 };

/* Maximum sizes, bytes. */
enum {
    PASSWORD_MOST = 1024,
    KEYS_MOST = 65536,
    PEM_MOST = 1 << 20,
    LIST_MOST = 16 << 20
};

static const struct text_file files[] = {
    {.option = "certificates", .most = LIST_MOST},
    {.option = "encryption_keys", .most = KEYS_MOST, .secret = true},
    {.option = "identity_users", .most = 1 << 20, .once = true},
    {.option = "keystone_ca", .most = LIST_MOST},
    {.option = "keystone_token_file", .most = LIST_MOST, .secret = true},
    {.option = "notify_ca", .most = LIST_MOST},
    {.option = "policy", .most = LIST_MOST},
    {.option = "seed", .most = API_SEED_MOST, .once = true},
    {.option = "signing_keys", .most = KEYS_MOST, .secret = true},
    {.option = "smtp_password_file", .most = PASSWORD_MOST, .secret = true},
    {.option = "store_password_file", .most = PASSWORD_MOST, .secret = true},
    {.option = "tls_certificate", .most = PEM_MOST},
    {.option = "tls_client_ca", .most = PEM_MOST, .once = true},
    {.option = "tls_key", .most = PEM_MOST, .secret = true},
    {.option = "tokens",
     .most = LIST_MOST,
     .hint = "`claimd token new` makes one",
     .secret = true},
    {.option = "webhook_keys", .most = KEYS_MOST, .secret = true},
};

struct text_file
option_file(const struct config *config, const char *option)
{
    const struct option *row = option_find(bytes_str(option));
    const char *path = (const char *)config + row->offset;
    struct text_file file;
    size_t i = 0;

    while (i < sizeof(files) / sizeof(files[0]) && strcmp(files[i].option, option) != 0)
        i++;
    ENSURE(i < sizeof(files) / sizeof(files[0]));
    file = files[i];
    if (path[0] == '/' ||
        strcmp(path, row->initial) != 0) /* none, any, system: no file */
        file.path = path;
    return file;
}

static const char rights_advice[] = "Let the group of the service's user read it: chgrp "
                                    "GROUP FILE, chmod 0640 FILE";

/* Reads at most `most` bytes; ST_TOO_LARGE beyond. ST_BAD_VALUE: *error is the errno. */
static enum status
read_all(int fd, struct mem *mem, size_t most, struct bytes *out, int *error)
{
    size_t len = 0, cap = 0;
    char *text = NULL;
    ssize_t n = 1;

    while (n != 0 && len <= most) {
        if (len == cap) {
            const size_t grown = cap == 0 ? FIRST_CAPACITY : 2 * cap;

            /* Space for one byte more than allowed shows that the file is too large. */
            cap = grown > most + 1 ? most + 1 : grown;
            *out = bytes_of(text, len);
            text = mem_realloc(mem, text, cap);
            if (text == NULL)
                return ST_NO_MEMORY;
        }
        n = read(fd, text + len, cap - len);
        *out = bytes_of(text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            *error = errno;
            return ST_BAD_VALUE;
        }
        len += (size_t)n;
    }
    *out = bytes_of(text, len);
    return len <= most ? ST_OK : ST_TOO_LARGE;
}

/*
 * Refuses a secret that other users can read. It passes in a read-only tmpfs: Kubernetes
 * and Docker mount secrets there with mode 0644 or 0444, no process can change the mode,
 * and only the container sees the mount.
 */
static enum status
check_secret(int fd, const struct text_file *file, mode_t mode,
             struct config_errors *errors)
{
    struct statfs fs;
    bool read_only;

    if (!file->secret || (mode & S_IRWXO) == 0)
        return ST_OK;
    read_only = fstatfs(fd, &fs) == 0 && (fs.f_flags & ST_RDONLY) != 0;
    if (read_only && fs.f_type == TMPFS_MAGIC && (mode & S_IWOTH) == 0)
        return ST_OK;
    config_error(errors, "%s: %s may be read or written by other users (mode %04o). %s%s",
                 file->option, file->path, mode & 07777,
                 read_only ? "Its file system is read-only. Mount it as a secret, or set "
                             "its mode to 0440 where it is made"
                           : "Run chmod o-rwx ",
                 read_only ? "" : file->path);
    return ST_BAD_VALUE;
}

static enum status
read_open(int fd, const struct text_file *file, struct mem *mem, struct bytes *out,
          struct config_errors *errors)
{
    const char *option = file->option, *path = file->path;
    struct stat st = {.st_mode = 0};
    enum status status;
    int error = 0;

    (void)fstat(fd, &st); /* if it fails, the checks below pass */
    /* A reload would block until a program writes into the pipe. */
    if (!file->once && S_ISFIFO(st.st_mode)) {
        config_error(errors,
                     "%s: %s is a pipe, which claimd cannot read again on SIGHUP. Use a "
                     "file",
                     option, path);
        return ST_BAD_VALUE;
    }
    if (check_secret(fd, file, st.st_mode, errors) != ST_OK)
        return ST_BAD_VALUE;
    status = read_all(fd, mem, file->most, out, &error);
    if (status == ST_TOO_LARGE)
        config_error(errors, "%s: %s is larger than %zuM, the maximum", option, path,
                     file->most >> 20);
    else if (status == ST_BAD_VALUE)
        config_error(errors, "%s: %s: %s", option, path, strerror(error));
    return status == ST_TOO_LARGE ? ST_BAD_VALUE : status;
}

enum status
text_file_read(const struct text_file *file, struct mem *mem, struct bytes *out,
               struct config_errors *errors)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | (file->once ? 0 : O_NONBLOCK);
    struct bytes text = BYTES_NONE;
    enum status st;
    int fd;

    *out = BYTES_NONE;
    if (file->path == NULL)
        return ST_OK;
    fd = open(file->path, flags);
    if (fd < 0) {
        const char *hint = errno == ENOENT ? file->hint : NULL;
        char why[ERRNO_TEXT_CAP];

        config_error(errors, "%s: %s: %s%s%s", file->option, file->path,
                     errno_text(errno, rights_advice, why), hint == NULL ? "" : ": ",
                     hint == NULL ? "" : hint);
        return ST_BAD_VALUE;
    }
    st = read_open(fd, file, mem, &text, errors);
    (void)close(fd);
    if (st == ST_OK)
        *out = text;
    else
        text_file_drop(mem, text);
    return st;
}

void
text_file_drop(struct mem *mem, struct bytes text)
{
    void *data = (void *)(uintptr_t)text.data;

    if (text.len > 0)
        explicit_bzero(data, text.len);
    mem_free(mem, data);
}

enum status
option_file_parse(const struct config *config, const char *option, struct mem *mem,
                  text_file_parser *parse, void *ctx, struct config_errors *errors)
{
    const struct text_file file = option_file(config, option);
    struct reason why;
    struct bytes text;
    size_t line = 0;
    enum status st = text_file_read(&file, mem, &text, errors);

    if (st != ST_OK || file.path == NULL)
        return st;
    reason_init(&why);
    st = parse(ctx, mem, text, &line, &why);
    text_file_drop(mem, text);
    if (st == ST_BAD_VALUE && line == 0)
        config_error(errors, "%s: %s: %s", option, file.path, why.text);
    else if (st == ST_BAD_VALUE)
        config_error(errors, "%s: %s:%zu: %s", option, file.path, line, why.text);
    return st;
}

enum status
text_file_word(const struct text_file *file, struct mem *mem, char **out,
               struct config_errors *errors)
{
    struct bytes text, word;
    enum status st = text_file_read(file, mem, &text, errors);

    *out = NULL;
    if (st != ST_OK || file->path == NULL)
        return st;
    word = bytes_trim(text);
    *out = mem_calloc(mem, 1, word.len + 1);
    if (*out != NULL && word.len > 0)
        memcpy(*out, word.data, word.len);
    text_file_drop(mem, text);
    return *out == NULL ? ST_NO_MEMORY : ST_OK;
}

void
text_file_drop_word(struct mem *mem, char *word)
{
    if (word != NULL)
        text_file_drop(mem, bytes_str(word));
}
