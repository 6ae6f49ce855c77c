/*
 * journal/inspect: reads a journal without using it: lists its records, checks it, saves its
 * intact part, and copies it (docs/durability.md, "Commands").
 *
 * Nothing of what is looked at is changed, nor is its lock taken: that is the caller's.
 *
 *   Errors   as journal_recover(); error[] is for people. What is damaged is told and walked
 *            around, so ST_BAD_VALUE says that it cannot be read at all: it is newer than this
 *            program
 *   Memory   a segment
 *   Threads  one
 */
#ifndef CLAIMD_JOURNAL_INSPECT_H
#define CLAIMD_JOURNAL_INSPECT_H

#include "claimd/journal/journal.h"

/* A segment, as far as it could be read. */
struct journal_segment {
    const char *name;
    uint64_t first_lsn;              /* as its name says */
    uint64_t next_lsn;               /* behind its last record */
    uint64_t frames, records, bytes; /* whole ones; bytes of the file */
    uint64_t end;                    /* offset behind its last whole frame */
    uint64_t torn_bytes; /* behind it, that a crash has left: the last one's only */
    bool last;           /* the one that was written last */
    bool sealed; /* its last frame is a seal: what stands before was durable then */
};

/* Something that is not as it was written. */
struct journal_damage {
    const char *name; /* of the file */
    uint64_t offset;
    const char *what;  /* "is no frame, but there are some behind it" */
    uint64_t from, to; /* LSNs that are missing; from > to: none */
};

/* A record, and the queues that it is about as far as they are known by then. */
struct journal_entry {
    uint64_t lsn;
    const char *type;            /* "POST" */
    struct store_change *change; /* next() shows its messages; NULL: a mark */
    const char *mark;            /* of a mark: "OPENED" */
    uint64_t since;              /* of a SWEEP_END */
    int64_t now_ms;
    const struct store_queue *queue, *target; /* NULL: unknown, or none */
};

/* Who looks; each may be NULL. */
struct journal_eyes {
    void (*segment)(void *arg, const struct journal_segment *segment);
    void (*damage)(void *arg, const struct journal_damage *damage);
    bool (*entry)(void *arg, const struct journal_entry *entry); /* false: no more */
    void *arg;
};

struct journal_findings {
    uint64_t segments, frames, records, bytes; /* bytes of records */
    uint64_t next_lsn; /* behind the last record; 0: there is none */
    int64_t last_ms;   /* time of the last frame; 0: none */
    uint64_t torn_bytes;
    uint64_t damages; /* told of */
    uint64_t lost;    /* LSNs that are missing, or could not be placed */
    int64_t now_ms;   /* in: the time that a store is to go on from, unless it is later */
    bool replayed;    /* the store has all of it, and can be asked */
};

/*
 * Keeps others from using the journal as long as *out is open, without making anything: NULL
 * if nobody ever used it, or it cannot be written. EWOULDBLOCK: a process uses it.
 */
int journal_hold(struct disk *disk, struct disk_file **out);

/*
 * Reads all of it, and tells a fresh store what is in it: ST_CONFLICT if it is whole, but
 * contradicts itself. Damage is told of; ST_OK then, too.
 */
enum status
journal_verify(struct disk *disk, struct store *store, const struct journal_eyes *eyes,
               struct journal_findings *out, char error[JOURNAL_ERROR_CAP]);

/*
 * Shows records with LSNs from `from` on. While another process writes (live) its last
 * frame may be half there: what comes behind the last whole one is not looked at.
 */
enum status
journal_show(struct disk *disk, bool live, uint64_t from, const struct journal_eyes *eyes,
             struct journal_findings *out, char error[JOURNAL_ERROR_CAP]);

/*
 * Writes what is left of a journal as a new one, with LSNs of its own, to an empty disk.
 * What belongs to a queue whose name is lost is told of like damage; a queue that another one
 * of the same name came after goes without a word. eyes->damage is told what is missing, in
 * order; eyes->entry nothing.
 */
enum status journal_salvage(struct disk *from, struct disk *to, uint64_t segment_bytes,
                            const struct journal_eyes *eyes, struct journal_findings *out,
                            char error[JOURNAL_ERROR_CAP]);

/* How segments come to another directory without being copied; a seam for the real disk. */
struct journal_linker {
    /* Gives a file of the journal this name in the copy, too: 0 or an errno. NULL: never. */
    int (*link)(void *arg, const char *name);
    /* Called between steps: tests have others write meanwhile. NULL: nothing. */
    void (*pause)(void *arg);
    void *arg;
};

struct journal_backup_figures {
    uint64_t segments, linked, copied_bytes;
    uint64_t next_lsn; /* behind the last record of the copy */
    unsigned restarts; /* since a checkpoint dropped segments meanwhile */
};

/*
 * Copies a journal that may be written meanwhile to an empty disk, up to a whole frame that
 * was there when it began, or a later one; the copy is durable then. ST_NOT_FOUND: there is
 * none.
 */
enum status
journal_backup(struct disk *from, struct disk *to, const struct journal_linker *linker,
               struct journal_backup_figures *out, char error[JOURNAL_ERROR_CAP]);

#endif
