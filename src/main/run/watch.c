#include "claimd/base/clock.h"
#include "main/command.h"
#include "main/run/run.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GRACE_S = 2,       /* that CMD has when our parent has died */
    NOTHING_TO_DO = -1 /* poll() waits for ever */
};

/* ------------------------------------------------------------------ the end of others */

void
run_tell_end(const struct run_server *s)
{
    if (WIFSIGNALED(s->status))
        (void)command_fails(0, "the server at %s was killed by signal %d", s->address,
                            WTERMSIG(s->status));
    else
        (void)command_fails(0, "the server at %s has ended with status %d", s->address,
                            WEXITSTATUS(s->status));
}

static void
note_end(struct run *r, pid_t pid, int status)
{
    if (pid == r->command) {
        r->command = 0;
        r->command_status = status;
    }
    for (size_t i = 0; i < r->words.instances; i++) {
        struct run_server *s = &r->servers[i];

        if (s->pid != pid)
            continue;
        s->pid = 0;
        s->status = status;
        if (!r->serving)
            continue;
        r->broken = true;
        run_tell_end(s);
    }
}

/* CMD was stopped from the terminal: whoever waits for us is to see that. */
static void
stop_too(const struct run *r, pid_t pid, int number)
{
    if (pid == r->command &&
        (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU))
        (void)raise(SIGSTOP);
}

/* Also children of others, which come to us where there is no init. */
void
run_reap(struct run *r)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0)
        if (WIFSTOPPED(status))
            stop_too(r, pid, WSTOPSIG(status));
        else
            note_end(r, pid, status);
}

/* ------------------------------------------------------------------ signals */

static const int taken[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                            SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

/* Comes when the thread of our parent that has started us ends. */
static int
parent_signal(void)
{
    return SIGRTMIN;
}

bool
run_take_signals(struct run *r)
{
    sigset_t set;

    /* Who was started in a way that ignores the ends of its children has none. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        (void)sigaddset(&set, taken[i]);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, parent_signal());
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    (void)sigaddset(&set, SIGPIPE); /* our standard error may have nobody who reads it */
    return r->signals >= 0 && sigprocmask(SIG_BLOCK, &set, &r->before) == 0;
}

/*
 * The signal is for the death of a thread, the descriptor for that of the process; but there is
 * none for a parent in another namespace, or from an old kernel.
 */
void
run_watch_parent(struct run *r)
{
    r->parent = getppid();
    (void)prctl(PR_SET_PDEATHSIG, parent_signal());
    if (r->parent > 0)
        r->parent_end = (int)syscall(SYS_pidfd_open, r->parent, 0);
    if (r->parent_end >= 0)
        (void)fcntl(r->parent_end, F_SETFD, FD_CLOEXEC);
}

static void
become_orphan(struct run *r)
{
    if (r->orphaned)
        return;
    r->orphaned = true;
    r->stopped_by = SIGTERM;
    if (r->command > 0) {
        (void)kill(r->command, SIGTERM);
        (void)kill(r->command, SIGCONT);
    }
    r->kill_at_ns = clock_stopwatch_ns() + GRACE_S * RUN_SECOND_NS;
}

static bool
is_end(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

/* What the terminal sends goes to CMD by itself. */
static void
pass_on(struct run *r, const struct signalfd_siginfo *info)
{
    const int number = (int)info->ssi_signo;

    if (number == SIGCHLD)
        return;
    if (number == parent_signal()) {
        if (r->parent == 0 || getppid() != r->parent)
            become_orphan(r);
        return;
    }
    if (r->command > 0 && info->ssi_code != SI_KERNEL)
        (void)kill(r->command, number);
    else if (r->command == 0 && is_end(number))
        r->stopped_by = number;
}

static void
take_in(struct run *r)
{
    struct signalfd_siginfo info;

    while (read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        pass_on(r, &info);
    run_reap(r);
}

/* ------------------------------------------------------------------ waiting */

int
run_left_ms(int64_t until_ns)
{
    int64_t left_ns = until_ns - clock_stopwatch_ns();

    return left_ns <= 0 ? 0 : (int)(left_ns / 1000000) + 1;
}

void
run_rest(struct run *r, struct pollfd *fds, size_t count, int64_t until_ns)
{
    fds[count] = (struct pollfd){.fd = r->signals, .events = POLLIN};
    fds[count + 1] =
        (struct pollfd){.fd = r->orphaned ? -1 : r->parent_end, .events = POLLIN};
    if (poll(fds, (nfds_t)count + 2,
             until_ns == 0 ? NOTHING_TO_DO : run_left_ms(until_ns)) < 0)
        return; /* interrupted */
    if (fds[count + 1].revents != 0)
        become_orphan(r);
    take_in(r);
}
