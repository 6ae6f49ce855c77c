/*
 * claimd finds the memory limit of its container or machine, in control groups of both
 * versions. Declared in src/main/process_metrics.h.
 */
#include "main/process_metrics.h"

#include "support/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#define MIB (UINT64_C(1024) * 1024)

static char root[64];

static void
make_root(void)
{
    (void)snprintf(root, sizeof(root), "/tmp/memory_limit_test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void
drop_root(void)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

/* A file below the root, with the folders that it needs. */
static void
put(const char *path, const char *text)
{
    char name[512];
    FILE *file;

    (void)snprintf(name, sizeof(name), "%s%s", root, path);
    for (char *at = name + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(name, 0700); /* it may be there */
        *at = '/';
    }
    file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

TEST_CASE("memory_limit", .setup = make_root, .teardown = drop_root);

START_TEST(without_groups_it_is_the_machines)
{
    struct sysinfo machine;

    ck_assert_int_eq(sysinfo(&machine), 0);
    ck_assert_uint_eq(memory_limit(root), machine.totalram * machine.mem_unit);
    put("/proc/meminfo", "MemTotal:        8192 kB\nMemFree: 1 kB\n");
    ck_assert_uint_eq(memory_limit(root), 8 * MIB);
    put("/proc/self/cgroup", "0::/\n");
    ck_assert_uint_eq(memory_limit(root), 8 * MIB);
    put("/sys/fs/cgroup/memory.max", "max\n");
    ck_assert_uint_eq(memory_limit(root), 8 * MIB);
    put("/proc/meminfo", "nothing of use");
    ck_assert_uint_eq(memory_limit(root), machine.totalram * machine.mem_unit);
}

START_TEST(the_least_of_a_group_and_those_above_it_counts)
{
    put("/proc/meminfo", "MemTotal:        8192 kB\n");
    put("/proc/self/cgroup", "0::/system.slice/claimd.service\n");
    put("/sys/fs/cgroup/system.slice/claimd.service/memory.max", "4194304\n");
    ck_assert_uint_eq(memory_limit(root), 4 * MIB);
    put("/sys/fs/cgroup/system.slice/memory.max", "3145728\n");
    ck_assert_uint_eq(memory_limit(root), 3 * MIB);
    put("/sys/fs/cgroup/system.slice/memory.max", "33554432\n");
    ck_assert_uint_eq(memory_limit(root), 4 * MIB);
    put("/sys/fs/cgroup/system.slice/claimd.service/memory.max", "99999999999\n");
    ck_assert_uint_eq(memory_limit(root), 8 * MIB);
}

START_TEST(in_a_container_the_path_may_not_be_there)
{
    put("/proc/meminfo", "MemTotal:        8192 kB\n");
    put("/proc/self/cgroup", "0::/../../docker/0123\n");
    put("/sys/fs/cgroup/memory.max", "2097152\n");
    ck_assert_uint_eq(memory_limit(root), 2 * MIB);
}

START_TEST(groups_of_the_first_version_count_too)
{
    put("/proc/meminfo", "MemTotal:        8192 kB\n");
    put("/proc/self/cgroup", "12:cpu,cpuacct:/a\n11:memory:/a/b\n1:name=systemd:/a\n"
                             "0::/a\nnonsense\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5242880\n");
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    ck_assert_uint_eq(memory_limit(root), 5 * MIB);
}
