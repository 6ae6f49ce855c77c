/*
 * sim_disk: a disk (claimd/journal/disk.h) in memory that forgets, tears, fails and fills
 * up as its seed and the test say. It survives those who use it:
 *
 *     sd = sim_disk_new(seed);
 *     d = sim_disk_open(sd);       a process that is started; it uses d
 *     sim_disk_crash(sd);          power cut: d and its open files are dead
 *     d = sim_disk_open(sd);       the next one sees what is left
 *     sim_disk_free(sd);
 *
 * The remains of a crash, by dice:
 *
 *   sectors  of 512 bytes that were written to since their file was synced: as they were
 *            before, or after any of the writes, each sector by itself; but often all of
 *            a file's are old, or all are new
 *   sizes    of files that have grown since: as before, as now, or between; of zeros
 *            where no sector was kept; of those that were cut: as before or as now
 *   names    files made, renamed and unlinked since names were synced: each happened or
 *            not, by itself, but often none or all. A file that was renamed has the old
 *            name or the new one (tests/support/sim_folder.h)
 *
 *   Errors   those of the seam. A dead process gets EIO. Misuse that a real disk might
 *            not notice fails the test (sim_disk_set_strict())
 *   Space    a file takes as much as it is long, also where nothing was written
 *   Cost     O(bytes) to read and write, O(sectors not synced) to sync and to crash; the
 *            number of files counts, their size does not
 *   Threads  any for what is done to the disk; the test's own calls while it is not in
 *            use
 */
#ifndef TESTS_SUPPORT_SIM_DISK_H
#define TESTS_SUPPORT_SIM_DISK_H

#include "claimd/journal/disk.h"

#include <stdbool.h>

struct sim_disk; /* opaque */

/* Operations that can be counted, and can fail. */
enum sim_op {
    SIM_OPEN,
    SIM_READ,
    SIM_WRITE,
    SIM_SYNC,
    SIM_ALLOCATE,
    SIM_CUT,
    SIM_SIZE,
    SIM_RENAME,
    SIM_UNLINK,
    SIM_LIST,
    SIM_SYNC_NAMES,
    SIM_LOCK,
    SIM_FREE_BYTES,
    SIM_OPS /* their number */
};

/* Since the disk was made; attempts count, whatever came of them. */
struct sim_disk_stats {
    uint64_t ops[SIM_OPS];  /* by kind, and */
    uint64_t operations;    /* together */
    uint64_t bytes_written; /* those that were */
    uint64_t forgets;
    const char *misuse; /* the last; NULL: none */
};

/* Returns an empty disk, owned. Like all of this it ends the program without memory. */
struct sim_disk *sim_disk_new(uint64_t seed);
void sim_disk_free(struct sim_disk *sd);

/* The disk of a process that starts now. Borrowed until sim_disk_free(). */
struct disk *sim_disk_open(struct sim_disk *sd);

/* -------------------------------------------------------------- the end of processes */

/* A power cut. */
void sim_disk_crash(struct sim_disk *sd);

/* A power cut that leaves nothing of what was not synced. */
void sim_disk_crash_losing_all(struct sim_disk *sd);

/* kill -9: their open files and locks are gone, the system still has all that was
 * written. */
void sim_disk_kill(struct sim_disk *sd);

/*
 * Returns another disk that is the same in all that is not durable as well, owned: a
 * crash of it is one that this disk is spared. It is not in use, nothing is wrong with
 * it.
 */
struct sim_disk *sim_disk_copy(struct sim_disk *sd, uint64_t seed);

/* ------------------------------------------------------------------ faults */

/*
 * The nth operation of this kind from now on (1: the next) fails once, and does nothing;
 * 0: none does. But a sync that fails drops what it should have made durable: that is
 * read as it was before, and the next sync succeeds. And names whose sync fails are
 * durable by dice, and those that are not never will be.
 */
void sim_disk_fail(struct sim_disk *sd, enum sim_op op, uint64_t nth, int error);

/*
 * The nth operation of any kind and all that follow fail with EIO; 0: none does. Nothing
 * is dropped: it is as if the process stood still there until the crash that comes.
 */
void sim_disk_die(struct sim_disk *sd, uint64_t nth);

/* There is space for so many bytes more, also after a crash; SIM_NO_LIMIT: for any. */
#define SIM_NO_LIMIT UINT64_MAX
void sim_disk_set_space(struct sim_disk *sd, uint64_t bytes);

/* In so many of a hundred cases a read or write does less than was requested. */
void sim_disk_set_short(struct sim_disk *sd, unsigned percent);

/*
 * Data that a sync has dropped can be read until disk_forget() or a crash, as on ext4
 * and XFS, where memory believes that it was written.
 */
void sim_disk_set_lying(struct sim_disk *sd, bool lying);

/* Ends all of these faults. Lost data stays lost. */
void sim_disk_mend(struct sim_disk *sd);

/* Rot: flips a bit of what is durable of a file. */
void sim_disk_flip(struct sim_disk *sd, const char *name, uint64_t offset, unsigned bit);

/*
 * Misuse is: cutting off what is not zeros, writing to a file that is only read, a file
 * of another process, one that was closed, a second lock of one process, a process that
 * goes on after disk_shut() or leaves files open. It fails the test, unless this is false
 * (it is true at first): then it gives what a real disk might say.
 */
void sim_disk_set_strict(struct sim_disk *sd, bool strict);

/* ------------------------------------------------------------------ contents */

const struct sim_disk_stats *sim_disk_stats(const struct sim_disk *sd);

/* How many files there are now, and how many bytes they take (those that are open as
 * well). */
size_t sim_disk_files(const struct sim_disk *sd);
uint64_t sim_disk_bytes(const struct sim_disk *sd);

/* How long it is after a crash that leaves nothing that is not durable; false: not
 * there. */
bool sim_disk_durable_size(const struct sim_disk *sd, const char *name, uint64_t *out);

/* Makes or replaces a file, durably, and whatever else was done to names. */
void sim_disk_put(struct sim_disk *sd, const char *name, const void *data, size_t len);

/* All that is read of the file now, owned: free() it; NULL: there is none. */
void *sim_disk_get(struct sim_disk *sd, const char *name, size_t *len);

#endif
