/* The real disk with the real system, and with one that fails on purpose. */
#include "claimd/journal/disk.h"

#include "support/disk_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------------ the system */

/* Replacements for system calls (linked so by CMake). They fail when the test says so. */
static struct {
    int interrupted;   /* so many of the next calls are, by a signal */
    int open_error;    /* of openat(); 0: none */
    int space_error;   /* of fallocate(), when it has got half of the way */
    int write_error;   /* of pwrite(), */
    int writes_before; /* after so many that do what they should */
    int sync_error;    /* of fdatasync() and fsync() */
    int syncs;         /* of files, so far */
    ino_t synced;      /* the directory that was synced last */
    bool no_memory;    /* is all that malloc() has; else it is full of rubbish */
} sys;

static bool
interrupt(void)
{
    if (sys.interrupted == 0)
        return false;
    sys.interrupted--;
    errno = EINTR;
    return true;
}

static int
fail_with(int error)
{
    errno = error;
    return -1;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
ssize_t __real_pread(int fd, void *to, size_t len, off_t offset);
ssize_t __wrap_pread(int fd, void *to, size_t len, off_t offset);
ssize_t __real_pwrite(int fd, const void *from, size_t len, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *from, size_t len, off_t offset);
int __real_fallocate(int fd, int mode, off_t offset, off_t len);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t len);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

void *
__wrap_malloc(size_t size)
{
    void *block = sys.no_memory ? NULL : __real_malloc(size);

    return block == NULL ? NULL : memset(block, 0xa5, size);
}

int
__wrap_openat(int folder, const char *path, int flags, ...)
{
    mode_t mode;
    va_list more;

    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
    if (interrupt())
        return -1;
    return sys.open_error != 0 ? fail_with(sys.open_error)
                               : __real_openat(folder, path, flags, mode);
}

ssize_t
__wrap_pread(int fd, void *to, size_t len, off_t offset)
{
    return interrupt() ? -1 : __real_pread(fd, to, len, offset);
}

ssize_t
__wrap_pwrite(int fd, const void *from, size_t len, off_t offset)
{
    if (interrupt())
        return -1;
    if (sys.write_error != 0 && sys.writes_before-- == 0)
        return fail_with(sys.write_error);
    return __real_pwrite(fd, from, len, offset);
}

int
__wrap_fallocate(int fd, int mode, off_t offset, off_t len)
{
    if (interrupt())
        return -1;
    if (sys.space_error == 0)
        return __real_fallocate(fd, mode, offset, len);
    if (sys.space_error != EOPNOTSUPP)
        ck_assert_int_eq(__real_fallocate(fd, mode, offset, len / 2), 0);
    return fail_with(sys.space_error);
}

int
__wrap_fdatasync(int fd)
{
    sys.syncs++;
    return sys.sync_error != 0 ? fail_with(sys.sync_error) : __real_fdatasync(fd);
}

int
__wrap_fsync(int fd)
{
    struct stat st;

    ck_assert_int_eq(fstat(fd, &st), 0);
    sys.synced = st.st_ino;
    return sys.sync_error != 0 ? fail_with(sys.sync_error) : __real_fsync(fd);
}

/* ------------------------------------------------------------------ words */

static struct disk_fixture f;
static char path[128];

static void
open_disk(void)
{
    memset(&sys, 0, sizeof(sys));
    disk_fixture_open(&f, DISK_REAL);
}

static void
close_disk(void)
{
    disk_fixture_close(&f);
}

#define REAL_CASE(name) TEST_CASE(name, .setup = open_disk, .teardown = close_disk)

/* The path of what has this name in the disk's folder; good until the next call. */
static const char *
at(const char *name)
{
    ck_assert_int_lt(snprintf(path, sizeof(path), "%s/%s", f.folder, name),
                     (int)sizeof(path));
    return path;
}

static struct stat
look(const char *where)
{
    struct stat st;

    ck_assert_int_eq(stat(where, &st), 0);
    return st;
}

/* Opens what is there in every way; each gives its error. */
static void
expect_refused(const char *name, int reading, int writing)
{
    struct disk_file *file = NULL;

    ck_assert_int_eq(disk_file_open(f.d, name, DISK_READ, &file), reading);
    ck_assert_int_eq(disk_file_open(f.d, name, DISK_WRITE, &file), writing);
    ck_assert_int_eq(disk_file_open(f.d, name, DISK_NEW, &file), EEXIST);
    ck_assert_int_eq(disk_lock(f.d, name, &file), writing);
    ck_assert_ptr_null(file);
}

/* Runs it in a child process; returns how that exits. */
static int
in_child(int (*run)(void *arg), void *arg)
{
    int status;
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(run(arg));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ------------------------------------------------------------------ the directory */

REAL_CASE("the directory");

START_TEST(a_directory_is_made_for_its_owner_alone_and_that_is_made_durable)
{
    struct disk *d = NULL;
    mode_t before = umask(0);

    ck_assert_int_eq(disk_open(at("new"), true, &d), 0);
    (void)umask(before);
    ck_assert_uint_eq(look(at("new")).st_mode & 07777, 0700);
    ck_assert_uint_eq(sys.synced, look(f.folder).st_ino);
    put_text(d, "a", "text");
    ck_assert_int_eq(disk_sync_names(d), 0);
    ck_assert_uint_eq(sys.synced, look(at("new")).st_ino);
    disk_shut(d);
    /* The next one finds it; who made it may have crashed before that was durable. */
    sys.synced = 0;
    ck_assert_int_eq(disk_open(at("new"), true, &d), 0);
    ck_assert_uint_eq(sys.synced, look(f.folder).st_ino);
    expect_text(d, "a", "text");
    ck_assert_int_eq(disk_unlink(d, "a"), 0);
    disk_shut(d);
    ck_assert_int_eq(rmdir(at("new")), 0);
}

START_TEST(a_directory_that_is_not_there_is_not_made_unasked)
{
    struct disk *d = NULL;

    ck_assert_int_eq(disk_open(at("new"), false, &d), ENOENT);
    ck_assert_int_eq(disk_open(at("new/newer"), true, &d), ENOENT);
    ck_assert_ptr_null(d);
    ck_assert_int_eq(access(at("new"), F_OK), -1);
}

START_TEST(a_path_that_is_no_directory_is_refused)
{
    struct disk *d = NULL;

    put_text(f.d, "file", "text");
    ck_assert_int_eq(disk_open(at("file"), false, &d), ENOTDIR);
    ck_assert_int_eq(disk_open(at("file"), true, &d), ENOTDIR);
    ck_assert_int_eq(disk_open(at("file/new"), true, &d), ENOTDIR);
    ck_assert_int_eq(disk_open("", true, &d), ENOENT);
    ck_assert_ptr_null(d);
}

START_TEST(a_directory_whose_place_cannot_be_made_durable_is_not_opened)
{
    struct disk *d = NULL;

    sys.sync_error = EIO;
    ck_assert_int_eq(disk_open(at("new"), true, &d), EIO);
    ck_assert_ptr_null(d);
    ck_assert_int_eq(rmdir(at("new")), 0);
}

/* CIFS and shared folders of virtual machines. */
START_TEST(a_file_system_that_cannot_sync_a_directory_is_named)
{
    struct disk *d = NULL;
    char text[ERRNO_TEXT_CAP];

    sys.sync_error = EINVAL;
    ck_assert_int_eq(disk_open(at("new"), true, &d), DISK_CANNOT_SYNC_NAMES);
    ck_assert_ptr_null(d);
    ck_assert_ptr_nonnull(
        strstr(disk_error_text(DISK_CANNOT_SYNC_NAMES, text), "cannot sync a directory"));
    /* One that exists may be a mount, and its parent of another file system. */
    sys.sync_error = EINVAL;
    ck_assert_int_eq(disk_open(at("new"), true, &d), 0);
    sys.sync_error = EINVAL;
    ck_assert_int_eq(disk_sync_names(d), DISK_CANNOT_SYNC_NAMES);
    sys.sync_error = 0;
    disk_shut(d);
    ck_assert_int_eq(rmdir(at("new")), 0);
}

START_TEST(the_directory_may_be_moved)
{
    struct disk *d = NULL;
    char old[64];

    (void)snprintf(old, sizeof(old), "%s/old", f.folder);
    ck_assert_int_eq(disk_open(old, true, &d), 0);
    put_text(d, "a", "text");
    ck_assert_int_eq(rename(old, at("new")), 0);
    expect_text(d, "a", "text");
    ck_assert_int_eq(disk_rename(d, "a", "b"), 0);
    ck_assert_int_eq(access(at("new/b"), F_OK), 0);
    ck_assert_int_eq(disk_unlink(d, "b"), 0);
    disk_shut(d);
    ck_assert_int_eq(rmdir(at("new")), 0);
}

/* Runs it as a user without rights; -1: that cannot be had. */
static int
as_another_user(int (*run)(void *arg), void *arg)
{
    int result;

    if (getuid() == 0 && seteuid(65534) != 0)
        return -1;
    result = run(arg);
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
    return result;
}

static int
open_and_shut(void *where)
{
    struct disk *d = NULL;
    int error = disk_open(where, true, &d);

    disk_shut(d);
    return error;
}

START_TEST(a_directory_without_rights_is_refused)
{
    int error;

    ck_assert_int_eq(chmod(f.folder, 0), 0);
    error = as_another_user(open_and_shut, f.folder);
    ck_assert_int_eq(chmod(f.folder, 0700), 0);
    ck_assert(error == EACCES || error == -1);
}

START_TEST(the_parent_of_an_existing_directory_need_not_be_readable)
{
    char inside[64], missing[64];
    int found, made;

    (void)snprintf(inside, sizeof(inside), "%s/inside", f.folder);
    (void)snprintf(missing, sizeof(missing), "%s/missing", f.folder);
    ck_assert_int_eq(mkdir(inside, 0700), 0);
    ck_assert_int_eq(chmod(inside, 0777), 0);
    ck_assert_int_eq(chmod(f.folder, 0733), 0); /* 0333 for its owner, who may be us */
    if (getuid() != 0)
        ck_assert_int_eq(chmod(f.folder, 0333), 0);
    found = as_another_user(open_and_shut, inside);
    made = as_another_user(open_and_shut, missing);
    ck_assert_int_eq(chmod(f.folder, 0700), 0);
    ck_assert_int_eq(rmdir(inside), 0);
    (void)rmdir(missing);
    ck_assert(found == 0 || found == -1);
    ck_assert(made == EACCES || made == -1); /* we made it: it must be durable */
}

/* ------------------------------------------------------------------ files */

REAL_CASE("files");

START_TEST(files_are_their_owners_alone)
{
    struct disk_file *lock;
    mode_t before = umask(0);

    put_text(f.d, "a", "");
    ck_assert_int_eq(disk_lock(f.d, "lock", &lock), 0);
    (void)umask(before);
    disk_close(f.d, lock);
    ck_assert_uint_eq(look(at("a")).st_mode & 07777, 0600);
    ck_assert_uint_eq(look(at("lock")).st_mode & 07777, 0600);
}

START_TEST(symbolic_links_are_not_followed)
{
    put_text(f.d, "a", "text");
    ck_assert_int_eq(symlink("a", at("link")), 0);
    ck_assert_int_eq(symlink("nowhere", at("dangling")), 0);
    expect_refused("link", ELOOP, ELOOP);
    expect_refused("dangling", ELOOP, ELOOP);
    expect_none(f.d, "nowhere");
    ck_assert_int_eq(disk_unlink(f.d, "link"), 0);
    expect_text(f.d, "a", "text");
}

START_TEST(only_regular_files_are_opened)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(mkdir(at("folder"), 0700), 0);
    ck_assert_int_eq(mkfifo(at("pipe"), 0600), 0); /* which would wait for its writer */
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", f.folder);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(close(fd), 0);
    expect_refused("folder", EISDIR, EISDIR);
    expect_refused("pipe", EINVAL, EINVAL);
    expect_refused("socket", ENXIO, ENXIO);
    ck_assert_int_eq(disk_unlink(f.d, "folder"), EISDIR);
    ck_assert_int_eq(rmdir(at("folder")), 0);
}

START_TEST(no_other_program_inherits_what_is_open)
{
    struct disk_file *file = make_file(f.d, "a"), *lock;
    DIR *open = opendir("/proc/self/fd");
    const struct dirent *entry;
    char target[128];
    int ours = 0;

    ck_assert_int_eq(disk_lock(f.d, "lock", &lock), 0);
    ck_assert_ptr_nonnull(open);
    while ((entry = readdir(open)) != NULL) {
        ssize_t len = readlinkat(dirfd(open), entry->d_name, target, sizeof(target) - 1);

        target[len < 0 ? 0 : len] = '\0';
        if (strncmp(target, f.folder, strlen(f.folder)) != 0)
            continue;
        ck_assert_int_eq(fcntl(atoi(entry->d_name), F_GETFD), FD_CLOEXEC);
        ours++;
    }
    (void)closedir(open);
    ck_assert_int_eq(ours, 4); /* the folder, the file, and the lock with its folder */
    disk_close(f.d, file);
    disk_close(f.d, lock);
}

static void
keep_name(void *arg, const char *name)
{
    (void)snprintf(arg, DISK_NAME_CAP, "%s", name);
}

START_TEST(a_name_that_is_too_long_is_listed_all_the_same)
{
    char longest[256], found[DISK_NAME_CAP] = "";
    int folder = open(f.folder, O_RDONLY | O_DIRECTORY);

    memset(longest, 'x', 255);
    longest[255] = '\0';
    ck_assert_int_eq(mkdirat(folder, longest, 0700), 0);
    ck_assert_int_eq(disk_list(f.d, keep_name, found), 0);
    ck_assert_int_eq(unlinkat(folder, longest, AT_REMOVEDIR), 0);
    ck_assert_int_eq(close(folder), 0);
    ck_assert_uint_eq(strlen(found), DISK_NAME_CAP - 1);
    ck_assert_int_eq(strncmp(found, longest, DISK_NAME_CAP - 1), 0);
}

/* ------------------------------------------------------------------ the lock */

REAL_CASE("the lock");

/* Takes the lock as another process would; its error. */
static int
lock_it(void *folder)
{
    struct disk_file *file;
    struct disk *d;
    int error = disk_open(folder, false, &d);

    return error != 0 ? error : disk_lock(d, "lock", &file);
}

START_TEST(another_process_has_the_lock)
{
    struct disk_file *file;

    ck_assert_int_eq(disk_lock(f.d, "lock", &file), 0);
    ck_assert_int_eq(in_child(lock_it, f.folder), EWOULDBLOCK);
    disk_close(f.d, file);
    ck_assert_int_eq(in_child(lock_it, f.folder), 0);
    /* It ended without closing anything, and its lock is gone. */
    ck_assert_int_eq(disk_lock(f.d, "lock", &file), 0);
    disk_close(f.d, file);
}

/* ------------------------------------------------------------------ space */

REAL_CASE("space");

static uint64_t
bytes_taken(const char *name)
{
    return (uint64_t)look(at(name)).st_blocks * 512;
}

START_TEST(allocated_space_is_the_files_own)
{
    struct disk_file *file = make_file(f.d, "a");

    write_at(f.d, file, 300000, "a hole before it");
    ck_assert_int_eq(disk_allocate(f.d, file, 1 << 20), 0);
    ck_assert_uint_eq(size_of(f.d, file), 1 << 20);
    ck_assert_uint_ge(bytes_taken("a"), 1 << 20);
    disk_close(f.d, file);
}

START_TEST(space_that_was_cut_off_is_free)
{
    struct disk_file *file = make_file(f.d, "a");

    ck_assert_int_eq(disk_allocate(f.d, file, 1 << 20), 0);
    ck_assert_int_eq(disk_cut(f.d, file, 8192), 0);
    ck_assert_uint_le(bytes_taken("a"), 64 * 1024);
    disk_close(f.d, file);
    file = open_file(f.d, "a", DISK_READ);
    ck_assert_int_eq(disk_cut(f.d, file, 4096), EINVAL);
    ck_assert_uint_eq(size_of(f.d, file), 8192);
    disk_close(f.d, file);
}

START_TEST(without_help_from_the_file_system_zeros_are_written)
{
    struct disk_file *file = make_file(f.d, "a");
    char zeros[100] = {0}, found[100];
    size_t got = 0;

    sys.space_error = EOPNOTSUPP;
    write_at(f.d, file, 0, "head");
    write_at(f.d, file, 300000, "a hole before it");
    ck_assert_int_eq(disk_allocate(f.d, file, (1 << 20) + 1), 0);
    ck_assert_uint_eq(size_of(f.d, file), (1 << 20) + 1);
    ck_assert_uint_ge(bytes_taken("a"), 1 << 20);
    expect_at(f.d, file, 0, "head");
    expect_at(f.d, file, 300000, "a hole before it");
    ck_assert_int_eq(disk_read(f.d, file, 299900, found, 100, &got), 0);
    ck_assert_mem_eq(found, zeros, 100);
    for (uint64_t offset = 300016; offset < (1 << 20) - 100; offset += 100) {
        ck_assert_int_eq(disk_read(f.d, file, offset, found, 100, &got), 0);
        ck_assert_mem_eq(found, zeros, 100);
    }
    disk_close(f.d, file);
}

START_TEST(a_failed_allocation_leaves_no_part_of_the_file)
{
    struct disk_file *file = make_file(f.d, "a");

    write_at(f.d, file, 0, "text");
    sys.space_error = ENOSPC;
    ck_assert_int_eq(disk_allocate(f.d, file, 1 << 20), ENOSPC);
    ck_assert_uint_eq(size_of(f.d, file), 4);
    ck_assert_uint_lt(bytes_taken("a"), 1 << 16);
    sys.space_error = EOPNOTSUPP;
    sys.write_error = ENOSPC;
    sys.writes_before = 3;
    ck_assert_int_eq(disk_allocate(f.d, file, 1 << 20), ENOSPC);
    ck_assert_int_eq(sys.writes_before, -1); /* it came to that */
    disk_close(f.d, file);
    expect_text(f.d, "a", "text");
    ck_assert_uint_lt(bytes_taken("a"), 1 << 16);
}

START_TEST(a_tmpfs_has_space_or_says_that_it_has_not)
{
    char folder[] = "/dev/shm/claimd-test-XXXXXX";
    struct disk_file *file;
    struct statfs fs;
    struct disk *d;

    if (statfs("/dev/shm", &fs) != 0 || fs.f_type != TMPFS_MAGIC || fs.f_blocks == 0)
        return; /* another kind, or one without a limit */
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(disk_open(folder, false, &d), 0);
    file = make_file(d, "a");
    ck_assert_int_eq(disk_allocate(d, file, 1 << 20), 0);
    ck_assert_uint_eq(size_of(d, file), 1 << 20);
    ck_assert_int_eq(disk_allocate(d, file, (fs.f_blocks + 1) * (uint64_t)fs.f_bsize),
                     ENOSPC);
    ck_assert_uint_eq(size_of(d, file), 1 << 20);
    disk_close(d, file);
    ck_assert_int_eq(disk_unlink(d, "a"), 0);
    disk_shut(d);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* ------------------------------------------------------------------ a small disk */

enum { SMALL = 1 << 20, NOT_TO_BE_HAD = 200 };

/* Gives the line to the parent that an expectation is not met in. */
#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition))                                                                \
            return fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), 1;    \
    } while (0)

/* Fills a file until there is no more space. */
static int
fill_up(struct disk *d, struct disk_file *file)
{
    static const char piece[10000] = "full";
    int error = 0;

    for (uint64_t offset = 0; error == 0 && offset < 2 * SMALL; offset += sizeof(piece))
        error = disk_write(d, file, offset, piece, sizeof(piece));
    return error;
}

static int
use_small_disk(struct disk *d)
{
    struct disk_file *kept, *filler;
    static char all[SMALL / 2];
    uint64_t space = 0;

    EXPECT(disk_free_bytes(d, &space) == 0 && space <= SMALL && space > SMALL - 65536);
    EXPECT(disk_file_open(d, "kept", DISK_NEW, &kept) == 0);
    EXPECT(disk_allocate(d, kept, SMALL / 2) == 0);
    EXPECT(disk_free_bytes(d, &space) == 0 && space <= SMALL / 2);
    EXPECT(disk_file_open(d, "filler", DISK_NEW, &filler) == 0);
    EXPECT(disk_allocate(d, filler, SMALL) == ENOSPC);
    EXPECT(disk_free_bytes(d, &space) == 0 && space > SMALL / 2 - 65536);
    EXPECT(fill_up(d, filler) == ENOSPC);
    EXPECT(disk_free_bytes(d, &space) == 0 && space == 0);
    memset(all, 'x', sizeof(all));
    EXPECT(disk_write(d, kept, 0, all, sizeof(all)) == 0); /* as promised */
    EXPECT(disk_sync(d, kept) == 0);
    EXPECT(disk_unlink(d, "filler") == 0); /* that works, and there is space again */
    disk_close(d, filler);
    EXPECT(disk_free_bytes(d, &space) == 0 && space > SMALL / 2 - 65536);
    disk_close(d, kept);
    return 0;
}

static bool
write_to_kernel(const char *file, const char *text)
{
    int fd = open(file, O_WRONLY);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        (void)close(fd);
    return written;
}

/* From here on this process may mount what no other process sees, if the system lets
 * it. */
static bool
leave_mounts(void)
{
    unsigned user = getuid(), group = getgid();
    char users[32], groups[32];

    if (user == 0 && unshare(CLONE_NEWNS) == 0)
        return true;
    (void)snprintf(users, sizeof(users), "0 %u 1", user);
    (void)snprintf(groups, sizeof(groups), "0 %u 1", group);
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_to_kernel("/proc/self/uid_map", users) &&
           write_to_kernel("/proc/self/setgroups", "deny") &&
           write_to_kernel("/proc/self/gid_map", groups);
}

/* Mounts a disk of a megabyte. */
static int
mount_and_use(void *folder)
{
    struct disk *d = NULL;
    int failed;

    if (!leave_mounts() || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder, "tmpfs", 0, "size=1m") != 0)
        return NOT_TO_BE_HAD;
    EXPECT(disk_open(folder, false, &d) == 0);
    failed = use_small_disk(d);
    disk_shut(d);
    return failed;
}

START_TEST(a_full_disk_takes_what_it_has_promised_space_for)
{
    int failed = in_child(mount_and_use, f.folder);

    ck_assert(failed == 0 || failed == NOT_TO_BE_HAD);
}

/* --------------------------------------------------------------- a system that fails */

REAL_CASE("a system that fails");

START_TEST(calls_that_a_signal_interrupts_are_made_again)
{
    struct disk_file *file;

    sys.interrupted = 3;
    file = make_file(f.d, "a");
    sys.interrupted = 3;
    write_at(f.d, file, 0, "text");
    sys.interrupted = 3;
    expect_at(f.d, file, 0, "text");
    sys.interrupted = 3;
    ck_assert_int_eq(disk_allocate(f.d, file, 10000), 0);
    ck_assert_int_eq(sys.interrupted, 0);
    ck_assert_uint_eq(size_of(f.d, file), 10000);
    disk_close(f.d, file);
}

START_TEST(a_sync_that_fails_is_not_tried_again)
{
    static const int errors[] = {EIO, EINTR, ENOSPC};
    struct disk_file *file = make_file(f.d, "a");

    for (int i = 0; i < 3; i++) {
        sys.sync_error = errors[i];
        ck_assert_int_eq(disk_sync(f.d, file), errors[i]);
        ck_assert_int_eq(disk_sync_names(f.d), errors[i]);
        ck_assert_int_eq(sys.syncs, i + 1);
    }
    disk_close(f.d, file);
}

START_TEST(errors_of_the_system_are_reported_as_they_are)
{
    struct disk_file *file = make_file(f.d, "a"), *none = NULL;

    sys.write_error = EDQUOT;
    ck_assert_int_eq(disk_write(f.d, file, 0, "text", 4), EDQUOT);
    disk_close(f.d, file);
    sys.open_error = EMFILE;
    ck_assert_int_eq(disk_file_open(f.d, "a", DISK_READ, &none), EMFILE);
    ck_assert_int_eq(disk_lock(f.d, "a", &none), EMFILE);
    ck_assert_int_eq(disk_list(f.d, keep_name, NULL), EMFILE);
    ck_assert_ptr_null(none);
    sys.open_error = 0;
}

START_TEST(without_memory_there_is_an_error_and_nothing_done)
{
    struct disk_file *file = make_file(f.d, "a"), *none = NULL;
    int opened, made, locked, allocated;
    struct disk *d = NULL;

    sys.space_error = EOPNOTSUPP;
    sys.no_memory = true;
    opened = disk_open(f.folder, true, &d);
    made = disk_file_open(f.d, "b", DISK_NEW, &none);
    locked = disk_lock(f.d, "b", &none);
    allocated = disk_allocate(f.d, file, 10000);
    sys.no_memory = false; /* expectations need memory themselves */
    ck_assert_int_eq(opened, ENOMEM);
    ck_assert_int_eq(made, ENOMEM);
    ck_assert_int_eq(locked, ENOMEM);
    ck_assert_int_eq(allocated, ENOMEM);
    ck_assert_ptr_null(d);
    ck_assert_ptr_null(none);
    ck_assert_uint_eq(size_of(f.d, file), 0);
    disk_close(f.d, file);
    expect_none(f.d, "b");
}
