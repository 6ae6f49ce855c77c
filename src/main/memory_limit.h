/*
 * memory_limit: how much memory this process may use.
 */
#ifndef MAIN_MEMORY_LIMIT_H
#define MAIN_MEMORY_LIMIT_H

#include <stdint.h>

/*
 * The least of the machine's memory and the limits of the control groups that the process is
 * in (v2: memory.max of the group and of all above it; v1: memory.limit_in_bytes); in bytes.
 * 0: nothing could be found out. root is "" but in tests, whose /proc and /sys stand there.
 *
 * Source: https://docs.kernel.org/admin-guide/cgroup-v2.html
 */
uint64_t memory_limit(const char *root);

#endif
