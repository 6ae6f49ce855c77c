/*
 * bodies: the body files of a journal (docs/journal.md). A store unloads messages to them
 * (claimd/store/runs.h).
 *
 *               the first write            full, or its        no run      FILE_GONE
 *                                          write failed        left        is durable
 *     nothing ------------------> written -------------> whole ------> empty ------> gone
 *
 * A body file has the head of a segment, and one frame for each run, with a STATE record.
 * It is named by its number in 8 hexadecimal digits. Numbers only grow.
 *
 *   Threads  `lock` guards everything but the parts of the writer and of the reader. It
 *            is taken under locks of the store, and no lock is taken under it. It is not
 *            held during a call of the disk
 */
#ifndef JOURNAL_BODIES_H
#define JOURNAL_BODIES_H

#include "claimd/base/counter.h"
#include "claimd/base/entropy.h"
#include "claimd/base/lock.h"
#include "claimd/journal/disk.h"
#include "claimd/store/runs.h"
#include "journal/frame.h"

#include <stdatomic.h>

/* Behind the number in a name. */
#define BODIES_SUFFIX ".bodies"

enum {
    BODIES_FILE_BYTES = 16 << 20, /* begins another file */
    BODIES_BUFFER_BYTES = 4 << 20,
    BODIES_SPARSE_FACTOR = 4,    /* a file is sparse with so many times its runs' bytes */
    BODIES_WAKE_BYTES = 1 << 20, /* the writer waits a moment for so much */
    BODIES_WAIT_MS = 50,
    BODIES_REMOVE_MS = 200, /* between the removals of two files */
    BODIES_IDLE_MS = 3600000
};

struct body_file {
    uint32_t number;
    bool known;    /* its head was written, or read */
    size_t runs;   /* of the store, also those that are being written */
    uint64_t size; /* in bytes, with what is being written */
    /* Of this checkpoint: runs, and the bytes that they need. */
    size_t counted_runs;
    uint64_t counted_bytes;
    bool sparse;       /* the last whole count says so */
    uint64_t gone_lsn; /* of its FILE_GONE; 0: not logged */
    uint8_t nonce[NONCE_BYTES];
};

struct bodies_buffer {
    uint8_t *bytes; /* owned, BODIES_MAPPED; NULL: there was no memory */
    size_t used;
};

/* A file that the reader or the recovery keeps open. */
struct body_handle {
    struct disk_file *file; /* NULL: none */
    uint32_t number;
};

struct bodies {
    struct store_runs runs;
    struct disk *disk;        /* borrowed */
    const uint8_t *journal;   /* borrowed: the id of the journal */
    const _Atomic bool *lost; /* borrowed: of the journal */
    char *damage; /* borrowed: for the text of a damage; NULL: it is not wanted */
    size_t damage_cap;
    const char *flaw; /* the damage that was found last, without the name of the file */
    struct lock lock;
    pthread_cond_t write_work, load_work;
    bool stopping;
    struct body_file *files; /* owned, ascending */
    size_t count, capacity;
    uint32_t newest; /* largest number ever used */
    uint32_t *gone;  /* owned: files that were removed, by the log */
    size_t gone_count, gone_capacity;
    _Atomic uint64_t bytes; /* of all files */
    _Atomic uint64_t space; /* bytes by which they may grow; set by the committer */
    bool has_empty;         /* perhaps a file has no run, and no FILE_GONE */
    _Atomic size_t leaving; /* files with a FILE_GONE */
    uint64_t log_durable;   /* an LSN: FILE_GONE up to it is durable */
    size_t sparse_runs;     /* in sparse files, */
    unsigned stalled;       /* and counts in which they did not become fewer */
    _Atomic bool sparse;    /* another checkpoint would free space */

    struct bodies_buffer buffers[2], *filling;
    uint32_t current; /* number of the file of the filled buffer; 0: none */
    uint64_t end;     /* offset of the next run in it */
    bool writing;     /* the other buffer is being written */
    bool pausing;     /* the writer waits a moment although there is work */
    /* Tickets: a number in the lower bits, behind the number of failures so far. */
    uint64_t issued, durable;
    struct entropy entropy; /* of the writer */

    struct list loads; /* struct store_load, oldest first */
    /* Of the thread that loads; before its start: of recovery. */
    struct body_handle reader;
    _Atomic uint64_t loaded; /* loads that ended */
    _Atomic bool wanted;     /* the store wants to write: segments need SEGMENT_BODIES */
    _Atomic bool permitted;  /* the present one has it, so a RUN may be logged */
    struct buckets loads_us; /* from the request on; written by the thread that loads */
};

/* The result of a step. */
enum bodies_result {
    BODIES_IDLE, /* nothing to do */
    BODIES_DONE,
    BODIES_FAILED /* the log is lost: *error is an errno, *what names the step */
};

void body_file_name(char name[DISK_NAME_CAP], uint32_t number);

/* The number of a body file; 0: the name is another one. */
uint32_t body_file_number(const char *name);

void bodies_init(struct bodies *b, struct disk *disk, const uint8_t *journal,
                 const _Atomic bool *lost);

/* Ends loads that wait, and frees everything. Its threads have ended. */
void bodies_fini(struct bodies *b);

/* Notes a body file of the log, whose number must not be used again. */
void bodies_note_used(struct bodies *b, uint32_t number);

/* Notes a FILE_GONE of the log. ST_NO_MEMORY. */
enum status bodies_note_gone(struct bodies *b, uint32_t number);

/* After the replay: removes files without runs. 0 or an errno. */
int bodies_remove_unused(struct bodies *b);

/* Writes the filled buffer, and makes it durable. */
enum bodies_result bodies_write(struct bodies *b, const char **what, int *error);

/* Reads the run that was requested first. */
enum bodies_result bodies_load(struct bodies *b, const char **what, int *error);

/* An empty file whose removal is not logged yet; 0: there is none. */
uint32_t bodies_find_empty(struct bodies *b);
void bodies_note_logged(struct bodies *b, uint32_t number, uint64_t lsn);

/* The log is durable up to this LSN: the writer can remove files. */
void bodies_note_durable(struct bodies *b, uint64_t lsn);

/* Removes one empty file whose FILE_GONE is durable. */
enum bodies_result bodies_remove(struct bodies *b, const char **what, int *error);

/* A checkpoint begins or ends, which counts all runs. At the end files become sparse. */
void bodies_count_begin(struct bodies *b);
void bodies_count_end(struct bodies *b);

/* Wait for work; false: the thread must end. */
bool bodies_wait_write(struct bodies *b);
bool bodies_wait_load(struct bodies *b);
void bodies_stop(struct bodies *b);

#endif
