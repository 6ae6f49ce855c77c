/*
 * thread: threads of ours, at which no signals arrive: those are for the threads of main. So a broken
 * pipe is an error like others.
 */
#ifndef CLAIMD_BASE_THREAD_H
#define CLAIMD_BASE_THREAD_H

#include "claimd/base/status.h"

#include <pthread.h>

/* Starts run(arg) in a thread of its own, to be joined. ST_UNAVAILABLE: there can be no more. */
enum status thread_start(pthread_t *out, void *(*run)(void *arg), void *arg);

#endif
