#include "claimd/base/thread.h"

#include <signal.h>

enum status
thread_start(pthread_t *out, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    int failed;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    failed = pthread_create(out, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? ST_OK : ST_UNAVAILABLE;
}
