/*
 * sim_file: what one file of the simulated disk holds, and what a crash would leave of
 * it.
 *
 * A sector that was written to and not synced remembers what is durable, and what it was
 * between its writes:
 *
 *      durable     write 1     write 2     write 3
 *     [ bytes ]   [ older ]   [ older ]   [ the page ]     a crash chooses one of them
 *
 *   Cost     write, read O(bytes); sync, drop, crash O(sectors not synced), whatever the
 *            file's size
 *   Memory   pages that were written to; ends the program when there is none
 *   Threads  none: the lock of the disk guards it
 */
#ifndef TESTS_SUPPORT_SIM_FILE_H
#define TESTS_SUPPORT_SIM_FILE_H

#include "support/random.h"

#include <stdbool.h>
#include <stddef.h>

enum { SIM_SECTOR = 512, SIM_PAGE = 4096 };

struct sim_page;
struct sim_sector;

struct sim_file { /* zeroed: an empty one */
    uint64_t size, durable_size;
    struct sim_page **pages; /* NULL where nothing was written: zeros */
    size_t capacity;         /* of pages */
    struct sim_sector *unsynced;
};

void sim_file_fini(struct sim_file *f);

/* Copies what is there of len bytes from offset; returns how many these are. */
size_t sim_file_read(const struct sim_file *f, uint64_t offset, void *to, size_t len);

void sim_file_write(struct sim_file *f, uint64_t offset, const void *from, size_t len);

/* Makes it so long, unless it is longer. */
void sim_file_grow(struct sim_file *f, uint64_t size);

/*
 * Makes it no longer than that, a multiple of SIM_SECTOR. False: there is, or may be
 * after a crash, something but zeros behind it.
 */
bool sim_file_cut(struct sim_file *f, uint64_t size);

/* All of it is durable, but for what was dropped. */
void sim_file_sync(struct sim_file *f);

/*
 * A sync fails: data written since the last one will never be durable, and the next sync
 * does not report that. Lying: it is still read, until it is forgotten or there is
 * a crash; what is written to its sector later is durable with all of the sector.
 */
void sim_file_drop(struct sim_file *f, bool lying);
void sim_file_forget(struct sim_file *f);

/*
 * A crash: of each sector any version, of what it has grown none, all or a part, of what
 * was cut off none or all. NULL: nothing is left of what was not synced.
 */
void sim_file_crash(struct sim_file *f, struct random *dice);

/* Flips a bit of what is durable; it is read unless something was written over it. */
void sim_file_flip(struct sim_file *f, uint64_t offset, unsigned bit);

/* Makes `to`, which is empty, the same, unsynced writes and all. */
void sim_file_copy(const struct sim_file *f, struct sim_file *to);

/* How likely it is, in percent, that a thing not synced happened: nothing and all are
 * often. */
unsigned sim_bias(struct random *dice);

/* Zeroed memory, or the end of the program. */
void *sim_alloc(size_t size);

#endif
