/* Notifications to the socket that NOTIFY_SOCKET names. */
#include "claimd/base/supervisor.h"

#include "support/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MESSAGE_CAP = 4096 };

/* The socket of a supervisor. */
struct notify_socket {
    int fd;
    char folder[64];
    char name[128]; /* as NOTIFY_SOCKET has it */
};

static void
socket_bind(struct notify_socket *receiver, const char *path, size_t len)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, path, len);
    receiver->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(receiver->fd, 0);
    ck_assert_int_eq(bind(receiver->fd, (const struct sockaddr *)(const void *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                     0);
}

static void
socket_open(struct notify_socket *receiver)
{
    (void)snprintf(receiver->folder, sizeof(receiver->folder),
                   "/tmp/claimd-supervisor-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(receiver->folder));
    (void)snprintf(receiver->name, sizeof(receiver->name), "%s/notify", receiver->folder);
    socket_bind(receiver, receiver->name, strlen(receiver->name) + 1);
}

static void
socket_close(struct notify_socket *receiver)
{
    ck_assert_int_eq(close(receiver->fd), 0);
    ck_assert_int_eq(unlink(receiver->name), 0);
    ck_assert_int_eq(rmdir(receiver->folder), 0);
}

/* The next message, which is there already. */
static const char *
socket_receive(struct notify_socket *receiver, char text[MESSAGE_CAP])
{
    ssize_t len = recv(receiver->fd, text, MESSAGE_CAP - 1, 0);

    ck_assert_int_ge(len, 0);
    text[len] = '\0';
    return text;
}

START_TEST(it_sends_assignments_and_a_status)
{
    char text[MESSAGE_CAP];
    struct supervisor s;
    struct notify_socket receiver;

    socket_open(&receiver);
    supervisor_init(&s, receiver.name);
    ck_assert(supervisor_notify(&s, "READY=1", "listening on %s", "there"));
    ck_assert_str_eq(socket_receive(&receiver, text),
                     "READY=1\nSTATUS=listening on there");
    ck_assert(supervisor_notify(&s, NULL, "%d of %d", 1, 2));
    ck_assert_str_eq(socket_receive(&receiver, text), "STATUS=1 of 2");
    socket_close(&receiver);
}

START_TEST(an_abstract_name_begins_with_an_at)
{
    char text[MESSAGE_CAP];
    struct supervisor s;
    struct notify_socket receiver;
    int len = snprintf(receiver.name, sizeof(receiver.name), "@claimd-supervisor-%ld",
                       (long)getpid());

    receiver.name[0] = '\0';
    socket_bind(&receiver, receiver.name, (size_t)len);
    receiver.name[0] = '@';
    supervisor_init(&s, receiver.name);
    ck_assert(supervisor_notify(&s, "STOPPING=1", "over"));
    ck_assert_str_eq(socket_receive(&receiver, text), "STOPPING=1\nSTATUS=over");
    ck_assert_int_eq(close(receiver.fd), 0);
}

START_TEST(a_text_makes_no_lines_of_its_own_and_may_be_long)
{
    static char all[3000];
    char text[MESSAGE_CAP];
    struct supervisor s;
    struct notify_socket receiver;

    socket_open(&receiver);
    supervisor_init(&s, receiver.name);
    ck_assert(supervisor_notify(&s, NULL, "a%sREADY=1\tb", "\n"));
    ck_assert_str_eq(socket_receive(&receiver, text), "STATUS=a?READY=1?b");
    memset(all, 'x', sizeof(all) - 1);
    ck_assert(supervisor_notify(&s, "ERRNO=5", "%s", all));
    ck_assert_uint_eq(strlen(socket_receive(&receiver, text)),
                      strlen("ERRNO=5\nSTATUS=") + 1023);
    socket_close(&receiver);
}

START_TEST(without_a_supervisor_notifications_succeed)
{
    struct supervisor s;

    supervisor_init(&s, NULL);
    ck_assert(supervisor_notify(&s, "READY=1", "here"));
    supervisor_init(&s, "");
    ck_assert(supervisor_notify(&s, "READY=1", "here"));
}

START_TEST(an_unreachable_supervisor_is_not_notified)
{
    char name[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1] = "/";
    struct supervisor s;

    supervisor_init(&s, "/nowhere/at/all");
    ck_assert(!supervisor_notify(&s, "READY=1", "here"));
    supervisor_init(&s, "vsock:2:1234");
    ck_assert(!supervisor_notify(&s, "READY=1", "here"));
    supervisor_init(&s, "@");
    ck_assert(!supervisor_notify(&s, "READY=1", "here"));
    memset(name + 1, 'x', sizeof(name) - 2);
    supervisor_init(&s, name);
    ck_assert(!supervisor_notify(&s, "READY=1", "here"));
}
