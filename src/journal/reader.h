/*
 * reader: a walk over a journal, from its oldest segment to its last whole frame.
 *
 * Recovery, the commands and whoever else reads a journal read it here. The owner sets what
 * stands above the line in struct reader, calls reader_read(), then reader_fini().
 *
 *     damage() NULL   the first damage ends the reading: ST_BAD_VALUE, and error[] says where
 *     otherwise       it is told of, and reading goes on behind it
 *
 * A crash may have torn the frame that was being written, but if a whole one stands behind it,
 * it was durable once: that is damage. Torn is only the end of the last segment. A log that
 * ends before it was durable once (segment.h) is damaged, too. A segment gets its name
 * when its head and its size are durable, so no crash leaves one without them.
 *
 *   Memory   the largest segment, once; what is not read of it is not touched
 *   Threads  none: one reads
 */
#ifndef JOURNAL_READER_H
#define JOURNAL_READER_H

#include "claimd/journal/inspect.h"
#include "journal/record.h"
#include "journal/segment.h"

struct reader {
    struct segments
        *segments; /* borrowed, listed; `journal` becomes what the heads say */
    bool sync;     /* what a crash has left in memory becomes durable before it is read */
    bool live; /* a process writes: what stands behind the last frame is not looked at,
                      nor how far the log should go (segment.h) */
    bool test_api;  /* segments that the test API made are fine */
    bool test_only; /* no others are */
    char *error;    /* of JOURNAL_ERROR_CAP bytes */

    /* A record that has this LSN; what is not ST_OK ends the reading. */
    enum status (*record)(void *arg, struct reader *r, struct record *record);
    void (*frame)(void *arg, const struct reader *r); /* a whole one was read; or NULL */
    void (*segment)(void *arg, const struct journal_segment *segment); /* read; or NULL */
    void (*damage)(void *arg, const struct journal_damage *damage);    /* or NULL */
    void *arg;

    /* -------- */
    uint64_t next_lsn; /* of the record in turn; behind the last; 0: there was none */
    const uint8_t *record_at; /* the record's bytes, while record() is called */
    size_t record_size;
    struct journal_findings found;

    struct disk_file *file; /* of the segment in turn */
    uint8_t *bytes;         /* owned: what was read of it */
    size_t len, size, room; /* bytes read, of the segment, and that there is memory for */
    uint64_t made_bytes;    /* of the segment when it was begun; 0: not known */
    uint8_t nonce[NONCE_BYTES]; /* its */
    bool known;                 /* which journal it is */
    uint64_t required;          /* features of its segments so far */
    struct journal_segment now; /* the segment in turn */
    char name[DISK_NAME_CAP], before[DISK_NAME_CAP];
    uint64_t begins;       /* LSN that the oldest segment begins with; 0: there is none */
    uint64_t checkpointed; /* LSN at which the last whole checkpoint began; 0: none */
    uint64_t before_end;   /* where the last whole frame of the segment before ended */
};

/* Finds the segments, before anything is read: segments_list(). */
enum status reader_list(struct reader *r);
enum status reader_read(struct reader *r);
void reader_fini(struct reader *r);

/*
 * After reading: does what is there need what stood before it? Segments are dropped when a
 * checkpoint has shown all that lived, so a journal begins with LSN 1, or a whole checkpoint began
 * behind its beginning.
 */
bool reader_lacks_beginning(const struct reader *r);

/* Puts a text into error[], and returns st. */
enum status __attribute__((format(printf, 3, 4)))
reader_fail(struct reader *r, enum status st, const char *format, ...);

/* What to do about damage: the end of each message that tells of it. */
#define READER_ADVICE                                                                    \
    ". Restore a backup, or run 'claimd verify DIR --salvage OUT' to keep what is "      \
    "intact"

/* The same for what the system has refused: "the journal cannot WHAT NAME: ...". */
enum status reader_system_fails(struct reader *r, const char *what, int error);

#endif
