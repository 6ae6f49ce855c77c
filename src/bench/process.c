#include "bench/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * Fields are counted from behind the last ")", as the command's name may hold anything:
 * state is field 3, utime 14, stime 15, rss 24.
 */
bool
process_parse_stat(const char *text, uint64_t *ticks, uint64_t *resident_pages)
{
    const char *at = strrchr(text, ')');
    uint64_t user, system, pages;

    if (at == NULL)
        return false;
    if (sscanf(at + 1,
               " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64
               " %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
               &user, &system, &pages) != 3)
        return false;
    *ticks = user + system;
    *resident_pages = pages;
    return true;
}

static bool
read_one(int32_t pid, uint64_t *ticks, uint64_t *pages)
{
    char path[64];
    char text[1024];
    FILE *file;
    size_t len;

    snprintf(path, sizeof path, "/proc/%" PRId32 "/stat", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    return process_parse_stat(text, ticks, pages);
}

bool
process_usage(const struct process_list *list, struct process_usage *out)
{
    uint64_t all_ticks = 0;
    uint64_t all_pages = 0;

    for (size_t i = 0; i < list->count; i++) {
        uint64_t ticks, pages;

        if (!read_one(list->pids[i], &ticks, &pages))
            return false;
        all_ticks += ticks;
        all_pages += pages;
    }
    out->cpu_seconds = (double)all_ticks / (double)sysconf(_SC_CLK_TCK);
    out->resident_bytes = all_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return true;
}

static double
seconds_of(struct timeval tv)
{
    return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

double
process_own_cpu(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}
