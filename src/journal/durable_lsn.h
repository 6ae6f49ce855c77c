/*
 * durable_lsn: how far a journal was durable at some moment, written beside its segments.
 *
 * A last segment that is missing, or whose tail was cut off, looks like the end of the log.
 * This file says that more was there. It is written in place at each new segment, at each
 * seal and at a clean stop, after what it tells of is durable, so it is never ahead of the
 * segments. One that is missing, of another journal or not whole tells of nothing.
 *
 *   Cost     a write of 64 bytes and a sync
 *   Threads  none: the committer
 */
#ifndef JOURNAL_DURABLE_LSN_H
#define JOURNAL_DURABLE_LSN_H

#include "claimd/journal/disk.h"
#include "journal/frame.h"

#define DURABLE_LSN_NAME "durable-lsn"

enum { DURABLE_LSN_BYTES = 64 };

struct durable_lsn {
    uint8_t journal[NONCE_BYTES]; /* whose it is: segment_head.journal */
    uint64_t lsn;                 /* up to it all records were durable; 0: none was */
    uint64_t segment;             /* first LSN of the last segment; 0: none is known */
};

/* *out is all zeros if the file tells of nothing. 0 or an errno. */
int durable_lsn_read(struct disk *disk, struct durable_lsn *out);

/*
 * Makes it durable, but for the name of a new file: a disk_sync_names() follows. 0 or an errno.
 * If the disk is full, the file tells of what it told before, which stays true.
 */
int durable_lsn_write(struct disk *disk, const struct durable_lsn *mark);

#endif
