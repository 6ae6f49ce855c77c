#include "main/process_metrics.h"

#include "claimd/ds/list.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Counting descriptors takes a moment when there are many: once a second is enough. */
enum { COUNT_EVERY_NS = 1000000000 };

/* ------------------------------------------------------------------ the process */

/* Bytes that are resident and mapped, from "size resident ..." in pages. */
static bool
read_memory(uint64_t *resident, uint64_t *mapped)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long sizes[2];
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[n < 0 ? 0 : n] = '\0';
    if (sscanf(text, "%llu %llu", &sizes[0], &sizes[1]) != 2)
        return false;
    *mapped = sizes[0] * page;
    *resident = sizes[1] * page;
    return true;
}

static uint64_t
count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t count = 0;

    if (dir == NULL)
        return 0;
    while (readdir(dir) != NULL)
        count++;
    (void)closedir(dir);
    return count < 3 ? 0 : count - 3; /* ".", "..", and the folder's own */
}

static uint64_t
descriptors(struct process_metrics *v)
{
    int64_t now_ns = clock_stopwatch_ns();
    uint64_t count;

    lock_acquire(&v->lock);
    if (v->counted_ns == 0 || now_ns - v->counted_ns >= COUNT_EVERY_NS) {
        v->descriptors = count_descriptors();
        v->counted_ns = now_ns;
    }
    count = v->descriptors;
    lock_release(&v->lock);
    return count;
}

static uint64_t
processor_us(void)
{
    struct timespec used;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

static void
single_decimal(struct exposition *x, const struct family *family, uint64_t value,
               unsigned digits)
{
    exposition_family(x, family);
    exposition_decimal(x, NULL, 0, value, digits);
}

/* By the names that Prometheus's own libraries give them. */
static void
write_process(struct process_metrics *v, struct exposition *x)
{
    static const struct family cpu = {"process_cpu_seconds", FAMILY_COUNTER, "seconds",
                                      "Processor time of all threads, in seconds."};
    static const struct family resident = {"process_resident_memory_bytes", FAMILY_GAUGE,
                                           "bytes", "Resident memory, in bytes."};
    static const struct family mapped = {"process_virtual_memory_bytes", FAMILY_GAUGE,
                                         "bytes", "Mapped memory, in bytes."};
    static const struct family started = {
        "process_start_time_seconds", FAMILY_GAUGE, "seconds",
        "Start time of the process, in seconds since 1970."};
    static const struct family open_files = {
        "process_open_fds", FAMILY_GAUGE, NULL,
        "Number of open file descriptors. claimd counts at most once per second."};
    static const struct family most_files = {"process_max_fds", FAMILY_GAUGE, NULL,
                                             "Maximum number of file descriptors."};
    struct rlimit files;
    uint64_t bytes[2];

    single_decimal(x, &cpu, processor_us(), 6);
    single_decimal(x, &started, (uint64_t)v->started_ms, 3);
    if (read_memory(&bytes[0], &bytes[1])) {
        exposition_single(x, &resident, bytes[0]);
        exposition_single(x, &mapped, bytes[1]);
    }
    exposition_single(x, &open_files, descriptors(v));
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        exposition_single(x, &most_files, files.rlim_cur);
}

/* ------------------------------------------------------------------ claimd */

static void
write_build(struct exposition *x)
{
    static const struct family build = {"claimd_build", FAMILY_INFO, NULL,
                                        "Version of claimd."};
    const struct label version = {"version", bytes_str(CLAIMD_VERSION)};

    exposition_family(x, &build);
    exposition_sample(x, &version, 1, 1);
}

static void
write_memory(const struct process_metrics *v, struct exposition *x)
{
    static const struct family used = {
        "claimd_memory_used_bytes", FAMILY_GAUGE, "bytes",
        "Memory of queues, messages, requests and responses, in bytes."};
    static const struct family budget = {
        "claimd_memory_budget_bytes", FAMILY_GAUGE, "bytes",
        "Memory budget (max_memory), in bytes. claimd refuses posts above three quarters "
        "of it. 0 means no budget."};

    exposition_single(x, &used, mem_used(v->mem));
    exposition_single(x, &budget, mem_budget(v->mem));
}

static void
write_reloads(const struct process_metrics *v, struct exposition *x)
{
    static const struct family reloads = {
        "claimd_reloads", FAMILY_COUNTER, NULL,
        "Number of configuration reloads (SIGHUP), by result."};
    static const struct family successful = {
        "claimd_last_reload_successful", FAMILY_GAUGE, NULL,
        "1 if the last reload succeeded. 0 if it failed and the previous configuration "
        "stays in force."};
    static const struct family last = {
        "claimd_last_reload_success_timestamp_seconds", FAMILY_GAUGE, "seconds",
        "Time of the last successful reload, in seconds since 1970."};
    const struct label well = {"result", bytes_str("success")};
    const struct label failed = {"result", bytes_str("failure")};

    exposition_family(x, &reloads);
    exposition_sample(x, &well, 1, counter_read(&v->reloads));
    exposition_sample(x, &failed, 1, counter_read(&v->failed_reloads));
    exposition_single(x, &successful, counter_read(&v->last_reload_well));
    single_decimal(x, &last, counter_read(&v->last_reload_ms), 3);
}

static void
write_metrics(struct metrics_source *source, struct exposition *x)
{
    static const struct family dropped = {
        "claimd_log_lines_dropped", FAMILY_COUNTER, NULL,
        "Number of log lines dropped because claimd could not write the log."};
    struct process_metrics *v = container_of(source, struct process_metrics, source);

    write_build(x);
    write_process(v, x);
    write_memory(v, x);
    exposition_single(x, &dropped, log_dropped(v->log));
    write_reloads(v, x);
}

void
process_metrics_init(struct process_metrics *v, const struct mem *mem,
                     const struct log *log, int64_t now_ms)
{
    *v = (struct process_metrics){
        .source.write = write_metrics, .mem = mem, .log = log, .started_ms = now_ms};
    counter_set(&v->last_reload_ms, (uint64_t)now_ms);
    counter_set(&v->last_reload_well, 1);
    lock_init(&v->lock);
}

void
process_metrics_fini(struct process_metrics *v)
{
    lock_fini(&v->lock);
}

void
process_metrics_reloaded(struct process_metrics *v, bool well, int64_t now_ms)
{
    counter_add(well ? &v->reloads : &v->failed_reloads, 1);
    counter_set(&v->last_reload_well, well);
    if (well)
        counter_set(&v->last_reload_ms, (uint64_t)now_ms);
}
