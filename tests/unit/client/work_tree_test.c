/* The end of all children, in a process that is a child subreaper. */
#include "client/work_tree.h"

#include "support/check_main.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OTHER_USER = 65534, HELD = 9 };

/* A pipe. Each process of a tree holds its second end as HELD. */
static int ends[2];

static void
begin(void)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) /* an emulator of user programs (qemu) */
        test_skip_all("the system has no child subreapers");
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(dup2(ends[1], HELD), HELD);
    ck_assert_int_eq(close(ends[1]), 0);
}

static pid_t
start(const char *script)
{
    const pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Waits until the processes have written so many bytes. */
static void
await_bytes(int count)
{
    char byte;

    for (int i = 0; i < count; i++)
        ck_assert_int_eq(read(ends[0], &byte, 1), 1);
}

static void
assert_no_holder(void)
{
    struct pollfd fd = {.fd = ends[0], .events = POLLIN};

    ck_assert_int_eq(close(HELD), 0);
    ck_assert_int_eq(poll(&fd, 1, 0), 1);
    ck_assert_int_ne(fd.revents & POLLHUP, 0);
}

typedef enum tree_state kill_fn(tree_keep_fn *keep, const void *ctx);

/* Kills and reaps until that is done. */
static enum tree_state
end_all(kill_fn *kill_children, tree_keep_fn *keep, const void *ctx)
{
    enum tree_state state;

    while ((state = kill_children(keep, ctx)) == TREE_BUSY)
        (void)waitpid(-1, NULL, 0);
    return state;
}

static void
end(void)
{
    (void)end_all(tree_kill, NULL, NULL);
    (void)close(ends[0]);
    (void)close(HELD);
}

static bool
is_kept(const void *ctx, pid_t pid)
{
    return *(const pid_t *)ctx == pid;
}

/*
 * Four processes on three levels, in sessions of their own. One of them ignores SIGTERM,
 * one is stopped. Each writes a byte.
 */
static void
start_tree(void)
{
    (void)start("setsid sh -c 'trap \"\" TERM;"
                " setsid sh -c \"printf . >&9; kill -STOP \\$\\$\" &"
                " (setsid sh -c \"printf . >&9; exec sleep 1000\" &);"
                " printf . >&9; wait' & printf . >&9; wait");
    await_bytes(4);
}

TEST_CASE("tree", .setup = begin, .teardown = end);

START_TEST(without_children_it_is_empty)
{
    ck_assert_int_eq(tree_kill(NULL, NULL), TREE_EMPTY);
}

START_TEST(all_descendants_end)
{
    start_tree();
    ck_assert_int_eq(end_all(tree_kill, NULL, NULL), TREE_EMPTY);
    assert_no_holder();
}

START_TEST(all_descendants_end_without_a_list)
{
    start_tree();
    ck_assert_int_eq(end_all(tree_kill_by_number, NULL, NULL), TREE_EMPTY);
    assert_no_holder();
}

START_TEST(one_call_ends_a_deep_tree)
{
    struct pollfd fd = {.fd = ends[0], .events = POLLIN};

    (void)start("f() { if [ $1 = 0 ]; then printf . >&9; sleep 1000; exit;"
                " else (f $(($1 - 1))); : ; fi; }; f 20");
    await_bytes(1);
    ck_assert_int_eq(tree_kill(NULL, NULL), TREE_BUSY);
    ck_assert_int_eq(close(HELD), 0);
    ck_assert_int_eq(poll(&fd, 1, -1), 1);
    ck_assert_int_ne(fd.revents & POLLHUP, 0);
}

START_TEST(a_zombie_is_left_to_the_caller)
{
    const pid_t pid = start("exit 3");
    siginfo_t info;
    int status;

    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(tree_kill(NULL, NULL), TREE_BUSY);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), 3);
}

START_TEST(a_kept_child_stays)
{
    const pid_t kept = start("exec sleep 1000");

    start_tree();
    ck_assert_int_eq(end_all(tree_kill, is_kept, &kept), TREE_EMPTY);
    ck_assert_int_eq(waitpid(kept, NULL, WNOHANG), 0);
}

START_TEST(a_process_of_another_user_is_foreign)
{
    int status;
    const pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        const pid_t child = fork();

        if (child == 0) {
            (void)pause();
            _exit(0);
        }
        if (setuid(OTHER_USER) != 0)
            _exit(77); /* not as root */
        _exit(tree_kill(NULL, NULL) == TREE_FOREIGN ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
}
