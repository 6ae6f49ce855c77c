#include "main/memory_limit.h"

#include "claimd/base/bytes.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { TEXT_CAP = 4096 };

/* Reads a file whole, without the line feed at its end; false: there is none, or it is long. */
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

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The least limit of a group and of those above it: path is "/a/b", or "/". */
static uint64_t
group_limit(const char *root, const char *mount, const char *file, struct bytes path)
{
    uint64_t limit = UINT64_MAX, read;
    char name[PATH_MAX], text[TEXT_CAP];

    for (;;) {
        int len = snprintf(name, sizeof(name), "%s%s%.*s/%s", root, mount, (int)path.len,
                           path.data, file);

        if (len > 0 && (size_t)len < sizeof(name) && read_text(name, text) &&
            bytes_to_u64(bytes_str(text), &read)) /* and not "max" */
            limit = least(limit, read);
        if (path.len <= 1)
            return limit;
        while (path.len > 0 && path.data[--path.len] != '/')
            continue;
    }
}

/* Does a list "a,b,c" have this word? */
static bool
lists(struct bytes list, const char *word)
{
    while (bytes_present(list))
        if (bytes_equal_str(bytes_cut(&list, ','), word))
            return true;
    return false;
}

/*
 * Lines of /proc/self/cgroup are NUMBER:CONTROLLERS:PATH; that of v2 has number 0 and no
 * controllers. In a container the path may be one of the host's that is not there: then the
 * limit is that of what is mounted, the group of the container.
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
            limit = least(limit, group_limit(root, "/sys/fs/cgroup", "memory.max", path));
        else if (lists(controllers, "memory"))
            limit = least(limit, group_limit(root, "/sys/fs/cgroup/memory",
                                             "memory.limit_in_bytes", path));
    }
    return limit;
}

/* MemTotal of /proc/meminfo, which is in KiB. */
static uint64_t
machine_limit(const char *root)
{
    char name[PATH_MAX], text[TEXT_CAP];
    unsigned long long kib;

    (void)snprintf(name, sizeof(name), "%s/proc/meminfo", root);
    if (!read_text(name, text) || sscanf(text, "MemTotal: %llu kB", &kib) != 1)
        return UINT64_MAX;
    return (uint64_t)kib * 1024;
}

uint64_t
memory_limit(const char *root)
{
    uint64_t bytes = least(machine_limit(root), cgroup_limit(root));

    return bytes == UINT64_MAX ? 0 : bytes;
}
