/*
 * The file of a Unix socket has its permissions and its group before a client can
 * connect, and claimd removes no file of another process. Read src/http/listener.h next.
 */
#include "http/listener.h"

#include "support/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The file of the Unix socket as it was when bind() had made it, and when the socket
 * began to listen: before that no client can connect. */
static struct stat bound, listening;
static const char *watched;

int
bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
    long failed = syscall(SYS_bind, fd, address.__sockaddr__, len);

    if (failed == 0)
        ck_assert_int_eq(stat(watched, &bound), 0);
    return (int)failed;
}

int
listen(int fd, int backlog)
{
    ck_assert_int_eq(stat(watched, &listening), 0);
    return (int)syscall(SYS_listen, fd, backlog);
}

struct fixture {
    char folder[32], path[64];
    struct listen_entry entry;
    struct listener listener;
};

static void
fixture_open(struct fixture *f)
{
    (void)snprintf(f->folder, sizeof(f->folder), "/tmp/claimd-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(f->folder));
    (void)snprintf(f->path, sizeof(f->path), "%s/socket", f->folder);
    f->entry = (struct listen_entry){.kind = LISTEN_API, .inherited = -1};
    (void)snprintf(f->entry.address, sizeof(f->entry.address), "unix:%s", f->path);
    watched = f->path;
}

static void
open_listener(struct fixture *f, mode_t mode, gid_t group)
{
    const struct listener_access access = {mode, group};
    struct reason why;

    ck_assert_msg(listener_open(&f->listener, &f->entry, &access, 1000, &why) == ST_OK,
                  "%s", why.text);
}

static void
fixture_close(struct fixture *f)
{
    listener_close(&f->listener);
    ck_assert_int_eq(rmdir(f->folder), 0); /* and so the socket's file is gone */
}

START_TEST(its_file_is_never_wider_open_than_it_shall_be)
{
    static const mode_t umasks[] = {0, 022, 0777}, modes[] = {0660, 0600, 0606, 0};

    for (size_t u = 0; u < sizeof(umasks) / sizeof(umasks[0]); u++)
        for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
            struct fixture f;
            mode_t before;

            fixture_open(&f);
            before = umask(umasks[u]);
            open_listener(&f, modes[m], getgid());
            (void)umask(before);
            ck_assert_uint_eq(bound.st_mode & 0777 & ~modes[m], 0);
            ck_assert_uint_eq(listening.st_mode & 0777, modes[m]);
            ck_assert_uint_eq(listening.st_gid, getgid());
            fixture_close(&f);
        }
}

START_TEST(a_socket_file_has_its_group_from_the_start)
{
    struct fixture f;

    if (getuid() != 0)
        return; /* only root may give files to any group */
    fixture_open(&f);
    open_listener(&f, 0660, 4711);
    ck_assert_uint_eq(bound.st_mode & 0777, 0);
    ck_assert_uint_eq(listening.st_gid, 4711);
    fixture_close(&f);
}

START_TEST(a_group_that_cannot_be_had_leaves_nothing_behind)
{
    const struct listener_access access = {0660, 4711};
    struct fixture f;
    struct reason why;

    if (getuid() == 0)
        return; /* root may */
    fixture_open(&f);
    ck_assert_int_eq(listener_open(&f.listener, &f.entry, &access, 1000, &why), ST_IO);
    ck_assert_ptr_nonnull(strstr(why.text, "Operation not permitted"));
    fixture_close(&f);
}

START_TEST(a_file_that_took_the_place_of_its_own_is_left_alone)
{
    struct fixture f;
    struct listener other;
    struct stat st;

    fixture_open(&f);
    open_listener(&f, 0660, (gid_t)-1);
    ck_assert_int_eq(unlink(f.path), 0);
    other = f.listener;
    open_listener(&f, 0660, (gid_t)-1);
    listener_close(&other);
    ck_assert_int_eq(stat(f.path, &st), 0);
    fixture_close(&f);
}

START_TEST(a_socket_that_is_not_for_us_is_not_taken_for_dead)
{
    const struct listener_access access = {0660, (gid_t)-1};
    struct listener second;
    struct fixture f;
    struct reason why;

    if (getuid() == 0 && seteuid(65534) != 0)
        return; /* for root everything is open */
    fixture_open(&f);
    open_listener(&f, 0, (gid_t)-1);
    ck_assert_int_eq(listener_open(&second, &f.entry, &access, 1000, &why), ST_IO);
    ck_assert_ptr_nonnull(strstr(why.text, "address already in use"));
    fixture_close(&f);
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
}
