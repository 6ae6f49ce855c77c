/*
 * journal/inspect: reads a journal for the commands: lists its records, checks it, writes
 * its intact part to a new journal, and copies it (docs/durability.md, "Commands").
 *
 * The functions do not change the journal that they read, and do not lock it. The caller
 * locks it with journal_lock(), or accepts that a process writes it meanwhile (`live`,
 * journal_backup()).
 *
 *   Errors   as journal_recover(); error[] is for people. Damage is reported and skipped.
 *            So ST_BAD_VALUE means that the journal cannot be read at all: it is newer
 *            than this program
 *   Memory   a segment
 *   Threads  one
 */
#ifndef CLAIMD_JOURNAL_INSPECT_H
#define CLAIMD_JOURNAL_INSPECT_H

#include "claimd/journal/journal.h"

struct journal_bodies; /* opaque */

/* A segment, as far as it could be read. */
struct journal_segment {
    const char *name;
    uint64_t first_lsn;              /* from its name */
    uint64_t next_lsn;               /* behind its last record */
    uint64_t frames, records, bytes; /* whole frames; bytes of the file */
    uint64_t end;                    /* offset behind its last whole frame */
    uint64_t torn_bytes; /* behind `end`, left by a crash; only in the last segment */
    bool last;           /* the newest segment */
    bool sealed;         /* its last frame is a seal, so all before it was durable */
};

/* A damaged place. */
struct journal_damage {
    const char *name; /* of the file */
    uint64_t offset;
    const char *what;  /* "is no frame, but there are some behind it" */
    uint64_t from, to; /* LSNs that are missing; from > to: none */
};

/* A record, and its queues, if their names are known by then. */
struct journal_entry {
    uint64_t lsn;
    const char *type;            /* "POST" */
    struct store_change *change; /* next() iterates over its messages; NULL: a mark */
    const char *mark;            /* of a mark: "OPENED", "CHECKPOINT_END" */
    uint64_t since; /* of a CHECKPOINT_END: the LSN of its CHECKPOINT_BEGIN */
    uint64_t file;  /* of a FILE_GONE: the number of the body file */
    int64_t now_ms;
    int64_t wall_ahead_ms; /* added to now_ms, it is the time of the wall clock */
    const struct store_queue *queue, *target; /* NULL: unknown, or none */
};

/* Callbacks; each may be NULL. */
struct journal_callbacks {
    void (*segment)(void *arg, const struct journal_segment *segment);
    void (*damage)(void *arg, const struct journal_damage *damage);
    bool (*entry)(void *arg, const struct journal_entry *entry); /* false: stop */
    void *arg;
};

struct journal_findings {
    uint64_t segments, frames, records, bytes; /* bytes of records */
    uint64_t next_lsn;     /* of the next record; 0: there is no record */
    int64_t last_ms;       /* time of the last frame; 0: none */
    int64_t wall_ahead_ms; /* of the last frame: the wall clock less the store's clock */
    uint64_t torn_bytes;
    uint64_t damages;       /* reported */
    uint64_t lost;          /* records that are missing or without a queue */
    uint64_t lost_messages; /* of damaged body files */
    int64_t now_ms;         /* in: the wall clock; out: the time of the store */
    bool replayed;          /* the store has the contents, and can be read */
};

/* Locks the journal while *out is open, without creating files. Returns 0 or an errno.
 * EWOULDBLOCK: a process uses it. *out is NULL if the journal was never used, or cannot
 * be written. */
int journal_lock(struct disk *disk, struct disk_file **out);

/*
 * The body files of a journal that is only read. A store that is opened for
 * journal_verify() gets journal_bodies_runs(), and enough backlog_memory, because nothing
 * is written. Close them before the store. ST_NO_MEMORY.
 */
enum status journal_bodies_open(struct disk *disk, struct journal_bodies **out);
struct store_runs *journal_bodies_runs(struct journal_bodies *bodies);
void journal_bodies_close(struct journal_bodies *bodies); /* NULL has no effect */

/* Reads all runs that the store requested. The caller does so before it repeats an
 * operation. ST_IO, with a text in error[]. */
enum status
journal_bodies_load(struct journal_bodies *bodies, char error[JOURNAL_ERROR_CAP]);

/*
 * Checks a journal with its body files, and replays it into a fresh store, which uses
 * `bodies`. ST_CONFLICT: it is whole, but contradicts itself. Damage is reported; the
 * status is ST_OK then, too. Messages of damaged body files are not in the store.
 */
enum status journal_verify(struct journal_bodies *bodies, struct store *store,
                           const struct journal_callbacks *callbacks,
                           struct journal_findings *out, char error[JOURNAL_ERROR_CAP]);

/* Passes on records with LSNs from `from` on. `live`: another process writes, so its last
 * frame may be incomplete, and bytes behind the last whole frame are ignored. */
enum status journal_show(struct disk *disk, bool live, uint64_t from,
                         const struct journal_callbacks *callbacks,
                         struct journal_findings *out, char error[JOURNAL_ERROR_CAP]);

/*
 * Writes the intact part of a journal to an empty disk as a new one, with its own LSNs.
 * Records of a queue whose name is lost are reported as damage. A queue that was replaced
 * by another one of its name is dropped silently. The copy has the messages of body files
 * in its segments. callbacks->damage is called in order, callbacks->entry is not.
 */
enum status journal_salvage(struct disk *from, struct disk *to, uint64_t segment_bytes,
                            const struct journal_callbacks *callbacks,
                            struct journal_findings *out, char error[JOURNAL_ERROR_CAP]);

/* How to link files to another directory; a seam for the real disk. */
struct journal_linker {
    /* Links a file of the journal into the copy. 0 or an errno. NULL: files are
     * copied. */
    int (*link)(void *arg, const char *name);
    /* Called between steps, for tests. May be NULL. */
    void (*pause)(void *arg);
    void *arg;
};

struct journal_backup_result {
    uint64_t segments, bodies, linked, copied_bytes;
    uint64_t next_lsn; /* behind the last record of the copy */
    unsigned restarts; /* because segments or body files were removed meanwhile */
};

/*
 * Copies a journal, which a process may write meanwhile, to an empty disk, up to a whole
 * frame that existed at the beginning, or a later one. The copy is durable then.
 * ST_NOT_FOUND: there is no record.
 */
enum status
journal_backup(struct disk *from, struct disk *to, const struct journal_linker *linker,
               struct journal_backup_result *out, char error[JOURNAL_ERROR_CAP]);

#endif
