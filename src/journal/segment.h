/*
 * segment: the files of a journal, and the one that is written.
 *
 *         disk_allocate()     rename, head,      the next one     checkpoint of all
 *                             syncs              is begun         live data is durable
 *     nothing -------> spare -----------> written ----------> whole --------> gone
 *
 * A segment is named by the LSN of its first record, in 16 hexadecimal digits. Spares
 * are made ahead, so that a full disk leaves time. Recovery does not read them.
 *
 *   Threads  only the thread that commits
 */
#ifndef JOURNAL_SEGMENT_H
#define JOURNAL_SEGMENT_H

#include "claimd/base/entropy.h"
#include "claimd/base/status.h"
#include "claimd/journal/disk.h"
#include "journal/frame.h"

/*
 * Creating and removing a file takes longer the larger it is, and commits wait for that:
 * a millisecond for two or three MiB if the file system discards removed blocks (ext4,
 * tmpfs).
 */
enum {
    SEGMENT_BYTES_LEAST = 4 << 20,
    SEGMENT_BYTES_USUAL = 8 << 20,
    SEGMENT_BYTES_MOST = 64 << 20
};

/* Spares that must exist, and that are made while the disk has plenty of space. */
enum { SEGMENT_SPARES = 2, SEGMENT_SPARES_MOST = 12 };

enum { SEGMENT_FRAMES = 2 /* frames of the largest size per segment */ };
enum { SEGMENTS_WANTED = 16 };

/*
 * The LSN up to which the journal was durable at some moment, stored beside its segments.
 * Without it a missing last segment, or a truncated one, would look like the end of the
 * log. The file is written in place at each new segment, at each seal and at a clean
 * stop, after the records are durable. So it is never ahead of the segments. A file that
 * is missing, of another journal or broken has no effect.
 */
#define DURABLE_LSN_NAME "durable-lsn"

enum { DURABLE_LSN_BYTES = 64 };

struct durable_lsn {
    uint8_t journal[NONCE_BYTES]; /* id of the journal: segment_head.journal */
    uint64_t lsn;                 /* records up to it were durable; 0: none */
    uint64_t segment;             /* first LSN of the last segment; 0: unknown */
};

/* Reads the file. *out is all zeros if the file has no effect. 0 or an errno. */
int durable_lsn_read(struct disk *disk, struct durable_lsn *out);

/*
 * Writes the file and makes it durable, but for the name of a new file: a
 * disk_sync_names() follows. 0 or an errno. If the disk is full, the old contents, which
 * stay true, remain.
 */
int durable_lsn_write(struct disk *disk, const struct durable_lsn *mark);

struct segment {
    uint64_t first_lsn;
    uint64_t bytes;
};

struct segments {
    struct disk *disk; /* borrowed */
    uint64_t segment_bytes;
    uint64_t required; /* features of new segments, */
    uint64_t current;  /* and of the one that is written */
    bool read_only;    /* another process has the directory: change nothing */
    struct entropy entropy;
    uint8_t journal[NONCE_BYTES];
    uint8_t boot_id[BOOT_ID_BYTES]; /* as in the heads of new segments */
    int64_t boot_offset_ns;

    struct segment *all; /* owned, oldest first */
    size_t count, capacity;
    uint64_t bytes;       /* sum of the segments */
    uint64_t spare_bytes; /* of spares that are not adopted yet */
    uint64_t largest;     /* bytes of the largest segment or spare that was found */
    unsigned spares;
    char unread[DISK_NAME_CAP]; /* the file at which segments_list() failed */

    struct disk_file *file; /* the last one, being written; NULL: none */
    uint8_t nonce[NONCE_BYTES];
    uint64_t size;   /* of `file` */
    uint64_t offset; /* of the next frame */
    bool dirty;      /* there are writes since the last sync */
};

/* segment_bytes: size of new segments; 0: SEGMENT_BYTES_USUAL, or see
 * segments_choose_size(). */
void segments_init(struct segments *s, struct disk *disk, uint64_t segment_bytes);
void segments_fini(struct segments *s);

void segment_name(char name[DISK_NAME_CAP], uint64_t first_lsn);

/* Lists the segments of the directory. 0 or an errno (ENOMEM too). */
int segments_list(struct segments *s);

/*
 * Chooses the size of new segments, a power of two: the usual one, but less if there is
 * no space for SEGMENTS_WANTED of them, and more, up to SEGMENT_BYTES_MOST, if a frame
 * may have `frame_bytes`. Not less than the segments that were found: a checkpoint must
 * fit their contents, and spares that are too small would be lost.
 */
void segments_choose_size(struct segments *s, uint64_t free_bytes, size_t frame_bytes);

/* The largest frame: half of a segment, so that half of each segment can be used wherever
 * a frame does not fit any more. */
size_t segments_frame_max(const struct segments *s);

/* Adopts spares that are whole and have the size of new segments. */
int segments_adopt_spares(struct segments *s);

/* Frees the space of the last segment behind `bytes`, where there are only zeros. It is
 * not written any more. */
int segments_trim_last(struct segments *s, uint64_t bytes);

/* Removes a segment and its file: the oldest, or the last if it has no record. */
int segments_remove(struct segments *s, size_t i);

/* Makes a spare of `bytes` bytes. ENOSPC if it does not fit, or if there are
 * SEGMENT_SPARES_MOST. */
int segments_add_spare(struct segments *s, uint64_t bytes);

/*
 * Before the first segment of a start: if there is no space for another whole spare,
 * makes a smaller one, as large as the space allows, that is used next. So the whole
 * spares stay, or there is one at all.
 */
int segments_add_small_spare(struct segments *s, uint64_t free_bytes);

/* Ends the current segment, if any, and begins the one with this LSN. */
int segments_begin(struct segments *s, uint64_t first_lsn, int64_t now_ms);

/* True if a frame of so many bytes with its head fits into the current segment. */
static inline bool
segments_fits(const struct segments *s, size_t bytes)
{
    return s->file != NULL && s->size - s->offset >= bytes;
}

/* Writes frames, which must fit. segments_sync() makes all writes durable. */
int segments_write(struct segments *s, const void *frames, size_t len);
int segments_sync(struct segments *s);

/* Notes that records up to `lsn` are durable, and which segment is the last one without
 * the last `without`. A full disk is no error: the old note stays true. */
int segments_note_durable(struct segments *s, uint64_t lsn, size_t without);

/* Writes a seal with the next LSN and these times, if it fits, and makes all writes
 * durable. */
int segments_seal(struct segments *s, uint64_t next_lsn, int64_t now_ms,
                  int64_t wall_ahead_ms);

#endif
