#include "support/disk_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_CAP = 4096 };

void
disk_fixture_open(struct disk_fixture *f, int kind)
{
    *f = (struct disk_fixture){.folder = "/tmp/claimd-test-XXXXXX"};
    if (kind == DISK_SIMULATED)
        f->sim = sim_disk_new(1);
    else
        ck_assert_ptr_nonnull(mkdtemp(f->folder));
    f->d = disk_fixture_another(f);
}

struct disk *
disk_fixture_another(struct disk_fixture *f)
{
    struct disk *d = NULL;

    if (f->sim != NULL)
        return sim_disk_open(f->sim);
    ck_assert_int_eq(disk_open(f->folder, false, &d), 0);
    return d;
}

static void
remove_file(void *arg, const char *name)
{
    struct disk *d = arg;

    ck_assert_int_eq(disk_unlink(d, name), 0);
}

void
disk_fixture_close(struct disk_fixture *f)
{
    ck_assert_int_eq(disk_list(f->d, remove_file, f->d), 0);
    disk_shut(f->d);
    if (f->sim == NULL)
        ck_assert_int_eq(rmdir(f->folder), 0);
    sim_disk_free(f->sim);
}

/* ------------------------------------------------------------------ files */

struct disk_file *
open_file(struct disk *d, const char *name, enum disk_mode mode)
{
    struct disk_file *file = NULL;

    ck_assert_int_eq(disk_file_open(d, name, mode, &file), 0);
    ck_assert_ptr_nonnull(file);
    return file;
}

struct disk_file *
make_file(struct disk *d, const char *name)
{
    return open_file(d, name, DISK_NEW);
}

void
write_at(struct disk *d, struct disk_file *file, uint64_t offset, const char *text)
{
    ck_assert_int_eq(disk_write(d, file, offset, text, strlen(text)), 0);
}

void
expect_at(struct disk *d, struct disk_file *file, uint64_t offset, const char *text)
{
    size_t got = 0, len = strlen(text);
    char found[TEXT_CAP];

    ck_assert_uint_le(len, TEXT_CAP);
    ck_assert_int_eq(disk_read(d, file, offset, found, len, &got), 0);
    ck_assert_uint_eq(got, len);
    ck_assert_mem_eq(found, text, len);
}

uint64_t
size_of(struct disk *d, struct disk_file *file)
{
    uint64_t size = UINT64_MAX;

    ck_assert_int_eq(disk_size(d, file, &size), 0);
    return size;
}

void
put_text(struct disk *d, const char *name, const char *text)
{
    struct disk_file *file = make_file(d, name);

    write_at(d, file, 0, text);
    disk_close(d, file);
}

void
expect_text(struct disk *d, const char *name, const char *text)
{
    struct disk_file *file = open_file(d, name, DISK_READ);

    ck_assert_uint_eq(size_of(d, file), strlen(text));
    expect_at(d, file, 0, text);
    disk_close(d, file);
}

void
expect_none(struct disk *d, const char *name)
{
    struct disk_file *file = NULL;

    ck_assert_int_eq(disk_file_open(d, name, DISK_READ, &file), ENOENT);
    ck_assert_ptr_null(file);
}
