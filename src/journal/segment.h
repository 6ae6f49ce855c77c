/*
 * segment: the files of a journal, and the one that is written.
 *
 *             disk_allocate()     rename, head,          the next one      checkpoint of     
 *                                 syncs                  is begun          all that lives are
 *     nothing ---------> spare ---------------> written -----------> whole --- durable --> gone
 *
 * A segment is named by the LSN of its first record, in 16 hexadecimal digits. Spares
 * are made ahead, so that a full disk leaves time; nobody reads them.
 *
 *   Threads  none: who commits
 */
#ifndef JOURNAL_SEGMENT_H
#define JOURNAL_SEGMENT_H

#include "claimd/base/entropy.h"
#include "claimd/base/status.h"
#include "claimd/journal/disk.h"
#include "journal/frame.h"

/*
 * Making and removing a file takes a disk longer the larger it is, and commits wait for that:
 * a millisecond for two or three MiB where what is removed is discarded as well (ext4, tmpfs).
 */
enum {
    SEGMENT_BYTES_LEAST = 4 << 20,
    SEGMENT_BYTES_USUAL = 8 << 20,
    SEGMENT_BYTES_MOST = 64 << 20
};

/* Spares that there have to be, and that are made while the disk has plenty. */
enum { SEGMENT_SPARES = 2, SEGMENT_SPARES_MOST = 12 };

enum { SEGMENT_FRAMES = 2 /* of the largest size: they fit in any case */ };
enum { SEGMENTS_WANTED = 16 };

/*
 * How far a journal was durable at some moment, written beside its segments: a last segment that is
 * missing, or whose tail was cut off, looks like the end of the log. The file is written in place at
 * each new segment, at each seal and at a clean stop, after what it names is durable, so it is never
 * ahead of the segments. One that is missing, of another journal or not whole says nothing.
 */
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

struct segment {
    uint64_t first_lsn;
    uint64_t bytes;
};

struct segments {
    struct disk *disk; /* borrowed */
    uint64_t segment_bytes;
    uint64_t required; /* features of what is made */
    bool look_only;    /* it is another's directory: nothing of it is removed */
    struct entropy entropy;
    uint8_t journal[NONCE_BYTES];

    struct segment *all; /* owned, oldest first */
    size_t count, room;
    uint64_t bytes;       /* of them together */
    uint64_t spare_bytes; /* of spares that were found, and not adopted yet */
    uint64_t largest;     /* bytes of the largest that was found, spare or not */
    unsigned spares;
    char unread[DISK_NAME_CAP]; /* where segments_list() failed, if it did */

    struct disk_file *file; /* of the last one, being written; NULL: none is */
    uint8_t nonce[NONCE_BYTES];
    uint64_t size;   /* of that one */
    uint64_t offset; /* where the next frame goes */
    bool dirty;      /* written since the last sync */
};

/* segment_bytes: of those that are made; 0: SEGMENT_BYTES_USUAL, or see segments_suit(). */
void segments_init(struct segments *s, struct disk *disk, uint64_t segment_bytes);
void segments_fini(struct segments *s);

void segment_name(char name[DISK_NAME_CAP], uint64_t first_lsn);

/* Finds the segments of the directory; 0 or an errno (ENOMEM too). */
int segments_list(struct segments *s);

/*
 * Chooses the size of those that are made, a power of two: the usual one, but less where there
 * is no room for SEGMENTS_WANTED of them, and more, up to SEGMENT_BYTES_MOST, where a frame may
 * have `frame_bytes`. Not less than that of those that were found: a checkpoint must be able to show
 * what is in them, and others would have the room of spares that are given up.
 */
void segments_suit(struct segments *s, uint64_t room, size_t frame_bytes);

/*
 * A frame is half of a segment at most, so that half of each can be counted on, wherever one
 * does not fit any more.
 */
size_t segments_frame_max(const struct segments *s);

/* Takes over the spares that were left, if they are whole and of the size that is made. */
int segments_adopt(struct segments *s);

/*
 * Gives back the room of the last segment behind `bytes`, where there is nothing but zeros: it
 * is not written any more.
 */
int segments_cut(struct segments *s, uint64_t bytes);

/* Forgets a segment and removes its file: the oldest, or the last if it has no record. */
int segments_drop(struct segments *s, size_t i);

/* Makes a spare of so many bytes; there may be SEGMENT_SPARES_MOST: ENOSPC... if that cannot be. */
int segments_stock(struct segments *s, uint64_t bytes);

/*
 * Makes the spare that is used next, as long as there is room, if there is none for another
 * whole one: so the whole ones stay, or there is one at all. To be called before a start's first
 * segment is begun.
 */
int segments_squeeze(struct segments *s, uint64_t room);

/* Ends the segment that is written, if any, and begins the one of this LSN. */
int segments_begin(struct segments *s, uint64_t first_lsn, int64_t now_ms);

/* True if a frame of so many bytes with its head fits into the one that is written. */
static inline bool
segments_fits(const struct segments *s, size_t bytes)
{
    return s->file != NULL && s->size - s->offset >= bytes;
}

/* Writes frames, which must fit; segments_sync() makes all that was written durable. */
int segments_write(struct segments *s, const void *frames, size_t len);
int segments_sync(struct segments *s);

/*
 * Writes beside the segments that records up to `lsn` are durable, and which segment is the
 * last but `without` of them. A full disk is no error: what is written there
 * stays true.
 */
int segments_note_durable(struct segments *s, uint64_t lsn, size_t without);

/*
 * Writes a seal, of the LSN that comes next, if it fits, and makes all that was written
 * durable.
 */
int segments_seal(struct segments *s, uint64_t next_lsn, int64_t now_ms);

#endif
