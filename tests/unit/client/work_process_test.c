/*
 * The command of a job, with the processes that guard it. The tests wait for its end, or
 * for what it writes.
 */
#include "client/work_process.h"

#include "support/check_main.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LATER_MS = 1000000 };

static struct work_guards guards;
static struct work_process process;
static sigset_t none;
static char *words[] = {"/bin/sh", "-c", NULL, NULL};
static int saved_stderr,
    stderr_reader; /* standard error of this process is a pipe meanwhile */

static void
begin(void)
{
    int ends[2], is_subreaper;

    if (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper) != 0) /* as in work_tree_test.c */
        test_skip_all("the system has no child subreapers, which guards are");
    (void)sigemptyset(&none);
    process = PROCESS_NONE;
    guards = (struct work_guards){.count = 0};
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
    guards_fini(&guards);
    ck_assert_int_eq(dup2(saved_stderr, STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_eq(close(saved_stderr), 0);
    ck_assert_int_eq(close(stderr_reader), 0);
}

/* Starts guards for a command of these words. */
static void
open_guards(char *const *command)
{
    const struct guard_setup setup = {
        .command = command, .environment = environ, .most = 1, .signals = &none};

    guards_fini(&guards);
    ck_assert(guards_init(&guards, &setup));
}

static struct process_start
with_lease(int64_t term_ms, int64_t kill_ms)
{
    const int64_t now = now_ms();

    return (struct process_start){.term_ms = now + term_ms, .kill_ms = now + kill_ms};
}

static void
start_with(const char *script, const struct process_start *s)
{
    words[2] = (char *)(uintptr_t)script;
    open_guards(words);
    ck_assert_int_eq(process_start(&process, &guards, s), 0);
}

static void
start(const char *script)
{
    const struct process_start s = with_lease(LATER_MS, LATER_MS);

    start_with(script, &s);
}

/* Waits until the command is over. */
static void
await_end(void)
{
    while (process.guard != NULL) {
        struct pollfd fd = {.fd = guards.all[0].control, .events = POLLIN};

        ck_assert_int_eq(poll(&fd, 1, -1), 1);
        guards_read(&guards, 0);
    }
}

/* Waits until it is over, and reads all that it has written. Returns its status. */
static int
finish(void)
{
    await_end();
    while (!process_is_read(&process))
        process_read_errors(&process);
    return process.report.status;
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

/* No process holds standard error of the command any more. */
static void
assert_no_writer(void)
{
    struct pollfd fd = {.fd = process.errors, .events = POLLIN};

    ck_assert_int_eq(poll(&fd, 1, 0), 1);
    ck_assert_int_ne(fd.revents & POLLHUP, 0);
}

static void
assert_tail(const char *expected)
{
    ck_assert_uint_eq(process.tail_len, strlen(expected));
    ck_assert(memcmp(process.tail, expected, process.tail_len) == 0);
}

static void
assert_tail_contains(const char *part)
{
    ck_assert_ptr_nonnull(memmem(process.tail, process.tail_len, part, strlen(part)));
}

/* The number of the process that the command has written first. */
static pid_t
written_pid(void)
{
    char text[PROCESS_TAIL + 1];

    await_output();
    memcpy(text, process.tail, process.tail_len);
    text[process.tail_len] = '\0';
    return (pid_t)strtol(text, NULL, 10);
}

/* The state of a process, as /proc has it. */
static char
state_of(pid_t pid)
{
    char path[64], text[256] = "";
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), f));
    ck_assert_int_eq(fclose(f), 0);
    return strrchr(text, ')')[2];
}

/* The first child of a process. */
static pid_t
child_of(pid_t pid)
{
    char path[64], text[64] = "";
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), f));
    ck_assert_int_eq(fclose(f), 0);
    return (pid_t)strtol(text, NULL, 10);
}

TEST_CASE("process", .setup = begin, .teardown = end);

START_TEST(a_command_reads_its_input_and_its_metadata)
{
    struct process_start s = with_lease(LATER_MS, LATER_MS);

    s.input = bytes_str("body ");
    s.metadata = bytes_str("metadata");
    start_with("cat >&2; cat <&3 >&2", &s);
    ck_assert_int_eq(finish(), 0);
    assert_tail("body metadata");
}

START_TEST(a_command_has_the_variables_of_its_job)
{
    struct process_start s = with_lease(LATER_MS, LATER_MS);

    s.variables = bytes_of("JOB_A=1\0JOB_B=two", sizeof("JOB_A=1\0JOB_B=two"));
    start_with("echo $JOB_A $JOB_B >&2; [ -n \"$PATH\" ]", &s);
    ck_assert_int_eq(finish(), 0);
    assert_tail("1 two\n");
    /* The guard stays, and the next job has only its own. */
    process_end(&process);
    s.variables = bytes_of("JOB_A=3", sizeof("JOB_A=3"));
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
    ck_assert_int_eq(finish(), 0);
    assert_tail("3\n");
}

START_TEST(empty_input_is_an_end_of_file)
{
    start("wc -c >&2");
    ck_assert_int_eq(finish(), 0);
    assert_tail("0\n");
}

START_TEST(the_status_is_that_of_the_command)
{
    start("exit 65");
    ck_assert_int_eq(WEXITSTATUS(finish()), 65);
    process_end(&process);
    start("kill -9 $$");
    ck_assert_int_eq(WTERMSIG(finish()), SIGKILL);
}

START_TEST(a_command_that_cannot_run_is_reported_with_the_error)
{
    static char *const missing[] = {"/nowhere/at/all", NULL}, *const directory[] = {"/",
                                                                                    NULL};
    const struct process_start s = with_lease(LATER_MS, LATER_MS);

    open_guards(missing);
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
    (void)finish();
    ck_assert_int_eq(process.report.error, ENOENT);
    process_end(&process);
    open_guards(directory);
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
    (void)finish();
    ck_assert_int_eq(process.report.error, EACCES);
}

START_TEST(variables_that_do_not_fit_are_an_error)
{
    static char variables[GUARD_VARIABLES_MOST + 1];
    struct process_start s = with_lease(LATER_MS, LATER_MS);

    s.variables = bytes_of(variables, sizeof(variables));
    words[2] = "exit 0";
    open_guards(words);
    ck_assert_int_eq(process_start(&process, &guards, &s), E2BIG);
    s.variables.len--; /* too many of them */
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
    (void)finish();
    ck_assert_int_eq(process.report.error, E2BIG);
}

START_TEST(the_tail_is_the_end_of_standard_error_which_is_passed_on)
{
    char passed[3000];

    start("head -c 1500 /dev/zero | tr '\\0' a >&2; printf end >&2");
    ck_assert_int_eq(finish(), 0);
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

START_TEST(a_writer_that_stays_cannot_write_for_ever)
{
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    process.errors = ends[0];
    process.most_left = 5;
    ck_assert_int_eq(write(ends[1], "abc", 3), 3);
    ck_assert(!process_is_read(&process));
    process_read_errors(&process);
    ck_assert_int_eq(write(ends[1], "abc", 3), 3);
    ck_assert(!process_is_read(&process));
    process_read_errors(&process);
    ck_assert_int_eq(write(ends[1], "abc", 3), 3);
    ck_assert(process_is_read(&process));
    ck_assert_int_eq(close(ends[1]), 0);
}

START_TEST(the_command_has_the_given_signal_mask)
{
    sigset_t all;

    (void)sigfillset(&all);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &all, NULL), 0);
    start("grep ^SigBlk: /proc/self/status >&2");
    ck_assert_int_eq(finish(), 0);
    ck_assert_int_eq(sigprocmask(SIG_SETMASK, &none, NULL), 0);
    assert_tail("SigBlk:\t0000000000000000\n");
}

START_TEST(descriptors_below_four_are_never_given_away)
{
    for (int i = 0; i < 4; i++)
        ck_assert_int_ge(fcntl(i, F_GETFD), 0);
}

START_TEST(a_command_gets_no_descriptor_that_this_process_has_open)
{
    /* Below and above the descriptors that a guard needs. */
    static const int least[] = {4, 4, 4, 4, 50};
    int fds[sizeof(least) / sizeof(least[0])];
    char command[256];

    for (size_t i = 0; i < sizeof(least) / sizeof(least[0]); i++) {
        fds[i] = fcntl(stderr_reader, F_DUPFD, least[i]);
        ck_assert_int_ge(fds[i], least[i]);
    }
    (void)snprintf(command, sizeof(command),
                   "for fd in %d %d %d %d %d; do"
                   "    if [ -e /proc/$$/fd/$fd ]; then echo $fd >&2; fi; done",
                   fds[0], fds[1], fds[2], fds[3], fds[4]);
    start(command);
    ck_assert_int_eq(finish(), 0);
    assert_tail("");
    for (size_t i = 0; i < sizeof(least) / sizeof(least[0]); i++)
        ck_assert_int_eq(close(fds[i]), 0);
}

TEST_CASE("end", .setup = begin, .teardown = end);

START_TEST(the_group_ends_with_the_command)
{
    start("sleep 1000 & exit 0");
    ck_assert_int_eq(finish(), 0);
    assert_no_writer();
}

START_TEST(processes_that_left_the_group_end_with_the_command)
{
    start("setsid sh -c 'setsid sleep 1000 & setsid sleep 1000 & exit 0' &"
          " setsid sleep 1000 & wait $!; exit 3");
    process_stop(&process, now_ms());
    ck_assert_int_ne(finish(), 0);
    assert_no_writer();
    process_end(&process);
    start("setsid sh -c 'setsid sleep 1000 & exit 0' >&2; exit 3");
    ck_assert_int_eq(WEXITSTATUS(finish()), 3);
    assert_no_writer();
}

START_TEST(sigterm_reaches_the_whole_group)
{
    start("trap 'wait; exit 7' TERM;"
          " sh -c 'trap \"echo child >&2; exit\" TERM; echo ready >&2;"
          " while :; do sleep 0.1; done' & wait");
    await_output();
    process_stop(&process, INT64_MAX - 1);
    ck_assert_int_eq(WEXITSTATUS(finish()), 7);
    /* The shell also says that its sleep was terminated. */
    assert_tail_contains("child\n");
}

START_TEST(a_stopped_command_gets_sigterm)
{
    pid_t pid;

    start("trap 'exit 7' TERM; echo $$ >&2; kill -STOP $$; while :; do sleep 0.1; done");
    pid = written_pid();
    while (state_of(pid) != 'T')
        (void)poll(NULL, 0, 1);
    process_stop(&process, INT64_MAX - 1);
    ck_assert_int_eq(WEXITSTATUS(finish()), 7);
}

START_TEST(a_command_that_ignores_sigterm_gets_sigkill)
{
    start("trap '' TERM; echo ready >&2; while :; do sleep 0.1; done");
    await_output();
    process_stop(&process, now_ms() + LATER_MS);
    process_stop(&process, now_ms()); /* earlier now */
    ck_assert_int_eq(WTERMSIG(finish()), SIGKILL);
    ck_assert(!process.report.lease_ended);
}

START_TEST(the_guard_sends_sigterm_when_the_lease_is_about_to_end)
{
    const struct process_start s = with_lease(LATER_MS, 2 * LATER_MS);

    start_with("trap 'exit 0' TERM; echo ready >&2; while :; do sleep 0.1; done", &s);
    await_output();
    process_renew(&process, now_ms(), now_ms() + LATER_MS);
    ck_assert_int_eq(finish(), 0);
    ck_assert(process.report.lease_ended);
}

START_TEST(the_guard_sends_sigkill_when_the_lease_is_about_to_end)
{
    const struct process_start s = with_lease(LATER_MS, 2 * LATER_MS);

    start_with("trap '' TERM; setsid sleep 1000 & echo ready >&2; wait", &s);
    await_output();
    process_renew(&process, now_ms(), now_ms() + 1);
    ck_assert_int_eq(WTERMSIG(finish()), SIGKILL);
    ck_assert(process.report.lease_ended);
    assert_no_writer();
}

START_TEST(a_command_does_not_start_when_its_lease_is_about_to_end)
{
    const struct process_start s = with_lease(0, LATER_MS);

    start_with("echo started >&2", &s);
    ck_assert_int_eq(finish(), 0); /* a signal would show */
    ck_assert(process.report.lease_ended);
    assert_tail("");
}

START_TEST(all_ends_with_the_runner)
{
    start("setsid sleep 1000 & echo ready >&2; wait");
    await_output();
    guards_fini(&guards);
    process.guard = NULL; /* it was freed */
    assert_no_writer();
}

START_TEST(a_guard_that_is_killed_ends_its_command_and_the_next_one_runs)
{
    const struct process_start s = with_lease(LATER_MS, LATER_MS);

    start("setsid sleep 1000 & echo ready >&2; wait");
    await_output();
    ck_assert_int_eq(kill(child_of(guards.spawner), SIGKILL), 0);
    ck_assert_int_eq(WTERMSIG(finish()), SIGKILL);
    assert_no_writer();
    process_end(&process);
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
    await_output();
}

/*
 * Runs a command, and kills its guard while the spawner cannot see that. Then starts
 * another one.
 */
static void
start_with_killed_guard(void)
{
    const struct process_start s = with_lease(LATER_MS, LATER_MS);
    struct pollfd guard = {.events = POLLIN};
    int status;

    start("echo ready >&2");
    (void)finish();
    process_end(&process);
    ck_assert_int_eq(kill(guards.spawner, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(guards.spawner, &status, WUNTRACED), guards.spawner);
    guard.fd = pidfd_open(child_of(guards.spawner), 0);
    ck_assert_int_eq(pidfd_send_signal(guard.fd, SIGKILL, NULL, 0), 0);
    ck_assert_int_eq(poll(&guard, 1, -1), 1);
    ck_assert_int_eq(close(guard.fd), 0);
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
}

START_TEST(a_command_whose_guard_was_killed_before_has_not_run)
{
    start_with_killed_guard();
    ck_assert_int_eq(kill(guards.spawner, SIGCONT), 0);
    (void)finish();
    ck_assert(process.untaken);
    assert_tail("");
    ck_assert_uint_eq(guards.count, 0);
}

START_TEST(a_command_that_got_more_orders_from_a_killed_guard_may_have_run)
{
    start_with_killed_guard();
    process_renew(&process, LATER_MS,
                  LATER_MS); /* only this may be what the guard has not read */
    ck_assert_int_eq(kill(guards.spawner, SIGCONT), 0);
    ck_assert_int_eq(WTERMSIG(finish()), SIGKILL);
    ck_assert(!process.untaken);
}

START_TEST(a_killed_spawner_is_replaced)
{
    const struct process_start s = with_lease(LATER_MS, LATER_MS);
    pid_t guard, first;
    int status;

    start("exit 3");
    ck_assert_int_eq(WEXITSTATUS(finish()), 3);
    process_end(&process);
    first = guards.spawner;
    guard = child_of(first);
    ck_assert_int_eq(kill(first, SIGKILL), 0);
    ck_assert_int_eq(waitpid(first, &status, 0), first);
    guards_child_changed(&guards, first, status);
    /* The guard goes on, until it is killed, too. */
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
    ck_assert_int_eq(WEXITSTATUS(finish()), 3);
    process_end(&process);
    ck_assert_int_eq(kill(guard, SIGKILL), 0);
    while (guards.count > 0) {
        struct pollfd fd = {.fd = guards.all[0].control, .events = POLLIN};

        ck_assert_int_eq(poll(&fd, 1, -1), 1);
        guards_read(&guards, 0);
    }
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
    ck_assert_int_eq(WEXITSTATUS(finish()), 3);
    ck_assert_int_ne(guards.spawner, first);
}

/* Stops the spawner, and sends to it until its socket is full. */
static void
fill_spawner(void)
{
    int status;

    ck_assert_int_eq(kill(guards.spawner, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(guards.spawner, &status, WUNTRACED), guards.spawner);
    while (message_send(guards.control, "", 1, NULL, 0)) {
    }
    ck_assert_int_eq(errno, EAGAIN);
}

START_TEST(a_busy_spawner_does_not_block_a_start)
{
    const struct process_start s = with_lease(LATER_MS, LATER_MS);
    struct pollfd fd;

    words[2] = "exit 3";
    open_guards(words);
    ck_assert_uint_eq(guards_limit(&guards), 1);
    fill_spawner();
    ck_assert_uint_eq(guards_limit(&guards), 0);
    ck_assert_int_eq(process_start(&process, &guards, &s), EBUSY);
    ck_assert_int_eq(process.errors, -1);
    ck_assert_int_eq(kill(guards.spawner, SIGCONT), 0);
    fd = (struct pollfd){.fd = guards.control, .events = POLLOUT};
    ck_assert_int_eq(poll(&fd, 1, -1), 1);
    ck_assert_uint_eq(guards_limit(&guards), 1);
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
    ck_assert_uint_eq(guards_limit(&guards), 0);
    ck_assert_int_eq(WEXITSTATUS(finish()), 3);
    process_end(&process);
    /* An idle guard does not need the spawner. */
    fill_spawner();
    ck_assert_uint_eq(guards_limit(&guards), 1);
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
    ck_assert_int_eq(WEXITSTATUS(finish()), 3);
}

START_TEST(a_guard_and_a_spawner_do_not_stay_stopped)
{
    const struct process_start s = with_lease(LATER_MS, LATER_MS);
    int status;

    words[2] = "echo ready >&2; sleep 1000";
    open_guards(words);
    ck_assert_int_eq(kill(guards.spawner, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(guards.spawner, &status, WUNTRACED), guards.spawner);
    guards_child_changed(&guards, guards.spawner, status);
    ck_assert_int_eq(process_start(&process, &guards, &s), 0);
    await_output();
    ck_assert_int_eq(kill(child_of(guards.spawner), SIGSTOP), 0);
    process_stop(&process, now_ms());
    (void)finish();
    assert_no_writer();
}
