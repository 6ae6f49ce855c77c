/*
 * process: what the kernel says a process has used, from /proc.
 */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_MAX 16

struct process_list {
    int32_t pids[PROCESS_MAX];
    size_t count;
};

struct process_usage {
    double cpu_seconds;      /* user and system, to 10 ms */
    uint64_t resident_bytes; /* RSS */
};

/* Adds up over the list; false if one of the processes cannot be read. */
bool process_usage(const struct process_list *list, struct process_usage *out);

/* CPU seconds of the calling process. */
double process_own_cpu(void);

/* CPU ticks (user + system) from the text of /proc/PID/stat; false if it is none. */
bool process_parse_stat(const char *text, uint64_t *ticks, uint64_t *resident_pages);

#endif
