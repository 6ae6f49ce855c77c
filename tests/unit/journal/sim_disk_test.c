/*
 * The simulated disk when processes end and when operations fail. disk_test.c tests the
 * contract of a disk, and sim_crash_test.c the contents after a crash.
 */
#include "support/sim_disk.h"

#include "support/sim_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* -------------------------------------------------------------- the end of a process */

SIM_CASE("the end of a process");

START_TEST(after_a_crash_what_was_open_is_dead_and_locks_are_gone)
{
    struct disk_file *file = make_file(d, "a"), *lock, *next, *none = NULL;
    struct disk *before = d;
    char buf[4] = "abc";
    size_t got;
    uint64_t size;

    ck_assert_int_eq(disk_lock(d, "lock", &lock), 0);
    sync_all(file);
    crash();
    ck_assert_int_eq(disk_read(before, file, 0, buf, 4, &got), EIO);
    ck_assert_int_eq(disk_write(before, file, 0, buf, 4), EIO);
    ck_assert_int_eq(disk_sync(before, file), EIO);
    ck_assert_int_eq(disk_allocate(before, file, 100), EIO);
    ck_assert_int_eq(disk_size(before, file, &size), EIO);
    ck_assert_int_eq(disk_unlink(before, "a"), EIO);
    ck_assert_int_eq(disk_rename(before, "a", "b"), EIO);
    ck_assert_int_eq(disk_sync_names(before), EIO);
    ck_assert_int_eq(disk_file_open(before, "a", DISK_READ, &none), EIO);
    ck_assert_int_eq(disk_lock(d, "lock", &next), 0);
    disk_forget(before, file);
    disk_close(before, file); /* it still tidies up */
    disk_close(before, lock);
    disk_shut(before);
    ck_assert_int_eq(disk_lock(sim_disk_open(sd), "lock", &none), EWOULDBLOCK);
    ck_assert_ptr_null(none);
    expect_text(d, "a", "");
    ck_assert_ptr_null(sim_disk_stats(sd)->misuse);
}

START_TEST(a_killed_process_leaves_all_that_it_wrote_but_not_durably)
{
    struct disk_file *file = make_file(d, "a"), *lock;

    ck_assert_int_eq(disk_lock(d, "lock", &lock), 0);
    write_at(d, file, 0, "text");
    sim_disk_kill(sd);
    ck_assert_int_eq(disk_sync(d, file), EIO);
    d = sim_disk_open(sd);
    expect_text(d, "a", "text");
    ck_assert_int_eq(disk_lock(d, "lock", &lock), 0);
    sim_disk_crash_losing_all(sd);
    ck_assert_uint_eq(sim_disk_files(sd), 0);
}

START_TEST(a_process_that_ends_loses_nothing)
{
    put_text(d, "a", "text");
    disk_shut(d);
    d = sim_disk_open(sd);
    expect_text(d, "a", "text");
}

START_TEST(the_same_seed_leaves_the_same)
{
    char *left[2];
    size_t len[2] = {0, 0};

    for (int i = 0; i < 2; i++) {
        struct disk_file *file;

        end();
        begin(7);
        file = make_file(d, "a");
        ck_assert_int_eq(disk_allocate(d, file, 20000), 0);
        sync_all(file);
        for (uint64_t s = 0; s < 39; s++)
            write_at(d, file, s * 512, "written");
        crash();
        left[i] = sim_disk_get(sd, "a", &len[i]);
    }
    ck_assert_uint_eq(len[0], 20000);
    ck_assert_uint_eq(len[1], 20000);
    ck_assert_mem_eq(left[0], left[1], 20000);
    free(left[0]);
    free(left[1]);
}

START_TEST(a_copy_is_the_same_and_crashes_for_itself)
{
    struct disk_file *file, *lock;
    int lost = 0, kept = 0, first = 0, second = 0;

    put_durable("a", "durable");
    put_durable("b", "text");
    file = open_file(d, "a", DISK_WRITE);
    write_at(d, file, 0, "first..");
    write_at(d, file, 0, "second.");
    write_at(d, file, 0, "written");
    ck_assert_int_eq(disk_rename(d, "b", "c"), 0);
    ck_assert_int_eq(disk_lock(d, "lock", &lock), 0);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_disk *copy = sim_disk_copy(sd, seed), *original = sd;

        sd = copy;
        ck_assert(has_text("a", "written") && has_text("c", "text") && !is_there("b"));
        ck_assert_int_eq(disk_lock(sim_disk_open(copy), "lock", &lock), 0);
        sim_disk_crash(copy);
        lost += has_text("a", "durable") && has_text("b", "text");
        kept += has_text("a", "written") && has_text("c", "text");
        first += has_text("a", "first..");
        second += has_text("a", "second.");
        sim_disk_free(copy);
        sd = original;
    }
    ck_assert_int_gt(lost, SEEDS / 10);
    ck_assert_int_gt(kept, SEEDS / 10);
    ck_assert_int_gt(first, SEEDS / 30);
    ck_assert_int_gt(second, SEEDS / 30);
    ck_assert(has_text("a", "written") && has_text("c", "text"));
    ck_assert_int_eq(disk_sync(d, file), 0); /* it is still alive */
    sim_disk_crash_losing_all(sd);
    ck_assert(has_text("a", "written") && has_text("b", "text") && !is_there("c"));
}

/* ------------------------------------------------------------------ syncs that fail */

TEST_CASE("syncs that fail");

START_TEST(bytes_dropped_by_a_failed_sync_stay_dropped)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_file *file;

        begin(seed);
        put_durable("a", "durable, and as long");
        file = open_file(d, "a", DISK_WRITE);
        write_at(d, file, 0, "dropped");
        sim_disk_fail(sd, SIM_SYNC, 1, EIO);
        ck_assert_int_eq(disk_sync(d, file), EIO);
        expect_at(d, file, 0, "durable");
        write_at(d, file, 700, "written after it");
        ck_assert_int_eq(disk_sync(d, file), 0);
        expect_at(d, file, 0, "durable");
        crash();
        file = open_file(d, "a", DISK_READ);
        expect_at(d, file, 0, "durable, and as long");
        expect_at(d, file, 700, "written after it");
        end();
    }
}

START_TEST(dropped_bytes_may_be_read_until_eviction)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_file *file;

        begin(seed);
        sim_disk_set_lying(sd, true);
        put_durable("a", "durable");
        file = open_file(d, "a", DISK_WRITE);
        write_at(d, file, 0, "dropped");
        sim_disk_fail(sd, SIM_SYNC, 1, EIO);
        ck_assert_int_eq(disk_sync(d, file), EIO);
        expect_at(d, file, 0, "dropped");
        ck_assert_int_eq(disk_sync(d, file), 0); /* that does not help */
        sim_disk_kill(sd);
        d = sim_disk_open(sd);
        expect_text(d, "a", "dropped");
        file = open_file(d, "a", DISK_READ);
        ck_assert_int_eq(disk_sync(d, file), 0);
        if (seed % 2 == 0) {
            write_at(d, open_file(d, "a", DISK_WRITE), 600, "not synced");
            disk_forget(d, file);
            expect_at(d, file, 0, "durable");
            expect_at(d, file, 600, "not synced"); /* it is only what was dropped */
        }
        crash();
        expect_at(d, open_file(d, "a", DISK_READ), 0, "durable");
        end();
    }
}

START_TEST(a_rewrite_of_a_dropped_sector_makes_all_of_it_durable)
{
    int old = 0, new = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_file *file;

        begin(seed);
        sim_disk_set_lying(sd, true);
        put_durable("a", "old text");
        file = open_file(d, "a", DISK_WRITE);
        write_at(d, file, 0, "odd");
        write_at(d, file, 0, "new");
        sim_disk_fail(sd, SIM_SYNC, 1, EIO);
        ck_assert_int_eq(disk_sync(d, file), EIO);
        write_at(d, file, 5, "oo");
        if (seed % 2 == 0)
            ck_assert_int_eq(disk_sync(d, file), 0);
        crash();
        ck_assert(has_text("a", "new toot") ||
                  (seed % 2 == 1 && has_text("a", "old text")));
        old += has_text("a", "old text");
        new += has_text("a", "new toot") && seed % 2 == 1;
        end();
    }
    ck_assert_int_gt(old, SEEDS / 10);
    ck_assert_int_gt(new, SEEDS / 10);
}

START_TEST(names_whose_sync_failed_may_never_be_durable)
{
    int lost = 0, kept = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_file *file;

        begin(seed);
        file = make_file(d, "a");
        sim_disk_fail(sd, SIM_SYNC_NAMES, 1, EIO);
        ck_assert_int_eq(disk_sync_names(d), EIO);
        ck_assert(is_there("a"));
        sync_all(file); /* that does not help */
        ck_assert(is_there("a"));
        crash();
        lost += !is_there("a");
        kept += is_there("a");
        end();
    }
    ck_assert_int_gt(lost, SEEDS / 10);
    ck_assert_int_gt(kept, SEEDS / 10);
}

/* ------------------------------------------------------------------ other faults */

SIM_CASE("faults");

START_TEST(when_the_disk_is_full_what_has_space_goes_on)
{
    struct disk_file *file = make_file(d, "a"), *other = make_file(d, "b");
    char buf[50] = "";
    uint64_t space = 0;
    size_t done = 0;

    ck_assert_int_eq(disk_allocate(d, file, 1000), 0);
    sim_disk_set_space(sd, 100);
    ck_assert_int_eq(disk_free_bytes(d, &space), 0);
    ck_assert_uint_eq(space, 100);
    ck_assert_int_eq(disk_allocate(d, other, 101), ENOSPC);
    ck_assert_uint_eq(size_of(d, other), 0);
    ck_assert_int_eq(disk_allocate(d, other, 60), 0);
    write_at(d, file, 996, "text");
    ck_assert_int_eq(d->vtable->write(d, other, 58, buf, sizeof(buf), &done), 0);
    ck_assert_uint_eq(done, 42); /* the bytes that fit */
    ck_assert_int_eq(disk_write(d, other, 100, "x", 1), ENOSPC);
    ck_assert_int_eq(disk_write(d, file, 998, "text", 4), ENOSPC);
    expect_at(d, file, 996, "tete");
    ck_assert_uint_eq(size_of(d, file), 1000);
    sim_disk_set_space(sd, SIM_NO_LIMIT);
    write_at(d, file, 998, "text");
}

START_TEST(an_unlinked_file_makes_space_when_it_is_closed)
{
    struct disk_file *file = make_file(d, "a");
    uint64_t space = 0;

    sim_disk_set_space(sd, 1000);
    ck_assert_int_eq(disk_allocate(d, file, 900), 0);
    ck_assert_uint_eq(sim_disk_bytes(sd), 900);
    ck_assert_int_eq(disk_unlink(d, "a"), 0);
    ck_assert_int_eq(disk_free_bytes(d, &space), 0);
    ck_assert_uint_eq(space, 100);
    disk_close(d, file);
    ck_assert_int_eq(disk_free_bytes(d, &space), 0);
    ck_assert_uint_eq(space, 1000);
    ck_assert_uint_eq(sim_disk_bytes(sd), 0);
}

static void
ignore(void *arg, const char *name)
{
    (void)arg, (void)name;
}

/* Does one operation of this kind with the file "a"; its error. */
static int
operate(enum sim_op op, struct disk_file *file)
{
    struct disk_file *opened = NULL;
    char byte = 'x';
    uint64_t number;
    size_t count;
    int error = 0;

    switch (op) {
    case SIM_OPEN:
        error = disk_file_open(d, "a", DISK_READ, &opened);
        break;
    case SIM_READ:
        return d->vtable->read(d, file, 0, &byte, 1, &count);
    case SIM_WRITE:
        return d->vtable->write(d, file, 0, &byte, 1, &count);
    case SIM_SYNC:
        return disk_sync(d, file);
    case SIM_ALLOCATE:
        return disk_allocate(d, file, 10);
    case SIM_CUT:
        return disk_cut(d, file, 0x1000);
    case SIM_SIZE:
        return disk_size(d, file, &number);
    case SIM_RENAME:
        return disk_rename(d, "a", "a");
    case SIM_UNLINK:
        sim_disk_put(sd, "b", "", 0);
        return disk_unlink(d, "b");
    case SIM_LIST:
        return disk_list(d, ignore, NULL);
    case SIM_SYNC_NAMES:
        return disk_sync_names(d);
    case SIM_LOCK:
        error = disk_lock(d, "a", &opened);
        break;
    case SIM_FREE_BYTES:
        return disk_free_bytes(d, &number);
    case SIM_OPS:
        break;
    }
    disk_close(d, opened);
    return error;
}

START_TEST(the_nth_operation_of_a_kind_fails_once)
{
    for (enum sim_op op = 0; op < SIM_OPS; op++) {
        struct disk_file *file;
        uint64_t before, together;

        sim_disk_put(sd, "a", "text", 4);
        file = open_file(d, "a", DISK_WRITE);
        before = sim_disk_stats(sd)->ops[op];
        together = sim_disk_stats(sd)->operations;
        sim_disk_fail(sd, op, 3, EDQUOT);
        ck_assert_int_eq(operate(op, file), 0);
        ck_assert_int_eq(operate(op, file), 0);
        ck_assert_int_eq(operate(op, file), EDQUOT);
        ck_assert_int_eq(operate(op, file), 0);
        ck_assert_uint_eq(sim_disk_stats(sd)->ops[op], before + 4);
        ck_assert_uint_eq(sim_disk_stats(sd)->operations, together + 4);
        disk_close(d, file);
    }
}

START_TEST(a_failing_call_changes_nothing)
{
    struct disk_file *file = make_file(d, "a"), *none = NULL;

    sim_disk_fail(sd, SIM_OPEN, 1, EMFILE);
    ck_assert_int_eq(disk_file_open(d, "b", DISK_NEW, &none), EMFILE);
    sim_disk_fail(sd, SIM_LOCK, 1, EMFILE);
    ck_assert_int_eq(disk_lock(d, "b", &none), EMFILE);
    sim_disk_fail(sd, SIM_RENAME, 1, EIO);
    ck_assert_int_eq(disk_rename(d, "a", "b"), EIO);
    sim_disk_fail(sd, SIM_UNLINK, 1, EIO);
    ck_assert_int_eq(disk_unlink(d, "a"), EIO);
    sim_disk_fail(sd, SIM_WRITE, 1, EIO);
    ck_assert_int_eq(disk_write(d, file, 0, "text", 4), EIO);
    sim_disk_fail(sd, SIM_ALLOCATE, 1, EIO);
    ck_assert_int_eq(disk_allocate(d, file, 10), EIO);
    ck_assert_ptr_null(none);
    ck_assert(has_text("a", "") && !is_there("b"));
    ck_assert_uint_eq(sim_disk_stats(sd)->bytes_written, 0);
}

START_TEST(a_dead_disk_does_nothing_any_more)
{
    struct disk_file *file = make_file(d, "a");

    write_at(d, file, 0, "text");
    sync_all(file);
    sim_disk_die(sd, 2);
    ck_assert_int_eq(operate(SIM_SIZE, file), 0);
    for (int times = 0; times < 2; times++)
        for (enum sim_op op = 0; op < SIM_OPS; op++)
            ck_assert_int_eq(operate(op, file), EIO);
    sim_disk_mend(sd);
    for (enum sim_op op = 0; op < SIM_OPS; op++)
        ck_assert_int_eq(operate(op, file), 0);
    sim_disk_crash_losing_all(sd);
    ck_assert(is_there("a"));
}

START_TEST(rot_is_read_from_what_is_durable)
{
    struct disk_file *file;

    put_durable("a", "abc");
    sim_disk_flip(sd, "a", 1, 0);
    ck_assert(has_text("a", "acc"));
    file = open_file(d, "a", DISK_WRITE);
    write_at(d, file, 0, "xyz");
    sim_disk_flip(sd, "a", 2, 7);
    ck_assert(has_text("a", "xyz")); /* the write below is not seen yet */
    sim_disk_crash_losing_all(sd);
    ck_assert(has_text("a", "ac\xe3"));
}

/* ------------------------------------------------------------------ contents */

SIM_CASE("contents");

START_TEST(files_and_bytes_are_counted)
{
    struct disk_file *file = make_file(d, "a");
    uint64_t size = 77;

    write_at(d, file, 0, "hello");
    ck_assert_int_eq(disk_allocate(d, file, 3000), 0);
    ck_assert(!sim_disk_durable_size(sd, "a", &size));
    ck_assert_int_eq(disk_sync_names(d), 0);
    ck_assert(sim_disk_durable_size(sd, "a", &size));
    ck_assert_uint_eq(size, 0);
    ck_assert_int_eq(disk_sync(d, file), 0);
    ck_assert(sim_disk_durable_size(sd, "a", &size));
    ck_assert_uint_eq(size, 3000);
    put_durable("b", "text");
    ck_assert_uint_eq(sim_disk_files(sd), 2);
    ck_assert_uint_eq(sim_disk_bytes(sd), 3004);
    disk_forget(d, file);
    ck_assert_uint_eq(sim_disk_stats(sd)->forgets, 1);
    ck_assert_uint_eq(sim_disk_stats(sd)->bytes_written, 5);
    ck_assert_uint_eq(sim_disk_stats(sd)->ops[SIM_SYNC], 1);
    ck_assert_uint_eq(sim_disk_stats(sd)->ops[SIM_SYNC_NAMES], 1);
    ck_assert_uint_eq(sim_disk_stats(sd)->operations, 5);
}

START_TEST(a_file_can_be_put_there_in_place_of_another)
{
    put_durable("a", "a long text");
    put_durable("a", "short");
    sim_disk_crash_losing_all(sd);
    ck_assert(has_text("a", "short"));
    ck_assert_uint_eq(sim_disk_files(sd), 1);
    ck_assert(!is_there("b"));
}

static void
append(void *arg, const char *name)
{
    (void)strcat(arg, name);
}

START_TEST(no_order_of_a_list_can_be_relied_on)
{
    static const char *const orders[] = {"abc", "acb", "bac", "bca", "cab", "cba"};
    int seen[6] = {0};

    put_durable("a", "");
    put_durable("b", "");
    put_durable("c", "");
    for (int i = 0; i < SEEDS; i++) {
        char text[4] = "";

        ck_assert_int_eq(disk_list(d, append, text), 0);
        for (int o = 0; o < 6; o++)
            seen[o] += strcmp(text, orders[o]) == 0;
    }
    ck_assert_int_eq(seen[0] + seen[1] + seen[2] + seen[3] + seen[4] + seen[5], SEEDS);
    for (int o = 0; o < 6; o++)
        ck_assert_int_gt(seen[o], SEEDS / 20);
}

/* ------------------------------------------------------------------ misuse */

SIM_CASE("misuse");

static void
expect_misuse(const char *what)
{
    ck_assert_ptr_nonnull(sim_disk_stats(sd)->misuse);
    ck_assert_str_eq(sim_disk_stats(sd)->misuse, what);
}

START_TEST(misuse_that_a_real_disk_might_not_notice_is_found)
{
    struct disk_file *file, *second, *opened;
    struct disk *other = sim_disk_open(sd);

    sim_disk_set_strict(sd, false);
    put_durable("a", "text");
    file = open_file(d, "a", DISK_READ);
    ck_assert_int_eq(disk_write(d, file, 0, "no", 2), EBADF);
    expect_misuse("writing to a file that is only read");
    ck_assert_int_eq(disk_sync(other, file), EBADF);
    expect_misuse("a file of another process");
    disk_close(d, file);
    ck_assert_int_eq(disk_sync(d, file), EBADF);
    expect_misuse("a file that was closed");
    file = open_file(d, "a", DISK_WRITE);
    ck_assert_int_eq(disk_cut(d, file, 0), EBADF);
    expect_misuse("what is cut off is not zeros");
    disk_close(d, file);
    put_durable("a", "text");
    ck_assert_int_eq(disk_lock(d, "lock", &file), 0);
    ck_assert_int_eq(disk_lock(d, "lock", &second), EWOULDBLOCK);
    expect_misuse("a second lock");
    disk_close(d, file);
    opened = open_file(d, "a", DISK_READ);
    disk_shut(d);
    expect_misuse("files are open at disk_shut()");
    ck_assert_int_eq(disk_sync(d, opened), EBADF);
    expect_misuse("it goes on after disk_shut()");
    ck_assert(has_text("a", "text"));
}

START_TEST(valid_calls_are_not_misuse)
{
    struct disk_file *file = make_file(d, "a"), *lock, *again;
    char buf[10];
    size_t got;

    ck_assert_int_eq(disk_read(d, file, 5000, buf, 10, &got), 0);
    ck_assert_int_eq(disk_allocate(d, file, 6000), 0);
    ck_assert_int_eq(disk_read(d, file, 5000, buf, 10, &got), 0); /* never written */
    ck_assert_int_eq(disk_unlink(d, "a"), 0);
    write_at(d, file, 0, "nobody reads it");
    disk_close(d, file);
    ck_assert_int_eq(disk_lock(d, "lock", &lock), 0);
    ck_assert_int_eq(disk_lock(sim_disk_open(sd), "lock", &again), EWOULDBLOCK);
    disk_close(d, lock);
    ck_assert_int_eq(disk_lock(d, "lock", &lock), 0);
    disk_close(d, lock);
    disk_shut(d);
    ck_assert_ptr_null(sim_disk_stats(sd)->misuse);
}

static void
close_twice(int i)
{
    struct disk_file *file;

    (void)i;
    begin(1);
    file = make_file(d, "a");
    disk_close(d, file);
    disk_close(d, file);
}

static void
close_once(int i)
{
    struct disk_file *file;

    (void)i;
    begin(1);
    file = make_file(d, "a");
    disk_close(d, file);
}

/* How many of one test fail, in a process of its own. */
static int
failures_of(TFun function)
{
    const TTest test = {"", function, __FILE__, __LINE__};
    Suite *suite = suite_create("misuse");
    SRunner *runner = srunner_create(suite);
    TCase *tc = tcase_create("misuse");
    int status;
    pid_t child;

    suite_add_tcase(suite, tc);
    tcase_add_test(tc, &test);
    srunner_set_fork_status(runner, CK_NOFORK);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        srunner_run_all(runner, CK_SILENT);
        _exit(srunner_ntests_failed(runner));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    srunner_free(runner);
    return WEXITSTATUS(status);
}

START_TEST(misuse_fails_the_test)
{
    ck_assert_int_eq(failures_of(close_once), 0);
    ck_assert_int_eq(failures_of(close_twice), 1);
}

/* ------------------------------------------------------------------ threads */

SIM_CASE("threads");

static void *
write_numbers(void *arg)
{
    struct disk_file *file = arg;

    for (uint64_t i = 0; i < 1000; i++) {
        if (disk_write(d, file, i * sizeof(i), &i, sizeof(i)) != 0 ||
            (i % 10 == 0 && disk_sync(d, file) != 0))
            return arg;
    }
    return NULL;
}

START_TEST(several_threads_use_it_at_the_same_time)
{
    pthread_t threads[3];

    for (int t = 0; t < 3; t++) {
        char name[2] = {(char)('a' + t), '\0'};

        ck_assert_int_eq(
            pthread_create(&threads[t], NULL, write_numbers, make_file(d, name)), 0);
    }
    for (int t = 0; t < 3; t++) {
        void *failed;

        ck_assert_int_eq(pthread_join(threads[t], &failed), 0);
        ck_assert_ptr_null(failed);
    }
    for (int t = 0; t < 3; t++) {
        char name[2] = {(char)('a' + t), '\0'};
        size_t len = 0;
        uint64_t *found = sim_disk_get(sd, name, &len);

        ck_assert_uint_eq(len, 8000);
        for (uint64_t i = 0; i < 1000; i++)
            ck_assert_uint_eq(found[i], i);
        free(found);
    }
}
