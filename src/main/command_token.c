/*
 * claimd token: makes, lists and revokes tokens in a file.
 *
 * One process at a time changes the file. It writes a new file in the same directory,
 * syncs it and renames it, so a reader sees either the old or the new text. Owner, mode
 * and symbolic links do not change.
 */
#include "claimd/auth/access.h"
#include "claimd/base/clock.h"
#include "main/command.h"
#include "main/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct token_file {
    char path[PATH_MAX]; /* without symbolic links */
    int fd;              /* locked; -1: not open */
};

/*
 * Lets the group of the directory read a new file, if root made it in a directory of root
 * that is closed to other users. So the service can read the file and no other user can.
 * Returns 0 or an errno.
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

/*
 * Opens the file; `make`: creates it if it does not exist. Returns -1 and errno on
 * failure.
 */
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
    (void)unlink(path); /* so that the next command tries again */
    errno = error;
    return -1;
}

/*
 * Opens a regular file, or the one behind a symbolic link, and waits for its lock.
 * `make`: creates it, readable for the owner only, except as share_with_group() says.
 * Returns 0 or an errno.
 */
static int
token_file_open(struct token_file *f, const char *path, bool make)
{
    struct stat own, named;

    *f = (struct token_file){.fd = -1};
    while (f->fd < 0) {
        int fd = open_or_make(path, make), error = 0;

        if (fd < 0)
            return errno;
        if (fstat(fd, &own) != 0)
            error = errno;
        else if (!S_ISREG(own.st_mode))
            error = ENOTSUP;
        else if (realpath(path, f->path) == NULL && errno != ENOENT)
            error = errno;
        else if (flock(fd, LOCK_EX) != 0)
            error = errno;
        /*
         * The process that had the lock may have replaced the file. Then open the new
         * one.
         */
        if (error == 0 && stat(f->path, &named) == 0 && own.st_dev == named.st_dev &&
            own.st_ino == named.st_ino)
            f->fd = fd;
        else
            (void)close(fd);
        if (error != 0 && error != EINTR)
            return error;
    }
    return 0;
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
    /*
     * EINVAL: the file system cannot sync a directory. A power loss may bring the old
     * file back.
     */
    error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    (void)close(fd);
    return error;
}

/* Replaces the text of the file. Returns 0, or an errno, and the file is unchanged. */
static int
token_file_replace(const struct token_file *f, struct bytes text)
{
    char beside[PATH_MAX];
    int fd, error = 0;
    struct stat st;

    if ((size_t)snprintf(beside, sizeof(beside), "%s.XXXXXX", f->path) >= sizeof(beside))
        return ENAMETOOLONG;
    fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return errno;
    /* Owner first, because a change of owner may clear mode bits. */
    if (fstat(f->fd, &st) != 0 || fchown(fd, st.st_uid, st.st_gid) != 0 ||
        fchmod(fd, st.st_mode & 07777) != 0)
        error = errno;
    if (error == 0)
        error = write_all(fd, text);
    (void)close(fd); /* synced */
    if (error == 0 && rename(beside, f->path) != 0)
        error = errno;
    if (error != 0)
        (void)unlink(beside);
    return error == 0 ? sync_folder(f->path) : error;
}

enum { FILE_MOST = 16 << 20, DAY_S = 24 * 3600 };

enum { VALUE_ROLE, VALUE_PROJECTS, VALUE_EXPIRES, VALUE_TOKENS };

/* The work of one command. */
struct token_task {
    const struct command_args *args;
    const char *path;
    struct token_file file;
    struct bytes text;      /* of the file, owned */
    struct buf next;        /* the new text */
    struct token_line line; /* of the new token */
    size_t found;           /* lines with the name of the argument */
};

static int
task_fails(const struct token_task *t, int error)
{
    return command_fails(COMMAND_FAILED, "%s: %s", t->path, strerror(error));
}

static int
write_file(struct token_task *t)
{
    int error =
        t->next.failed ? ENOMEM : token_file_replace(&t->file, buf_view(&t->next));

    return error == 0 ? COMMAND_GOOD : task_fails(t, error);
}

static int
read_expiry(const char *text, int64_t *out_ms)
{
    const size_t len = text == NULL ? 0 : strlen(text);
    struct clock clock;
    int64_t days, now_ms;

    clock_init_system(&clock);
    now_ms = clock_now_ms(&clock);
    *out_ms = TOKEN_NEVER;
    if (text == NULL || strcmp(text, "never") == 0)
        return COMMAND_GOOD;
    if (len > 0 && text[len - 1] == 'd' && bytes_to_i64(bytes_of(text, len - 1), &days) &&
        days >= 1 && days <= 36500) {
        *out_ms = (now_ms / 1000 + days * DAY_S) * 1000;
        return COMMAND_GOOD;
    }
    if (token_time_read(bytes_str(text), out_ms) && *out_ms > now_ms)
        return COMMAND_GOOD;
    return command_misused("token",
                           "--expires is \"%s\". It must be never, a number of days such "
                           "as 90d, or a time in the future such as 2027-03-31T00:00:00Z",
                           text);
}

/* Checks that claimd will read the line. */
static int
line_check(const struct token_line *line, struct mem *mem)
{
    struct token_line again;
    struct reason why;
    struct buf text;
    enum status st;

    buf_init(&text, mem);
    reason_init(&why);
    token_line_write(&text, line);
    st = text.failed ? ST_NO_MEMORY : token_line_read(buf_view(&text), &again, &why);
    buf_fini(&text);
    if (st == ST_NO_MEMORY)
        return command_fails(COMMAND_FAILED, "%s", status_text(st));
    return st == ST_OK ? COMMAND_GOOD : command_misused("token", "%s", why.text);
}

static int
line_from_args(struct token_task *t)
{
    const char *role = t->args->values[VALUE_ROLE];
    const char *projects = t->args->values[VALUE_PROJECTS];
    struct token_line *l = &t->line;
    struct reason why;
    int status;

    if (role == NULL)
        return command_misused("token", "token new needs --role");
    l->role = role_find(bytes_str(role));
    if (l->role == ROLE_COUNT) {
        (void)role_refuse(bytes_str(role), &why);
        return command_misused("token", "%s", why.text);
    }
    if (strpbrk(t->args->words[1], " \t") != NULL)
        return command_misused("token", "the name is \"%s\". It must not contain spaces",
                               t->args->words[1]);
    l->name = bytes_str(t->args->words[1]);
    l->projects = bytes_str(projects == NULL ? "*" : projects);
    status = read_expiry(t->args->values[VALUE_EXPIRES], &l->expires_ms);
    return status == COMMAND_GOOD ? line_check(l, t->args->mem) : status;
}

static int
token_new(struct token_task *t)
{
    char token[TOKEN_TEXT_LEN + 1];
    struct entropy entropy;
    int status;

    entropy_init_system(&entropy);
    if (entropy_reserve(&entropy, TOKEN_SECRET_BYTES) != ST_OK)
        return command_fails(COMMAND_FAILED, "the system provides no random numbers");
    token_make(&entropy, token);
    token_digest_of(bytes_str(token), &t->line.digest);
    token_line_write(&t->next, &t->line);
    status = write_file(t);
    if (status == COMMAND_GOOD && (puts(token) < 0 || fflush(stdout) != 0))
        return command_fails(
            COMMAND_FAILED,
            "the token could not be printed and is lost. Revoke %s and make another",
            t->args->words[1]);
    return status;
}

static void
print_token(const struct token_line *line)
{
    char expires[CLOCK_TEXT_CAP] = "never";

    if (line->expires_ms != TOKEN_NEVER)
        clock_text(line->expires_ms, expires);
    (void)printf("%-24.*s %-8s %-20s %.*s\n", (int)line->name.len, line->name.data,
                 role_name(line->role), expires, (int)line->projects.len,
                 line->projects.data);
}

static int
token_revoke(struct token_task *t)
{
    return t->found > 0 ? write_file(t)
                        : command_fails(COMMAND_FAILED, "%s has no token %s", t->path,
                                        t->args->words[1]);
}

static const struct token_action {
    const char *name;
    bool named, changes, makes; /* needs a name, changes the file, adds a token */
    int (*finish)(struct token_task *t); /* after all lines were read; NULL: nothing */
} token_actions[] = {
    {"new", true, true, true, token_new},
    {"list", false, false, false, NULL},
    {"revoke", true, true, false, token_revoke},
};

/* Prints each token, or copies each line to the new text, except those with the name. */
static int
read_lines(struct token_task *t, const struct token_action *action)
{
    const char *name = t->args->words[1];
    struct bytes rest = t->text;

    for (size_t number = 1; rest.len > 0; number++) {
        struct bytes line = bytes_cut(&rest, '\n');
        const bool blank = token_line_blank(line);
        struct token_line read;
        struct reason why;
        bool same;

        reason_init(&why);
        if (!blank && token_line_read(line, &read, &why) != ST_OK)
            return command_fails(COMMAND_FAILED, "%s:%zu: %s", t->path, number, why.text);
        same = !blank && action->named && bytes_equal_str(read.name, name);
        t->found += same;
        if (same && action->makes)
            return command_fails(
                COMMAND_FAILED,
                "%s already has a token %s. Revoke it, or use another name", t->path,
                name);
        if (!action->changes && !blank)
            print_token(&read);
        if (action->changes && !same) {
            buf_bytes(&t->next, line);
            buf_byte(&t->next, '\n');
        }
    }
    return COMMAND_GOOD;
}

static int
run_action(struct token_task *t, const struct token_action *action)
{
    struct text_file file = {.path = t->path, .option = "tokens", .most = FILE_MOST};
    struct config_errors errors = {.to = stderr};
    int error = 0, status = action->makes ? line_from_args(t) : COMMAND_GOOD;
    enum status st;

    if (status != COMMAND_GOOD)
        return status;
    if (action->changes) {
        error = token_file_open(&t->file, t->path, action->makes);
        file.path = t->file.path;
    }
    if (error != 0)
        return task_fails(t, error);
    st = text_file_read(&file, t->args->mem, &t->text, &errors);
    if (st != ST_OK)
        return st == ST_NO_MEMORY ? task_fails(t, ENOMEM) : COMMAND_FAILED;
    status = read_lines(t, action);
    return status == COMMAND_GOOD && action->finish != NULL ? action->finish(t) : status;
}

static int
run_token(const struct command_args *args)
{
    const char *path = args->values[VALUE_TOKENS];
    const struct token_action *action = NULL;
    struct token_task t = {.args = args,
                           .path = path != NULL ? path : "/etc/claimd/tokens",
                           .file = {.fd = -1}};
    int status;

    for (size_t i = 0; i < sizeof(token_actions) / sizeof(token_actions[0]); i++)
        if (strcmp(token_actions[i].name, args->words[0]) == 0)
            action = &token_actions[i];
    if (action == NULL)
        return command_misused("token",
                               "token has no action \"%s\". Use new, list or revoke",
                               args->words[0]);
    if (action->named != (args->words[1] != NULL))
        return command_misused("token", "token %s %s", action->name,
                               action->named ? "needs a name" : "takes no name");
    buf_init(&t.next, args->mem);
    status = run_action(&t, action);
    buf_fini(&t.next);
    mem_free(args->mem, (void *)t.text.data);
    if (t.file.fd >= 0)
        (void)close(t.file.fd);
    return status;
}

const struct command command_token = {
    .usages = {"token new NAME --role ROLE [--projects P,P...] [--expires WHEN] "
               "[--tokens FILE]",
               "token list [--tokens FILE]", "token revoke NAME [--tokens FILE]"},
    .about = "Edits the file of tokens that claimd checks with --auth tokens. A running "
             "claimd reads the file again on SIGHUP.\n\n`new` makes a token and prints "
             "it once, because the file contains only its SHA-256. `list` prints a line "
             "for each token: name, role, expiry, projects. `revoke` removes the token "
             "with this name from the file.",
    .options = {{"--role", "ROLE", "Role: reader, producer, worker, operator or admin."},
                {"--projects", "P,P...",
                 "Projects that the token may use. * means all. Default: *"},
                {"--expires", "WHEN",
                 "Expiry: never, a number of days such as 90d, or a time such as "
                 "2027-03-31T00:00:00Z. Default: never"},
                {"--tokens", "FILE", "File of tokens. Default: /etc/claimd/tokens"}},
    .example = "claimd token new billing --role worker --expires 90d",
    .statuses = {"Done.", "The file could not be read or written."},
    .most = 2,
    .least = 1,
    .needs = "new, list or revoke",
    .actions = "new list revoke",
    .run = run_token};
