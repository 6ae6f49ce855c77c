#include "main/process_metrics.h"

#include "claimd/base/bytes.h"
#include "claimd/ds/list.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

/* COUNT_EVERY_NS: claimd counts descriptors at most once a second, because counting many
 * of them is slow. */
enum { COUNT_EVERY_NS = 1000000000, TEXT_CAP = 4096 };

/* Reads a file without the line feed at its end. False if it is missing, empty or too
 * long. */
static bool
read_text(const char *path, char text[TEXT_CAP])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, text, TEXT_CAP);
    (void)close(fd);
    if (n <= 0 || n == TEXT_CAP)
        return false;
    text[n] = '\0';
    if (text[n - 1] == '\n')
        text[n - 1] = '\0';
    return true;
}

/* Counts open descriptors, at most once a second. Two threads may count at the same
 * time. Without a free descriptor to count with, the last count stays. */
static uint64_t
count_descriptors(struct process_metrics *p)
{
    const int64_t now_ns = clock_stopwatch_ns(), counted_ns = atomic_load(&p->counted_ns);
    uint64_t count = 0;
    DIR *dir = NULL;

    if (counted_ns == 0 || now_ns - counted_ns >= COUNT_EVERY_NS)
        dir = opendir("/proc/self/fd");
    if (dir != NULL) {
        while (readdir(dir) != NULL)
            count++;
        (void)closedir(dir);
        /* Without ".", ".." and the descriptor of `dir`. */
        atomic_store(&p->descriptors, count < 3 ? 0 : count - 3);
        atomic_store(&p->counted_ns, now_ns);
    }
    return atomic_load(&p->descriptors);
}

/* Writes the process metrics that the client libraries of Prometheus define, with their
 * names. */
static void
write_process_metrics(struct process_metrics *p, struct exposition *x)
{
    struct timespec used = {.tv_sec = 0};
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long mapped, resident; /* pages */
    char text[TEXT_CAP];
    struct rlimit files;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    metric_write(x, FAMILY_COUNTER, "process_cpu_seconds", "seconds",
                 "Processor time of all threads, in seconds.",
                 (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000, 6);
    metric_write(x, FAMILY_GAUGE, "process_start_time_seconds", "seconds",
                 "Start time of the process, in seconds since 1970.",
                 (uint64_t)clock_to_wall_ms(p->clock, p->started_ms), 3);
    if (read_text("/proc/self/statm", text) &&
        sscanf(text, "%llu %llu", &mapped, &resident) == 2) {
        metric_write(x, FAMILY_GAUGE, "process_resident_memory_bytes", "bytes",
                     "Resident memory, in bytes.", resident * page, 0);
        metric_write(x, FAMILY_GAUGE, "process_virtual_memory_bytes", "bytes",
                     "Mapped memory, in bytes.", mapped * page, 0);
    }
    metric_write(
        x, FAMILY_GAUGE, "process_open_fds", NULL,
        "Number of open file descriptors. claimd counts at most once per second.",
        count_descriptors(p), 0);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        metric_write(x, FAMILY_GAUGE, "process_max_fds", NULL,
                     "Maximum number of file descriptors.", files.rlim_cur, 0);
}

static void
write_all_metrics(struct metrics_source *source, struct exposition *x)
{
    static const struct family build = {"claimd_build", FAMILY_INFO, NULL,
                                        "Version of claimd."};
    static const struct family reloads = {
        "claimd_reloads", FAMILY_COUNTER, NULL,
        "Number of configuration reloads (SIGHUP), by result."};
    const struct label succeeded = {"result", bytes_str("success")};
    const struct label failed = {"result", bytes_str("failure")};
    const struct label version = {"version", bytes_str(CLAIMD_VERSION)};
    struct process_metrics *p = container_of(source, struct process_metrics, source);

    exposition_family(x, &build);
    exposition_sample(x, &version, 1, 1);
    write_process_metrics(p, x);
    metric_write(x, FAMILY_GAUGE, "claimd_memory_used_bytes", "bytes",
                 "Memory of queues, messages, requests and responses, in bytes.",
                 mem_used(p->mem), 0);
    metric_write(
        x, FAMILY_GAUGE, "claimd_memory_budget_bytes", "bytes",
        "Memory budget (max_memory), in bytes. claimd refuses posts above three quarters "
        "of it. 0 means no budget.",
        mem_budget(p->mem), 0);
    metric_write(x, FAMILY_COUNTER, "claimd_log_lines_dropped", NULL,
                 "Number of log lines dropped because claimd could not write the log.",
                 log_dropped(p->log), 0);
    exposition_family(x, &reloads);
    exposition_sample(x, &succeeded, 1, counter_read(&p->reloads));
    exposition_sample(x, &failed, 1, counter_read(&p->failed_reloads));
    metric_write(
        x, FAMILY_GAUGE, "claimd_last_reload_successful", NULL,
        "1 if the last reload succeeded. 0 if it failed and the previous configuration "
        "stays in force.",
        counter_read(&p->last_reload_ok), 0);
    metric_write(
        x, FAMILY_GAUGE, "claimd_last_reload_success_timestamp_seconds", "seconds",
        "Time of the last successful reload, in seconds since 1970.",
        (uint64_t)clock_to_wall_ms(p->clock, (int64_t)counter_read(&p->last_reload_ms)),
        3);
}

void
process_metrics_init(struct process_metrics *p, const struct mem *mem,
                     const struct log *log, const struct clock *clock)
{
    *p = (struct process_metrics){.source.write = write_all_metrics,
                                  .mem = mem,
                                  .log = log,
                                  .clock = clock,
                                  .started_ms = clock_now_ms(clock)};
    counter_set(&p->last_reload_ms, (uint64_t)p->started_ms);
    counter_set(&p->last_reload_ok, 1);
}

void
process_metrics_count_reload(struct process_metrics *p, bool ok)
{
    counter_add(ok ? &p->reloads : &p->failed_reloads, 1);
    counter_set(&p->last_reload_ok, ok);
    if (ok)
        counter_set(&p->last_reload_ms, (uint64_t)clock_now_ms(p->clock));
}

/* ------------------------------------------------------------------ memory limit */

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the lowest memory limit of a control group and its parents. `path` is "/a/b" or
 * "/". */
static uint64_t
group_limit(const char *root, const char *mount, const char *file, struct bytes path)
{
    uint64_t limit = UINT64_MAX, read;
    char name[PATH_MAX], text[TEXT_CAP];

    for (;;) {
        int len = snprintf(name, sizeof(name), "%s%s%.*s/%s", root, mount, (int)path.len,
                           path.data, file);

        if (len > 0 && (size_t)len < sizeof(name) && read_text(name, text) &&
            bytes_to_u64(bytes_str(text), &read)) /* the text may be "max" */
            limit = min_u64(limit, read);
        if (path.len <= 1)
            return limit;
        while (path.len > 0 && path.data[--path.len] != '/')
            continue;
    }
}

/*
 * Lines of /proc/self/cgroup are NUMBER:CONTROLLERS:PATH. The line of cgroup v2 has
 * number 0 and no controllers. In a container, the path may be a path of the host, which
 * does not exist in the container. Then group_limit() finds the limit of the mounted
 * group "/", which is the group of the container.
 */
static uint64_t
cgroup_limit(const char *root)
{
    char name[PATH_MAX], text[TEXT_CAP];
    uint64_t limit = UINT64_MAX;
    struct bytes lines;

    (void)snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
    if (!read_text(name, text))
        return UINT64_MAX;
    lines = bytes_str(text);
    while (bytes_present(lines)) {
        struct bytes path = bytes_cut(&lines, '\n');
        struct bytes number = bytes_cut(&path, ':'), controllers = bytes_cut(&path, ':');

        if (!bytes_present(path))
            continue;
        if (bytes_equal_str(number, "0") && controllers.len == 0)
            limit =
                min_u64(limit, group_limit(root, "/sys/fs/cgroup", "memory.max", path));
        while (bytes_present(controllers))
            if (bytes_equal_str(bytes_cut(&controllers, ','), "memory"))
                limit = min_u64(limit, group_limit(root, "/sys/fs/cgroup/memory",
                                                   "memory.limit_in_bytes", path));
    }
    return limit;
}

uint64_t
memory_limit(const char *root)
{
    uint64_t bytes = cgroup_limit(root);
    char name[PATH_MAX], text[TEXT_CAP];
    struct sysinfo machine;
    unsigned long long kib;

    /* The file is not there with ProcSubset=pid of the unit. In a container it may say
     * less than the kernel. */
    (void)snprintf(name, sizeof(name), "%s/proc/meminfo", root);
    if (read_text(name, text) && sscanf(text, "MemTotal: %llu kB", &kib) == 1)
        bytes = min_u64(bytes, (uint64_t)kib * 1024);
    else if (sysinfo(&machine) == 0)
        bytes = min_u64(bytes, (uint64_t)machine.totalram * machine.mem_unit);
    return bytes == UINT64_MAX ? 0 : bytes;
}
