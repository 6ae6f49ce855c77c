/* thread: threads with all signals blocked, since main handles them. So a broken pipe is
 * an error like others. */
#ifndef CLAIMD_BASE_THREAD_H
#define CLAIMD_BASE_THREAD_H

#include "claimd/base/status.h"

#include <pthread.h>

/* Starts run(arg) in a thread, which the caller joins. ST_UNAVAILABLE: there can be no
 * more threads. */
enum status thread_start(pthread_t *out, void *(*run)(void *arg), void *arg);

#endif
