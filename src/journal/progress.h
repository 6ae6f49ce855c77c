/*
 * progress: how far a recovery has come, told once a second (journal_config.progress).
 *
 *   Cost     a look at the clock each frame
 *   Threads  none: who recovers
 */
#ifndef JOURNAL_PROGRESS_H
#define JOURNAL_PROGRESS_H

#include "claimd/journal/journal.h"
#include "journal/record.h"

struct progress {
    const struct journal_config *config; /* borrowed: who is told */
    struct journal_progress now;         /* bytes: of segments that were read whole */
    int64_t began_ms, told_ms;           /* of the stopwatch */
};

void progress_begin(struct progress *p, const struct journal_config *config);

/* So much is there to be read. */
void progress_expect(struct progress *p, uint64_t segments, uint64_t bytes);

/* A record, and a segment of so many bytes, was read. */
void progress_record(struct progress *p, const struct record *record);
void progress_segment(struct progress *p, uint64_t bytes);

/* Tells, if it is time to; so many bytes of the segment in turn were read. */
void progress_look(struct progress *p, uint64_t bytes);

#endif
