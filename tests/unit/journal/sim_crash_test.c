/* The simulated disk after a crash, over many seeds: each outcome that is promised, and
 * none that is not. */
#include "support/random.h"
#include "support/sim_disk.h"
#include "support/sim_fixture.h"

#include <stdio.h>

/* ------------------------------------------------------------------ sectors */

TEST_CASE("sectors at a crash");

enum { SECTORS = 24, SECTOR = 512, VERSIONS = 40 };

/* The contents of each sector since it was durable; the first ones are durable. */
struct versions {
    uint8_t bytes[SECTORS][VERSIONS][SECTOR];
    unsigned count[SECTORS];
};

static void
all_durable(struct versions *v)
{
    for (int s = 0; s < SECTORS; s++) {
        memmove(v->bytes[s][0], v->bytes[s][v->count[s] - 1], SECTOR);
        v->count[s] = 1;
    }
}

/* Writes one run of bytes as no other has them. */
static void
write_somewhere(struct disk_file *file, struct versions *v, struct random *dice)
{
    uint8_t piece[3 * SECTOR];
    size_t len = 1 + (size_t)random_below(dice, sizeof(piece));
    size_t at = (size_t)random_below(dice, SECTORS * SECTOR - len);

    for (size_t i = 0; i < len; i++)
        piece[i] = (uint8_t)random_next(dice);
    ck_assert_int_eq(disk_write(d, file, at, piece, len), 0);
    for (size_t i = 0; i < len; i++) {
        size_t s = (at + i) / SECTOR;
        unsigned n = v->count[s];

        if (i == 0 || (at + i) % SECTOR == 0) { /* the first of this sector */
            ck_assert_uint_lt(n, VERSIONS);
            memcpy(v->bytes[s][n], v->bytes[s][n - 1], SECTOR);
            v->count[s] = ++n;
        }
        v->bytes[s][n - 1][(at + i) % SECTOR] = piece[i];
    }
}

struct tally {
    int old, between, newest, untouched, torn;
};

/* Which version of the sector this is. */
static unsigned
version_of(const struct versions *v, int s, const uint8_t *found)
{
    unsigned n = v->count[s];

    while (n > 0 && memcmp(v->bytes[s][n - 1], found, SECTOR) != 0)
        n--;
    ck_assert_msg(n > 0, "sector %d is what it never was", s);
    return n - 1;
}

static void
judge(const struct versions *v, const uint8_t *found, struct tally *tally)
{
    int old = tally->old, newest = tally->newest;

    for (int s = 0; s < SECTORS; s++) {
        unsigned which = version_of(v, s, found + s * SECTOR);

        if (v->count[s] == 1)
            tally->untouched++;
        else if (which == 0)
            tally->old++;
        else if (which == v->count[s] - 1)
            tally->newest++;
        else
            tally->between++;
    }
    tally->torn += tally->old > old && tally->newest > newest;
}

/* Writes here and there, and now and then syncs. */
static void
write_and_sync(struct disk_file *file, struct versions *v, struct random *dice)
{
    memset(v, 0, sizeof(*v));
    for (int s = 0; s < SECTORS; s++)
        v->count[s] = 1;
    ck_assert_int_eq(disk_allocate(d, file, SECTORS * SECTOR), 0);
    sync_all(file);
    for (int n = 0; n < 20; n++) {
        write_somewhere(file, v, dice);
        if (random_once_in(dice, 10)) {
            ck_assert_int_eq(disk_sync(d, file), 0);
            all_durable(v);
        }
    }
}

START_TEST(a_sector_is_as_it_was_after_any_of_its_writes_and_what_was_synced_stays)
{
    static struct versions v;
    struct tally tally = {0};

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct random dice = {seed};
        uint8_t *found, *again;
        size_t len = 0;

        begin(seed);
        write_and_sync(make_file(d, "a"), &v, &dice);
        crash();
        found = sim_disk_get(sd, "a", &len);
        ck_assert_uint_eq(len, SECTORS * SECTOR);
        judge(&v, found, &tally);
        sim_disk_crash_losing_all(sd); /* the contents after a crash are durable */
        again = sim_disk_get(sd, "a", &len);
        ck_assert_mem_eq(again, found, SECTORS * SECTOR);
        free(again);
        free(found);
        end();
    }
    ck_assert_int_gt(tally.untouched, SEEDS);
    ck_assert_int_gt(tally.old, SEEDS);
    ck_assert_int_gt(tally.newest, SEEDS);
    ck_assert_int_gt(tally.between, SEEDS / 3);
    ck_assert_int_gt(tally.torn, SEEDS / 10);
}

START_TEST(every_version_of_a_sector_is_seen)
{
    static const char *const texts[] = {"zero", "one.", "two.", "tri.", "four"};
    int seen[5] = {0}, together = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_file *file;

        begin(seed);
        put_durable("a", texts[0]);
        file = open_file(d, "a", DISK_WRITE);
        for (int i = 1; i < 5; i++)
            write_at(d, file, 0, texts[i]);
        crash();
        for (int i = 0; i < 5; i++) {
            seen[i] += has_text("a", texts[i]);
            together += has_text("a", texts[i]);
        }
        end();
    }
    ck_assert_int_eq(together, SEEDS);
    for (int i = 0; i < 5; i++)
        ck_assert_int_gt(seen[i], SEEDS / 30);
}

START_TEST(sometimes_all_is_lost_and_sometimes_nothing)
{
    static const char *const texts[2] = {"0000", "1111"};
    int lost = 0, kept = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_file *file;
        int ones = 0;

        begin(seed);
        file = make_file(d, "a");
        for (uint64_t s = 0; s < 50; s++)
            write_at(d, file, s * SECTOR, texts[0]);
        sync_all(file);
        for (uint64_t s = 0; s < 50; s++)
            write_at(d, file, s * SECTOR, texts[1]);
        crash();
        file = open_file(d, "a", DISK_READ);
        for (uint64_t s = 0; s < 50; s++) {
            char found[4];
            size_t got;

            ck_assert_int_eq(disk_read(d, file, s * SECTOR, found, 4, &got), 0);
            ones += found[0] == '1';
            ck_assert_mem_eq(found, texts[found[0] == '1'], 4);
        }
        lost += ones == 0;
        kept += ones == 50;
        end();
    }
    ck_assert_int_gt(lost, SEEDS / 10);
    ck_assert_int_gt(kept, SEEDS / 10);
    ck_assert_int_lt(lost + kept, SEEDS * 9 / 10);
}

START_TEST(a_size_that_was_not_synced_is_lost_kept_or_kept_in_part)
{
    int lost = 0, kept = 0, part = 0, zeros = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char *found;
        size_t len = 0;
        struct disk_file *file;

        begin(seed);
        put_durable("a", "text");
        file = open_file(d, "a", DISK_WRITE);
        write_at(d, file, 3000, "end");
        ck_assert_int_eq(disk_allocate(d, file, 10000), 0);
        crash();
        found = sim_disk_get(sd, "a", &len);
        ck_assert_uint_ge(len, 4);
        ck_assert_uint_le(len, 10000);
        ck_assert_mem_eq(found, "text", 4);
        lost += len == 4;
        kept += len == 10000;
        part += len > 4 && len < 10000;
        if (len >= 3003) {
            ck_assert(found[3000] == 'e' || found[3000] == '\0');
            ck_assert_mem_eq(found + 3000, found[3000] == 'e' ? "end" : "\0\0\0", 3);
            zeros += found[3000] == '\0';
        }
        for (size_t i = 4; i < len; i++)
            ck_assert(found[i] == '\0' || (i >= 3000 && i < 3003));
        free(found);
        end();
    }
    ck_assert_int_gt(lost, SEEDS / 10);
    ck_assert_int_gt(kept, SEEDS / 10);
    ck_assert_int_gt(part, SEEDS / 10);
    ck_assert_int_gt(zeros, SEEDS / 10);
}

START_TEST(a_file_that_was_cut_is_as_long_as_before_or_not)
{
    int longer = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_file *file;
        size_t len = 0;

        begin(seed);
        put_durable("a", "text");
        file = open_file(d, "a", DISK_WRITE);
        ck_assert_int_eq(disk_allocate(d, file, 10240), 0);
        sync_all(file);
        ck_assert_int_eq(disk_cut(d, file, 512), 0);
        crash();
        free(sim_disk_get(sd, "a", &len));
        ck_assert(len == 512 || len == 10240);
        longer += len > 512;
        end();
    }
    ck_assert_int_gt(longer, SEEDS / 10);
    ck_assert_int_lt(longer, SEEDS * 9 / 10);
}

START_TEST(behind_a_lost_end_are_zeros_when_the_file_grows_again)
{
    static const char zeros[3000];
    char text[3001];
    int cut = 0;

    memset(text, 'x', 3000);
    text[3000] = '\0';
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char found[3000];
        size_t got = 0;
        struct disk_file *file;
        uint64_t size;

        begin(seed);
        file = make_file(d, "a");
        sync_all(file);
        write_at(d, file, 0, text);
        crash();
        file = open_file(d, "a", DISK_WRITE);
        size = size_of(d, file);
        ck_assert_int_eq(disk_allocate(d, file, 3000), 0);
        ck_assert_int_eq(disk_read(d, file, size, found, 3000, &got), 0);
        ck_assert_uint_eq(got, 3000 - size);
        ck_assert_mem_eq(found, zeros, got);
        cut += size % SECTOR != 0;
        end();
    }
    ck_assert_int_gt(cut, SEEDS / 10);
}

/* ------------------------------------------------------------------ names */

TEST_CASE("names at a crash");

START_TEST(new_files_are_there_or_not_each_by_itself)
{
    int seen[8] = {0};

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_file *file;

        begin(seed);
        for (char name[] = "a"; name[0] <= 'c'; name[0]++) {
            file = make_file(d, name);
            write_at(d, file, 0, name);
            ck_assert_int_eq(disk_sync(d, file), 0);
        }
        crash();
        seen[is_there("a") + 2 * is_there("b") + 4 * is_there("c")]++;
        for (char name[] = "a"; name[0] <= 'c'; name[0]++)
            ck_assert(has_text(name, name) || !is_there(name));
        end();
    }
    for (int i = 0; i < 8; i++)
        ck_assert_int_gt(seen[i], 0);
    ck_assert_int_gt(seen[0], SEEDS / 10);
    ck_assert_int_gt(seen[7], SEEDS / 10);
}

START_TEST(a_renamed_file_has_its_old_name_or_its_new_one)
{
    int old = 0, new = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        begin(seed);
        put_durable("now", "first");
        put_durable("next", "second");
        ck_assert_int_eq(disk_rename(d, "next", "now"), 0);
        crash();
        if (is_there("next")) {
            ck_assert(has_text("next", "second") && has_text("now", "first"));
            old++;
        } else {
            ck_assert(has_text("now", "second"));
            new ++;
        }
        end();
    }
    ck_assert_int_gt(old, SEEDS / 10);
    ck_assert_int_gt(new, SEEDS / 10);
}

START_TEST(an_unlinked_file_is_gone_or_as_it_was)
{
    int gone = 0, back = 0, kept_open = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct disk_file *file;

        begin(seed);
        put_durable("a", "text");
        file = open_file(d, "a", DISK_WRITE);
        ck_assert_int_eq(disk_unlink(d, "a"), 0);
        write_at(d, file, 0, "more text"); /* to a file without a name */
        if (seed % 2 == 0)
            disk_close(d, file);
        crash();
        gone += !is_there("a");
        back += has_text("a", "text");
        kept_open += is_there("a") && seed % 2 == 1;
        end();
    }
    ck_assert_int_gt(gone, SEEDS / 10);
    ck_assert_int_gt(back, SEEDS / 10);
    ck_assert_int_gt(kept_open, SEEDS / 10);
}

START_TEST(a_replaced_file_does_not_come_back)
{
    int neither = 0, both = 0, between = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        begin(seed);
        put_durable("now", "first");
        put_durable("next", "second");
        ck_assert_int_eq(disk_rename(d, "next", "now"), 0);
        ck_assert_int_eq(disk_unlink(d, "now"), 0);
        crash();
        if (has_text("now", "first")) {
            ck_assert(has_text("next", "second"));
            neither++;
        } else {
            ck_assert(!is_there("next"));
            between += has_text("now", "second");
            both += !is_there("now");
        }
        end();
    }
    ck_assert_int_gt(neither, SEEDS / 10);
    ck_assert_int_gt(both, SEEDS / 10);
    ck_assert_int_gt(between, SEEDS / 30);
}

START_TEST(names_that_were_synced_stay)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        begin(seed);
        put_durable("gone", "text");
        put_durable("old", "text");
        disk_close(d, make_file(d, "new"));
        ck_assert_int_eq(disk_unlink(d, "gone"), 0);
        ck_assert_int_eq(disk_rename(d, "old", "other"), 0);
        ck_assert_int_eq(disk_sync_names(d), 0);
        crash();
        ck_assert(has_text("new", "") && has_text("other", "text"));
        ck_assert(!is_there("gone") && !is_there("old"));
        ck_assert_uint_eq(sim_disk_files(sd), 2);
        end();
    }
}

enum { NAMES = 6, FILES = 200 };

/* A naive memory of files, which are numbers from 1, and of the names they have had. */
struct memory {
    int at[NAMES];           /* which file has this name; 0: none */
    bool had[FILES][NAMES];  /* since names were synced, and when they were */
    bool may_be_gone[FILES]; /* new since then, or removed */
    int files;
};

static const char *
name_of(size_t n)
{
    static const char *const names[NAMES] = {"a", "b", "c", "d", "e", "f"};

    return names[n];
}

static void
remember_synced(struct memory *m)
{
    memset(m->had, 0, sizeof(m->had));
    for (int i = 1; i <= m->files; i++)
        m->may_be_gone[i] = true;
    for (size_t n = 0; n < NAMES; n++) {
        m->had[m->at[n]][n] = true;
        m->may_be_gone[m->at[n]] = false;
    }
}

static void
make_number(struct memory *m, size_t n)
{
    struct disk_file *file = make_file(d, name_of(n));
    char text[16];

    m->at[n] = ++m->files;
    ck_assert_int_lt(m->files, FILES);
    m->may_be_gone[m->files] = true;
    m->had[m->files][n] = true;
    (void)snprintf(text, sizeof(text), "%d", m->files);
    write_at(d, file, 0, text);
    ck_assert_int_eq(disk_sync(d, file), 0);
    disk_close(d, file);
}

static void
change_names(struct memory *m, struct random *dice)
{
    size_t n = (size_t)random_below(dice, NAMES), to = (size_t)random_below(dice, NAMES);

    if (m->at[n] == 0) {
        make_number(m, n);
    } else if (random_once_in(dice, 4)) {
        ck_assert_int_eq(disk_unlink(d, name_of(n)), 0);
        m->may_be_gone[m->at[n]] = true;
        m->at[n] = 0;
    } else if (n != to) {
        ck_assert_int_eq(disk_rename(d, name_of(n), name_of(to)), 0);
        m->may_be_gone[m->at[to]] = true;
        m->at[to] = m->at[n];
        m->had[m->at[to]][to] = true;
        m->at[n] = 0;
    }
    if (random_once_in(dice, 12)) {
        ck_assert_int_eq(disk_sync_names(d), 0);
        remember_synced(m);
    }
}

/* Which file has this name after the crash; 0: none. */
static int
number_at(size_t n)
{
    size_t len = 0;
    char *text = sim_disk_get(sd, name_of(n), &len), copy[16] = "";
    int number = 0;

    if (text != NULL) {
        ck_assert_uint_lt(len, sizeof(copy));
        memcpy(copy, text, len);
        number = atoi(copy);
        ck_assert_int_gt(number, 0);
    }
    free(text);
    return number;
}

/* Each file that is left has one of the names that it has had, and no other. */
static void
judge_names(const struct memory *m, int *changed, int *undone)
{
    bool found[FILES] = {false};

    for (size_t n = 0; n < NAMES; n++) {
        int number = number_at(n);

        if (number != 0) {
            ck_assert_msg(m->had[number][n], "file %d never was at %s", number,
                          name_of(n));
            ck_assert_msg(!found[number], "file %d is there twice", number);
            *changed += m->may_be_gone[number];
        }
        found[number] = true;
        *undone += number != m->at[n];
    }
    for (int i = 1; i <= m->files; i++)
        ck_assert_msg(m->may_be_gone[i] || found[i], "file %d is lost", i);
}

START_TEST(no_file_is_lost_that_was_there_and_not_removed)
{
    static struct memory m;
    int changed = 0, undone = 0;

    for (uint64_t seed = 0; seed < 3 * SEEDS; seed++) {
        struct random dice = {seed + 1000};

        begin(seed);
        memset(&m, 0, sizeof(m));
        remember_synced(&m);
        for (uint64_t left = 5 + random_below(&dice, 40); left > 0; left--)
            change_names(&m, &dice);
        crash();
        judge_names(&m, &changed, &undone);
        end();
    }
    ck_assert_int_gt(changed, SEEDS);
    ck_assert_int_gt(undone, SEEDS);
}
