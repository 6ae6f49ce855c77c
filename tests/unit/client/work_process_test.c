/* The command of a job as a process. The tests wait for its end, or for what it writes. */
#include "client/work_process.h"

#include "support/check_main.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct work_process process;
static sigset_t none;
static int saved_stderr,
    stderr_reader; /* standard error of this process is a pipe meanwhile */

static void
begin(void)
{
    int ends[2];

    (void)sigemptyset(&none);
    ck_assert(process_reserve_descriptors());
    saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    ck_assert_int_ge(saved_stderr, 0);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    stderr_reader = ends[0];
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_eq(close(ends[1]), 0);
}

static void
end(void)
{
    process_end(&process);
    ck_assert_int_eq(dup2(saved_stderr, STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_eq(close(saved_stderr), 0);
    ck_assert_int_eq(close(stderr_reader), 0);
}

static int
start(const char *script, const char *input, const char *metadata)
{
    char *words[] = {"/bin/sh", "-c", NULL, NULL};
    struct process_start s = {.command = words,
                              .environment = environ,
                              .input = bytes_str(input),
                              .metadata = bytes_str(metadata),
                              .signals = &none};

    words[2] = (char *)(uintptr_t)script;
    return process_start(&process, &s);
}

/* Waits until the command has ended, without taking its status. */
static void
await_end(void)
{
    siginfo_t info;

    ck_assert_int_eq(waitid(P_PID, (id_t)process.pid, &info, WEXITED | WNOWAIT), 0);
}

/* Runs a command to its end. Returns its status. */
static int
run(const char *script, const char *input, const char *metadata)
{
    ck_assert_int_eq(start(script, input, metadata), 0);
    await_end();
    process_reap(&process);
    while (!process_is_read(&process))
        process_read_errors(&process);
    return process.status;
}

static void
assert_tail(const char *expected)
{
    ck_assert_uint_eq(process.tail_len, strlen(expected));
    ck_assert(memcmp(process.tail, expected, process.tail_len) == 0);
}

TEST_CASE("process", .setup = begin, .teardown = end);

START_TEST(a_command_reads_its_input_and_its_metadata)
{
    ck_assert_int_eq(run("cat >&2; cat <&3 >&2", "body ", "metadata"), 0);
    assert_tail("body metadata");
}

START_TEST(empty_input_is_an_end_of_file)
{
    ck_assert_int_eq(run("wc -c >&2", "", ""), 0);
    assert_tail("0\n");
}

START_TEST(the_status_is_that_of_the_command)
{
    ck_assert_int_eq(WEXITSTATUS(run("exit 65", "", "")), 65);
    ck_assert_int_eq(WTERMSIG(run("kill -9 $$", "", "")), SIGKILL);
}

START_TEST(a_missing_command_is_reported_when_it_starts)
{
    char *words[] = {"/nowhere/at/all", NULL};
    struct process_start s = {.command = words, .environment = environ, .signals = &none};

    ck_assert_int_eq(process_start(&process, &s), ENOENT);
    ck_assert_int_eq(process.pid, 0);
    words[0] = "/";
    ck_assert_int_eq(process_start(&process, &s), EACCES);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    ck_assert_int_eq(errno, ECHILD);
}

START_TEST(the_tail_is_the_end_of_standard_error_which_is_passed_on)
{
    char passed[3000];

    ck_assert_int_eq(
        run("head -c 1500 /dev/zero | tr '\\0' a >&2; printf end >&2", "", ""), 0);
    ck_assert_uint_eq(process.tail_len, PROCESS_TAIL);
    ck_assert(memcmp(process.tail + PROCESS_TAIL - 4, "aend", 4) == 0);
    ck_assert_int_eq(read(stderr_reader, passed, sizeof(passed)), 1503);
}

START_TEST(a_standard_error_without_space_does_not_block_the_check)
{
    char byte = 'x';

    ck_assert(stderr_is_writable());
    ck_assert_int_eq(fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK), 0);
    while (write(STDERR_FILENO, &byte, 1) == 1)
        ;
    ck_assert(!stderr_is_writable());
}

START_TEST(the_group_ends_with_the_command)
{
    struct pollfd fd;

    /* The child holds standard error. It ends when nothing holds it any more. */
    ck_assert_int_eq(start("sleep 1000 & exit 0", "", ""), 0);
    await_end();
    fd = (struct pollfd){.fd = process.errors, .events = POLLIN};
    ck_assert_int_eq(poll(&fd, 1, 0), 0);
    process_reap(&process);
    ck_assert_int_eq(poll(&fd, 1, -1), 1);
    ck_assert_int_ne(fd.revents & POLLHUP, 0);
}

/* Waits until the command has written to standard error. */
static void
await_output(void)
{
    while (process.tail_len == 0) {
        struct pollfd fd = {.fd = process.errors, .events = POLLIN};

        ck_assert_int_eq(poll(&fd, 1, -1), 1);
        process_read_errors(&process);
    }
}

START_TEST(a_process_outside_the_group_cannot_write_for_ever)
{
    char chunk[PROCESS_CHUNK];

    /* It ends when nothing reads its output any more. */
    ck_assert_int_eq(start("setsid yes >&2 & wait", "", ""), 0);
    await_output();
    process_signal(&process, SIGTERM);
    await_end();
    process_reap(&process);
    while (!process_is_read(&process)) {
        ck_assert_int_gt(read(stderr_reader, chunk, sizeof(chunk)), 0);
        process_read_errors(&process);
    }
}

START_TEST(a_signal_reaches_the_whole_group)
{
    ck_assert_int_eq(start("trap 'wait; exit 7' TERM;"
                           " sh -c 'trap \"echo child >&2; exit\" TERM; echo ready >&2;"
                           " while :; do sleep 0.1; done' & wait",
                           "", ""),
                     0);
    await_output();
    process_signal(&process, SIGTERM);
    await_end();
    process_reap(&process);
    while (!process_is_read(&process))
        process_read_errors(&process);
    ck_assert_int_eq(WEXITSTATUS(process.status), 7);
    /* The shell also says that its sleep was terminated. */
    ck_assert_ptr_nonnull(memmem(process.tail, process.tail_len, "child\n", 6));
}

START_TEST(the_command_has_the_given_signal_mask)
{
    sigset_t all;

    (void)sigfillset(&all);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &all, NULL), 0);
    ck_assert_int_eq(run("grep ^SigBlk: /proc/self/status >&2", "", ""), 0);
    ck_assert_int_eq(sigprocmask(SIG_SETMASK, &none, NULL), 0);
    assert_tail("SigBlk:\t0000000000000000\n");
}

START_TEST(descriptors_below_four_are_never_given_away)
{
    for (int i = 0; i < 4; i++)
        ck_assert_int_ge(fcntl(i, F_GETFD), 0);
}
