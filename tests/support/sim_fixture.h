/*
 * sim_fixture: a simulated disk, the process that uses it, and what is left of its files.
 *
 * A test program includes this once, and finds them in `sd` and `d` between begin() and
 * end(), or in each test of a SIM_CASE.
 */
#ifndef TESTS_SUPPORT_SIM_FIXTURE_H
#define TESTS_SUPPORT_SIM_FIXTURE_H

#include "support/disk_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { SEEDS = 300 };

static struct sim_disk *sd;
static struct disk *d; /* of the process that is running */

static inline void
begin(uint64_t seed)
{
    sd = sim_disk_new(seed);
    d = sim_disk_open(sd);
}

static inline void
end(void)
{
    sim_disk_free(sd);
    sd = NULL;
    d = NULL;
}

static inline void
begin_first(void)
{
    begin(1);
}

/* Begins a case whose tests have them. */
#define SIM_CASE(name) TEST_CASE(name, .setup = begin_first, .teardown = end)

/* A power cut, and the process that is started afterwards. */
static inline void
crash(void)
{
    sim_disk_crash(sd);
    d = sim_disk_open(sd);
}

/* The file and all names are durable. */
static inline void
sync_all(struct disk_file *file)
{
    ck_assert_int_eq(disk_sync(d, file), 0);
    ck_assert_int_eq(disk_sync_names(d), 0);
}

/* Makes a file with this text, durably. */
static inline void
put_durable(const char *name, const char *text)
{
    sim_disk_put(sd, name, text, strlen(text));
}

/* The file now has this text and no more. */
static inline bool
has_text(const char *name, const char *text)
{
    size_t len = 0;
    char *found = sim_disk_get(sd, name, &len);
    bool same = found != NULL && len == strlen(text) && memcmp(found, text, len) == 0;

    free(found);
    return same;
}

static inline bool
is_there(const char *name)
{
    size_t len;
    void *found = sim_disk_get(sd, name, &len);

    free(found);
    return found != NULL;
}

#endif
