/*
 * reader: reads a journal, from its oldest segment to its last whole frame.
 *
 * Recovery and the commands use it. The owner sets the members above the line in struct
 * reader, and calls reader_list(), reader_read() and reader_fini().
 *
 *     damage() NULL   the first damage ends the reading: ST_BAD_VALUE and error[]
 *     otherwise       each damage is reported, and reading continues behind it
 *
 * A crash may tear the frame that is being written. But if a whole frame stands behind a
 * broken one, that was durable once: it is damage. Only the end of the last segment may
 * be torn. A log that ends before the LSN that was noted as durable (segment.h) is
 * damaged, too. A segment gets its name when its head and its size are durable, so no
 * crash leaves one without them.
 *
 *   Memory   the largest segment, once; parts that are not read are not touched
 *   Threads  one
 */
#ifndef JOURNAL_READER_H
#define JOURNAL_READER_H

#include "claimd/journal/inspect.h"
#include "journal/record.h"
#include "journal/segment.h"

struct reader {
    struct segments *segments; /* borrowed, listed; `journal` is set from the heads */
    bool sync;      /* sync data that a crash left in memory before it is read */
    bool live;      /* a process writes: ignore the end, and the durable LSN */
    bool test_api;  /* allow segments that the test API made */
    bool test_only; /* allow no others */
    char *error;    /* of JOURNAL_ERROR_CAP bytes */

    /* Called for each record; a status other than ST_OK ends the reading. */
    enum status (*record)(void *arg, struct reader *r, struct record *record);
    void (*frame)(void *arg, const struct reader *r); /* a whole frame; or NULL */
    void (*segment)(void *arg, const struct journal_segment *segment); /* read; or NULL */
    void (*damage)(void *arg, const struct journal_damage *damage);    /* or NULL */
    void *arg;

    /* -------- */
    uint64_t next_lsn; /* of the current record; at the end: the next one; 0: none */
    const uint8_t *record_at; /* bytes of the record, during record() */
    size_t record_size;
    struct journal_findings found;

    struct disk_file *file;     /* of the current segment */
    uint8_t *bytes;             /* owned: bytes read of it */
    size_t len, size, capacity; /* bytes read, of the segment, of memory */
    uint64_t made_bytes;        /* size of the segment when it was begun; 0: not known */
    uint8_t nonce[NONCE_BYTES]; /* of the current segment */
    bool known;                 /* the journal id is known */
    uint64_t required;          /* features of all segments so far */
    struct journal_segment now; /* the current segment */
    char name[DISK_NAME_CAP], before[DISK_NAME_CAP];
    uint8_t boot_id[BOOT_ID_BYTES]; /* of the last segment, as in its head */
    int64_t boot_offset_ns;
    uint64_t begins;       /* first LSN of the oldest segment; 0: there is none */
    uint64_t checkpointed; /* first LSN of the last whole checkpoint; 0: none */
    uint64_t before_end;   /* end of the last whole frame of the previous segment */
};

/* Finds the segments; see segments_list(). Before reader_read(). */
enum status reader_list(struct reader *r);
enum status reader_read(struct reader *r);
void reader_fini(struct reader *r);

/*
 * After reading: true if the beginning of the log is missing. Segments are removed when a
 * checkpoint has recorded all live data. So a journal begins with LSN 1, or a whole
 * checkpoint began behind its beginning.
 */
bool reader_lacks_beginning(const struct reader *r);

/* Formats error[], and returns st. */
enum status __attribute__((format(printf, 3, 4)))
reader_fail(struct reader *r, enum status st, const char *format, ...);

/* The advice at the end of each message about damage. */
#define READER_ADVICE                                                                    \
    ". Restore a backup, or run 'claimd verify DIR --salvage OUT' to keep what is "      \
    "intact"

/* The same for a failed system call: "the journal cannot WHAT NAME: ...". */
enum status reader_system_fails(struct reader *r, const char *what, int error);

#endif
