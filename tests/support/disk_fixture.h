/*
 * disk_fixture: an empty disk, and short words for what tests do with it.
 *
 * A test that is to hold for every disk gets the number of the disk from `_i`:
 *
 *     DISK_CASE("names");
 *     disk_fixture_open(&f, _i);
 *     put_text(f.d, "a", "hello");
 *     expect_text(f.d, "a", "hello");
 */
#ifndef TESTS_SUPPORT_DISK_FIXTURE_H
#define TESTS_SUPPORT_DISK_FIXTURE_H

#include "support/check_main.h"
#include "support/sim_disk.h"

enum { DISK_REAL, DISK_SIMULATED, DISK_KINDS };

struct disk_fixture {
    struct disk *d;
    struct sim_disk *sim; /* NULL: a real one */
    char folder[32];      /* of a real one; below /tmp */
};

void disk_fixture_open(struct disk_fixture *f, int kind);

/* All files in it are removed. */
void disk_fixture_close(struct disk_fixture *f);

/* A test with a disk of the kind `_i`, the fixture `f`. */
#define DISK_TEST(id)                                                                    \
    FIXTURE_TEST(id, struct disk_fixture, disk_fixture_open(f, _i), disk_fixture_close(f))

/* The same disk, opened once more: disk_shut() it. */
struct disk *disk_fixture_another(struct disk_fixture *f);

/* Begins a case whose tests run over every disk. */
#define DISK_CASE(name) TEST_CASE(name, .times = DISK_KINDS)

/* ------------------------------------------------------------------ files */

struct disk_file *make_file(struct disk *d, const char *name);
struct disk_file *open_file(struct disk *d, const char *name, enum disk_mode mode);

/* Writes a text without its NUL; what stands there is this text. */
void write_at(struct disk *d, struct disk_file *file, uint64_t offset, const char *text);
void expect_at(struct disk *d, struct disk_file *file, uint64_t offset, const char *text);
uint64_t size_of(struct disk *d, struct disk_file *file);

/* Makes a file with this text and no more, and closes it; the file has this text and no
 * more. */
void put_text(struct disk *d, const char *name, const char *text);
void expect_text(struct disk *d, const char *name, const char *text);

/* There is no such file. */
void expect_none(struct disk *d, const char *name);

#endif
