/*
 * The contract of a disk (claimd/journal/disk.h), on the simulated disk and on a real
 * folder. So the tests with power cuts on the simulated disk stand for real ones.
 */
#include "claimd/journal/disk.h"

#include "support/disk_fixture.h"
#include "support/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

DISK_CASE("reading and writing");

DISK_TEST(written_bytes_are_read_back)
{
    struct disk_file *file, *other;

    file = make_file(f->d, "a");
    ck_assert_uint_eq(size_of(f->d, file), 0);
    write_at(f->d, file, 0, "a first text");
    write_at(f->d, file, 2, "third");
    expect_at(f->d, file, 0, "a third text");
    other = open_file(f->d, "a", DISK_READ); /* by all, at once */
    expect_at(f->d, other, 2, "third");
    write_at(f->d, file, 12, ", and more");
    expect_at(f->d, other, 0, "a third text, and more");
    ck_assert_uint_eq(size_of(f->d, other), 22);
    disk_close(f->d, other);
    disk_close(f->d, file);
}

DISK_TEST(a_read_gets_fewer_bytes_only_at_the_end_of_the_file)
{
    struct disk_file *file;
    char buf[16];
    size_t got = 77;

    file = make_file(f->d, "a");
    ck_assert_int_eq(disk_read(f->d, file, 0, buf, 16, &got), 0);
    ck_assert_uint_eq(got, 0);
    write_at(f->d, file, 0, "0123456789");
    ck_assert_int_eq(disk_read(f->d, file, 4, buf, 16, &got), 0);
    ck_assert_uint_eq(got, 6);
    ck_assert_mem_eq(buf, "456789", 6);
    ck_assert_int_eq(disk_read(f->d, file, 0, buf, 10, &got), 0);
    ck_assert_uint_eq(got, 10);
    ck_assert_int_eq(disk_read(f->d, file, 10, buf, 16, &got), 0);
    ck_assert_uint_eq(got, 0);
    ck_assert_int_eq(disk_read(f->d, file, 1000, buf, 16, &got), 0);
    ck_assert_uint_eq(got, 0);
    disk_close(f->d, file);
}

DISK_TEST(unwritten_bytes_are_zeros)
{
    static const char zeros[10000];
    char buf[10000];
    struct disk_file *file;
    size_t got = 0;

    file = make_file(f->d, "a");
    write_at(f->d, file, 10000, "end");
    ck_assert_uint_eq(size_of(f->d, file), 10003);
    ck_assert_int_eq(disk_read(f->d, file, 0, buf, 10000, &got), 0);
    ck_assert_uint_eq(got, 10000);
    ck_assert_mem_eq(buf, zeros, 10000);
    expect_at(f->d, file, 10000, "end");
    disk_close(f->d, file);
}

DISK_TEST(offsets_beyond_any_file_are_refused)
{
    struct disk_file *file;
    char buf[4] = "abc";
    size_t got;

    file = make_file(f->d, "a");
    ck_assert_int_eq(disk_read(f->d, file, UINT64_MAX, buf, 4, &got), EINVAL);
    ck_assert_int_eq(disk_read(f->d, file, INT64_MAX, buf, 4, &got), EINVAL);
    ck_assert_int_eq(disk_write(f->d, file, UINT64_MAX, buf, 4), EFBIG);
    ck_assert_int_eq(disk_write(f->d, file, INT64_MAX, buf, 4), EFBIG);
    ck_assert_int_eq(disk_allocate(f->d, file, UINT64_MAX), EFBIG);
    ck_assert_uint_eq(size_of(f->d, file), 0);
    disk_close(f->d, file);
}

DISK_TEST(a_file_that_is_only_read_cannot_be_written)
{
    struct disk_file *file;

    if (f->sim != NULL)
        sim_disk_set_strict(f->sim, false); /* it would fail the test */
    put_text(f->d, "a", "text");
    file = open_file(f->d, "a", DISK_READ);
    ck_assert_int_eq(disk_write(f->d, file, 0, "no", 2), EBADF);
    ck_assert_int_eq(disk_allocate(f->d, file, 100), EBADF);
    ck_assert_int_eq(disk_sync(f->d, file), 0); /* that it can: another file wrote it */
    disk_close(f->d, file);
    expect_text(f->d, "a", "text");
}

DISK_TEST(synced_bytes_survive_a_reopen)
{
    struct disk_file *file;

    file = make_file(f->d, "a");
    write_at(f->d, file, 0, "text");
    ck_assert_int_eq(disk_sync(f->d, file), 0);
    disk_forget(f->d, file);
    expect_at(f->d, file, 0, "text");
    disk_close(f->d, file);
    ck_assert_int_eq(disk_sync_names(f->d), 0);
    disk_shut(f->d);
    f->d = disk_fixture_another(f);
    expect_text(f->d, "a", "text");
}

enum { RANDOM_SIZE = 40000, RANDOM_WRITES = 300 };

DISK_TEST(random_writes_leave_what_a_plain_array_has)
{
    static uint8_t plain[RANDOM_SIZE], found[RANDOM_SIZE + 1], piece[9000];
    struct random dice = {random_seed("disk_test")};
    struct disk_file *file;
    size_t size = 0, got = 0;

    if (f->sim != NULL)
        sim_disk_set_short(f->sim, 50);
    file = make_file(f->d, "a");
    memset(plain, 0, sizeof(plain));
    for (int n = 0; n < RANDOM_WRITES; n++) {
        size_t len = 1 + (size_t)random_below(&dice, sizeof(piece));
        size_t at = (size_t)random_below(&dice, RANDOM_SIZE - len);

        memset(piece, n + 1, len);
        memcpy(plain + at, piece, len);
        size = size < at + len ? at + len : size;
        ck_assert_int_eq(disk_write(f->d, file, at, piece, len), 0);
        if (random_once_in(&dice, 10))
            ck_assert_int_eq(disk_sync(f->d, file), 0);
        at = (size_t)random_below(&dice, size);
        ck_assert_int_eq(disk_read(f->d, file, at, found, sizeof(found), &got), 0);
        ck_assert_uint_eq(got, size - at);
        ck_assert_mem_eq(found, plain + at, got);
    }
    disk_close(f->d, file);
}

DISK_CASE("space");

DISK_TEST(an_allocated_file_has_its_size_and_its_zeros)
{
    static const char zeros[4096];
    char buf[4096];
    struct disk_file *file;
    size_t got = 0;

    file = make_file(f->d, "a");
    write_at(f->d, file, 0, "head");
    ck_assert_int_eq(disk_allocate(f->d, file, 1 << 20), 0);
    ck_assert_uint_eq(size_of(f->d, file), 1 << 20);
    expect_at(f->d, file, 0, "head");
    ck_assert_int_eq(disk_read(f->d, file, 4, buf, 4096, &got), 0);
    ck_assert_mem_eq(buf, zeros, 4096);
    ck_assert_int_eq(disk_read(f->d, file, (1 << 20) - 10, buf, 4096, &got), 0);
    ck_assert_uint_eq(got, 10);
    ck_assert_mem_eq(buf, zeros, 10);
    disk_close(f->d, file);
}

DISK_TEST(to_allocate_less_than_there_is_changes_nothing)
{
    struct disk_file *file;

    file = make_file(f->d, "a");
    ck_assert_int_eq(disk_allocate(f->d, file, 0), 0);
    ck_assert_uint_eq(size_of(f->d, file), 0);
    write_at(f->d, file, 0, "a text that stays");
    ck_assert_int_eq(disk_allocate(f->d, file, 0), 0);
    ck_assert_int_eq(disk_allocate(f->d, file, 6), 0);
    disk_close(f->d, file);
    expect_text(f->d, "a", "a text that stays");
}

DISK_TEST(zeros_behind_an_end_can_be_given_back)
{
    struct disk_file *file;

    file = make_file(f->d, "a");
    ck_assert_int_eq(disk_allocate(f->d, file, 1 << 20), 0);
    write_at(f->d, file, 4090, "the end");
    ck_assert_int_eq(disk_cut(f->d, file, 8192), 0);
    ck_assert_uint_eq(size_of(f->d, file), 8192);
    ck_assert_int_eq(disk_cut(f->d, file, 1 << 20), 0); /* it is shorter already */
    ck_assert_uint_eq(size_of(f->d, file), 8192);
    expect_at(f->d, file, 4090, "the end");
    disk_close(f->d, file);
}

DISK_TEST(the_disk_reports_its_free_space)
{
    uint64_t bytes = 0;

    ck_assert_int_eq(disk_free_bytes(f->d, &bytes), 0);
    ck_assert_uint_gt(bytes, 1 << 20);
}

DISK_CASE("names");

DISK_TEST(a_new_file_must_not_be_there_and_an_old_one_must)
{
    struct disk_file *file = NULL;

    expect_none(f->d, "a");
    ck_assert_int_eq(disk_file_open(f->d, "a", DISK_WRITE, &file), ENOENT);
    put_text(f->d, "a", "text");
    ck_assert_int_eq(disk_file_open(f->d, "a", DISK_NEW, &file), EEXIST);
    ck_assert_ptr_null(file);
    expect_text(f->d, "a", "text");
    file = open_file(f->d, "a", DISK_WRITE);
    write_at(f->d, file, 0, "n");
    disk_close(f->d, file);
    disk_close(f->d, NULL);
    expect_text(f->d, "a", "next");
}

DISK_TEST(a_renamed_file_has_its_new_name_only)
{
    struct disk_file *file;

    put_text(f->d, "a", "text");
    file = open_file(f->d, "a", DISK_WRITE);
    ck_assert_int_eq(disk_rename(f->d, "a", "b"), 0);
    write_at(f->d, file, 4, " goes on");
    disk_close(f->d, file);
    expect_none(f->d, "a");
    expect_text(f->d, "b", "text goes on");
    ck_assert_int_eq(disk_rename(f->d, "b", "b"), 0);
    expect_text(f->d, "b", "text goes on");
    ck_assert_int_eq(disk_rename(f->d, "a", "b"), ENOENT);
    ck_assert_int_eq(disk_rename(f->d, "a", "a"), ENOENT);
    expect_text(f->d, "b", "text goes on");
}

DISK_TEST(a_rename_replaces_an_existing_file)
{
    struct disk_file *old;

    put_text(f->d, "a", "old");
    put_text(f->d, "b", "new one");
    old = open_file(f->d, "a", DISK_READ);
    ck_assert_int_eq(disk_rename(f->d, "b", "a"), 0);
    expect_text(f->d, "a", "new one");
    expect_none(f->d, "b");
    expect_at(f->d, old, 0, "old"); /* for those who have it open */
    disk_close(f->d, old);
}

DISK_TEST(an_unlinked_file_stays_readable_while_open)
{
    struct disk_file *file;

    ck_assert_int_eq(disk_unlink(f->d, "a"), ENOENT);
    put_text(f->d, "a", "text");
    file = open_file(f->d, "a", DISK_READ);
    ck_assert_int_eq(disk_unlink(f->d, "a"), 0);
    expect_none(f->d, "a");
    ck_assert_int_eq(disk_unlink(f->d, "a"), ENOENT);
    ck_assert_int_eq(disk_sync_names(f->d), 0);
    expect_at(f->d, file, 0, "text");
    put_text(f->d, "a", "another");
    expect_at(f->d, file, 0, "text");
    disk_close(f->d, file);
    expect_text(f->d, "a", "another");
}

struct seen {
    struct disk *d;
    unsigned names; /* a bit each: a, b, c ... */
    size_t count;
};

static void
see(void *arg, const char *name)
{
    struct seen *seen = arg;

    ck_assert_uint_eq(strlen(name), 1);
    seen->names |= 1U << (name[0] - 'a');
    seen->count++;
}

static void
see_and_unlink(void *arg, const char *name)
{
    see(arg, name);
    ck_assert_int_eq(disk_unlink(((struct seen *)arg)->d, name), 0);
}

DISK_TEST(a_list_names_each_file_once)
{
    struct seen none = {0}, some = {0}, all = {0};

    ck_assert_int_eq(disk_list(f->d, see, &none), 0);
    ck_assert_uint_eq(none.count, 0);
    put_text(f->d, "a", "");
    put_text(f->d, "b", "");
    put_text(f->d, "c", "");
    put_text(f->d, "d", "");
    ck_assert_int_eq(disk_unlink(f->d, "b"), 0);
    ck_assert_int_eq(disk_rename(f->d, "d", "e"), 0);
    ck_assert_int_eq(disk_list(f->d, see, &some), 0);
    ck_assert_uint_eq(some.count, 3);
    ck_assert_uint_eq(some.names, 1U << 0 | 1U << 2 | 1U << 4);
    all.d = f->d;
    ck_assert_int_eq(disk_list(f->d, see_and_unlink, &all),
                     0); /* it may be changed by it */
    ck_assert_uint_eq(all.count, 3);
    ck_assert_int_eq(disk_list(f->d, see, &none), 0);
    ck_assert_uint_eq(none.count, 0);
}

#define LONG_NAME "long-names-have-sixty-three-characters-and-one-more-is-too-many"

DISK_TEST(an_invalid_name_is_refused)
{
    static const char *const wrong[] = {"", ".", "..", "/a", "b/", "b/a", "../a"};

    put_text(f->d, "b", "text");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct disk_file *file = NULL;

        ck_assert_int_eq(disk_file_open(f->d, wrong[i], DISK_READ, &file), EINVAL);
        ck_assert_int_eq(disk_file_open(f->d, wrong[i], DISK_NEW, &file), EINVAL);
        ck_assert_int_eq(disk_lock(f->d, wrong[i], &file), EINVAL);
        ck_assert_int_eq(disk_rename(f->d, wrong[i], "c"), EINVAL);
        ck_assert_int_eq(disk_rename(f->d, "b", wrong[i]), EINVAL);
        ck_assert_int_eq(disk_unlink(f->d, wrong[i]), EINVAL);
        ck_assert_ptr_null(file);
    }
    expect_text(f->d, "b", "text");
}

DISK_TEST(a_name_has_at_most_63_characters)
{
    struct disk_file *file = NULL;

    put_text(f->d, LONG_NAME, "text");
    expect_text(f->d, LONG_NAME, "text");
    ck_assert_int_eq(disk_file_open(f->d, LONG_NAME "s", DISK_NEW, &file), ENAMETOOLONG);
    ck_assert_int_eq(disk_lock(f->d, LONG_NAME "s", &file), ENAMETOOLONG);
    ck_assert_int_eq(disk_rename(f->d, LONG_NAME, LONG_NAME "s"), ENAMETOOLONG);
    ck_assert_int_eq(disk_unlink(f->d, LONG_NAME "s"), ENAMETOOLONG);
}

DISK_CASE("locks");

DISK_TEST(a_lock_is_one_open_files)
{
    struct disk_file *first, *second = NULL;
    struct disk *another;

    if (f->sim != NULL)
        sim_disk_set_strict(f->sim, false); /* no caller should try twice */
    another = disk_fixture_another(f);
    ck_assert_int_eq(disk_lock(f->d, "lock", &first), 0);
    ck_assert_int_eq(disk_lock(f->d, "lock", &second), EWOULDBLOCK);
    ck_assert_int_eq(disk_lock(another, "lock", &second), EWOULDBLOCK);
    ck_assert_ptr_null(second);
    ck_assert_int_eq(disk_lock(another, "other", &second),
                     EWOULDBLOCK); /* the directory */
    ck_assert_int_eq(disk_check_lock(f->d, "lock", first), 0);
    ck_assert_int_eq(disk_unlink(another, "lock"), 0);
    ck_assert_int_eq(disk_check_lock(f->d, "lock", first), ESTALE);
    ck_assert_int_eq(disk_lock(another, "lock", &second), EWOULDBLOCK);
    ck_assert_int_eq(disk_check_lock(f->d, "lock", first), ESTALE); /* another file */
    disk_close(f->d, first);
    ck_assert_int_eq(disk_lock(another, "lock", &second), 0);
    disk_close(another, second);
    expect_text(f->d, "lock", ""); /* it stays */
    disk_shut(another);
}

DISK_TEST(a_lock_is_not_lost_with_another_open_file_of_that_name)
{
    struct disk_file *locked, *second = NULL;
    struct disk *another;

    another = disk_fixture_another(f);
    put_text(f->d, "lock", "text");
    ck_assert_int_eq(disk_lock(f->d, "lock", &locked), 0);
    expect_text(f->d, "lock", "text"); /* opened and closed */
    ck_assert_int_eq(disk_lock(another, "lock", &second), EWOULDBLOCK);
    write_at(f->d, locked, 0, "file");
    disk_close(f->d, locked);
    expect_text(f->d, "lock", "file");
    disk_shut(another);
}

TEST_CASE("whatever the disk does");

START_TEST(short_reads_and_writes_go_on_until_all_is_done)
{
    struct disk_fixture f;
    struct disk_file *file;
    char text[] = "a text that is written in pieces, and read in others";

    disk_fixture_open(&f, DISK_SIMULATED);
    sim_disk_set_short(f.sim, 100);
    file = make_file(f.d, "a");
    write_at(f.d, file, 1000, text);
    ck_assert_uint_gt(sim_disk_stats(f.sim)->ops[SIM_WRITE], 2);
    expect_at(f.d, file, 1000, text);
    ck_assert_uint_gt(sim_disk_stats(f.sim)->ops[SIM_READ], 2);
    disk_close(f.d, file);
    disk_fixture_close(&f);
}

START_TEST(an_error_between_the_pieces_is_reported)
{
    struct disk_fixture f;
    struct disk_file *file;
    char buf[100] = {0};
    size_t got;

    disk_fixture_open(&f, DISK_SIMULATED);
    sim_disk_set_short(f.sim, 100);
    file = make_file(f.d, "a");
    ck_assert_int_eq(disk_write(f.d, file, 0, buf, 100), 0);
    sim_disk_fail(f.sim, SIM_WRITE, 2, EDQUOT);
    ck_assert_int_eq(disk_write(f.d, file, 0, buf, 100), EDQUOT);
    sim_disk_fail(f.sim, SIM_READ, 2, EIO);
    ck_assert_int_eq(disk_read(f.d, file, 0, buf, 100, &got), EIO);
    disk_close(f.d, file);
    disk_fixture_close(&f);
}

static int
write_nothing(struct disk *d, struct disk_file *file, uint64_t offset, const void *from,
              size_t len, size_t *done)
{
    (void)d, (void)file, (void)offset, (void)from, (void)len;
    *done = 0;
    return 0;
}

START_TEST(a_disk_that_writes_nothing_without_an_error_fails)
{
    static const struct disk_vtable ops = {.write = write_nothing};
    struct disk d = {&ops};

    ck_assert_int_eq(disk_write(&d, NULL, 0, "text", 4), EIO);
}
