#include "support/invariant_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void
be_the_child(void (*break_it)(void), int out)
{
    (void)prctl(PR_SET_DUMPABLE, 0); /* no core: this is meant to happen */
    (void)signal(SIGABRT, SIG_DFL);
    if (dup2(out, STDERR_FILENO) < 0)
        _exit(1);
    break_it();
    _exit(0);
}

void
catch_broken(void (*break_it)(void), char line[BROKEN_LINE_CAP])
{
    size_t len = 0;
    char *emulator;
    int fds[2], how;
    ssize_t n;
    pid_t child;

    ck_assert_int_eq(pipe(fds), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        be_the_child(break_it, fds[1]);
    ck_assert_int_eq(close(fds[1]), 0);
    while ((n = read(fds[0], line + len, BROKEN_LINE_CAP - 1 - len)) > 0)
        len += (size_t)n;
    line[len] = '\0';
    /* An emulator of user programs (qemu) writes a line about the signal. */
    emulator = strstr(line, "\nqemu: uncaught target signal ");
    if (emulator != NULL)
        emulator[1] = '\0';
    ck_assert_int_eq(close(fds[0]), 0);
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFSIGNALED(how));
    ck_assert_int_eq(WTERMSIG(how), SIGABRT);
}

void
expect_broken(void (*break_it)(void), const char *contains, const char *ends)
{
    char line[BROKEN_LINE_CAP];
    size_t len;

    catch_broken(break_it, line);
    len = strlen(line);
    ck_assert_ptr_eq(strstr(line, "claimd: broken invariant: "), line);
    ck_assert_ptr_nonnull(strstr(line, contains));
    ck_assert_uint_ge(len, strlen(ends));
    ck_assert_str_eq(line + len - strlen(ends), ends);
    ck_assert_ptr_eq(strchr(line, '\n'), line + len - 1);
}
