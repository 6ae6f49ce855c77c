/* Reading a journal from its oldest segment to its last whole frame. */
#include "journal/journal_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read at a time, unless a frame is longer. */
enum { PIECE = 1 << 18 };

/* One reading. */
struct reading {
    struct journal *j;
    struct journal_recovery *out;
    char *error;            /* of JOURNAL_ERROR_CAP bytes */
    struct disk_file *file; /* of the segment in turn */
    uint8_t *bytes;         /* owned: what was read of it */
    size_t len, size, room; /* bytes read, of the segment, and that there is memory for */
    uint64_t next_lsn;      /* that must come now; 0: the first decides */
    char name[DISK_NAME_CAP];
    char before[DISK_NAME_CAP]; /* the segment before it, */
    size_t ended;               /* and where its frames end */
    uint64_t begins;            /* position that the oldest segment begins with */
    bool complete;              /* a sweep has shown what was there before that */
};

static enum status __attribute__((format(printf, 3, 4)))
fail(struct reading *r, enum status st, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(r->error, JOURNAL_ERROR_CAP, format, args);
    va_end(args);
    return st;
}

static enum status
system_fails(struct reading *r, const char *what, int error)
{
    return fail(r, error == ENOMEM ? ST_NO_MEMORY : ST_IO, "the journal cannot %s %s: %s",
                what, r->name, strerror(error));
}

static enum status
damaged(struct reading *r, size_t offset, const char *what)
{
    return fail(r, ST_BAD_VALUE,
                "the journal is damaged: %s at %zu %s, behind position %" PRIu64
                "; 'claimd verify' shows what is left",
                r->name, offset, what, r->next_lsn - 1);
}

/* ------------------------------------------------------------------ segments */

/* Opens a segment; what a crash has left of the last one becomes durable, or goes. */
static enum status
open_segment(struct reading *r, const struct segment *segment, bool last)
{
    struct disk *disk = r->j->config.disk;
    int error;

    segment_name(r->name, segment->first_lsn);
    r->len = 0;
    r->size = segment->bytes;
    if (r->size > r->room) {
        free(r->bytes);
        r->bytes = malloc(r->size);
        r->room = r->bytes == NULL ? 0 : r->size;
    }
    if (r->bytes == NULL && r->size > 0)
        return fail(r, ST_NO_MEMORY, "there is no memory to read %s", r->name);
    error = disk_file_open(disk, r->name, last ? DISK_WRITE : DISK_READ, &r->file);
    /* What is only in memory becomes durable before anybody hears of it. */
    if (error == 0 && last)
        error = disk_sync(disk, r->file);
    if (error == 0 && last)
        disk_forget(disk, r->file);
    return error == 0 ? ST_OK : system_fails(r, "open", error);
}

static void
close_segment(struct reading *r)
{
    disk_close(r->j->config.disk, r->file);
    r->file = NULL;
}

/* Reads on until there are `want` bytes, or the segment ends. */
static enum status
fill(struct reading *r, size_t want)
{
    size_t got, to = r->len + PIECE;
    int error;

    if (want <= r->len)
        return ST_OK;
    if (to < want)
        to = want;
    if (to > r->size)
        to = r->size;
    error = disk_read(r->j->config.disk, r->file, r->len, r->bytes + r->len, to - r->len,
                      &got);
    if (error != 0)
        return system_fails(r, "read", error);
    r->len += got;
    return ST_OK;
}

/* Checks a segment's head; *empty: it was never begun. */
static enum status
check_head(struct reading *r, const struct segment *segment, bool first, bool last,
           struct segment_head *head, bool *empty)
{
    struct segments *s = &r->j->segments;
    enum segment_verdict verdict =
        r->len < SEGMENT_HEAD_BYTES ? SEGMENT_BROKEN : segment_head_read(r->bytes, head);

    *empty = verdict == SEGMENT_EMPTY || (verdict == SEGMENT_BROKEN && r->len == 0);
    if (*empty && last)
        return ST_OK;
    if (verdict == SEGMENT_NEWER)
        return fail(r, ST_BAD_VALUE,
                    "%s was written by a newer claimd (version %" PRIu32
                    ", features %" PRIx64 "): use that one",
                    r->name, head->version, head->required);
    if (verdict != SEGMENT_GOOD || head->first_lsn != segment->first_lsn)
        return damaged(r, 0, "is no head of a segment");
    if (first)
        memcpy(s->journal, head->journal, NONCE_BYTES);
    if (memcmp(s->journal, head->journal, NONCE_BYTES) != 0)
        return fail(r, ST_BAD_VALUE, "%s belongs to another journal", r->name);
    if ((head->required & SEGMENT_TEST_KIT) != 0 && !r->j->config.test_kit)
        return fail(r, ST_BAD_VALUE,
                    "%s was written with the clock of a test kit: it is not to be used",
                    r->name);
    if (first)
        r->next_lsn = r->begins = segment->first_lsn;
    if (segment->first_lsn != r->next_lsn)
        return fail(r, ST_BAD_VALUE,
                    "the journal is damaged: %s at %zu ends with position %" PRIu64
                    ", but the next is %s",
                    r->before, r->ended, r->next_lsn - 1, r->name);
    return ST_OK;
}

/* ------------------------------------------------------------------ frames */

static enum status
apply(struct reading *r, struct record *record)
{
    struct store_durable *store = r->j->store;

    if (record->type != RECORD_MARK)
        return store->replay(store, &record->change);
    if (record->mark.what == MARK_SWEEP_END && record->mark.since >= r->begins)
        r->complete = true;
    store->replay_marks(store, &record->mark.used);
    return ST_OK;
}

/* Replays the records of a whole frame. */
static enum status
replay_frame(struct reading *r, size_t offset, const struct frame *frame)
{
    const uint8_t *at = r->bytes + offset + FRAME_HEAD_BYTES;
    size_t left = frame->length;

    for (uint32_t i = 0; i < frame->count; i++) {
        struct record record;
        enum status st = record_read(at, left, &record);
        size_t size = record_size(at, left);

        if (st == ST_OK)
            st = apply(r, &record);
        if (st == ST_NO_MEMORY)
            return fail(r, st, "there is no memory for what is in the journal");
        if (st != ST_OK)
            return damaged(r, offset, "has a record that cannot be");
        at += size;
        left -= size;
        r->next_lsn++;
        r->out->records++;
    }
    if (left > 0)
        return damaged(r, offset, "has more than its records");
    r->out->bytes += frame->length;
    if (r->out->last_ms < frame->time_ms)
        r->out->last_ms = frame->time_ms;
    return ST_OK;
}

static bool
all_zero(const uint8_t *at, size_t len)
{
    return len == 0 || (at[0] == 0 && memcmp(at, at + 1, len - 1) == 0);
}

/* Is there anything behind an offset of the segment but zeros? */
static enum status
look_behind(struct reading *r, size_t offset, bool *something)
{
    size_t from = r->len, got;
    uint8_t *piece;
    int error = 0;

    *something = !all_zero(r->bytes + offset, r->len - offset);
    piece = malloc(PIECE); /* the segment's own memory would be touched for nothing */
    if (piece == NULL)
        return fail(r, ST_NO_MEMORY, "there is no memory to read %s", r->name);
    for (; error == 0 && !*something && from < r->size; from += got) {
        error = disk_read(r->j->config.disk, r->file, from, piece, PIECE, &got);
        if (error != 0 || got == 0)
            break;
        *something = !all_zero(piece, got);
    }
    free(piece);
    return error == 0 ? ST_OK : system_fails(r, "read", error);
}

/*
 * What stands behind the last whole frame of the journal. A crash may have torn the frame that
 * was being written; but if there is a whole one behind it, it was durable once.
 */
static enum status
check_rest(struct reading *r, size_t offset, const struct segment_head *head)
{
    struct frame frame;
    bool something;
    size_t later;
    enum status st = look_behind(r, offset, &something);

    if (st == ST_OK && something)
        st = fill(r, r->size);
    if (st != ST_OK || !something)
        return st;
    later = frame_search(r->bytes, r->len, offset, r->next_lsn, head->nonce, &frame);
    if (later < r->len)
        return damaged(r, offset, "is no frame, but there are some behind it");
    r->out->torn = true;
    r->out->torn_bytes += r->len - offset;
    return ST_OK;
}

/* Makes sure that the frame at an offset can be read whole, if there is one. */
static enum status
fill_frame(struct reading *r, size_t offset)
{
    enum status st = fill(r, offset + FRAME_HEAD_BYTES);

    return st == ST_OK && r->len >= offset + FRAME_HEAD_BYTES
               ? fill(r, offset + frame_size(r->bytes + offset))
               : st;
}

static enum status
read_frames(struct reading *r, const struct segment_head *head, bool last)
{
    size_t offset = SEGMENT_HEAD_BYTES;
    struct frame frame;
    enum status st;

    while ((st = fill_frame(r, offset)) == ST_OK &&
           frame_read(r->bytes + offset, r->len - offset, head->nonce, &frame)) {
        if (frame.first_lsn != r->next_lsn)
            return damaged(r, offset, "is a frame of another position");
        st = replay_frame(r, offset, &frame);
        if (st != ST_OK)
            return st;
        offset += FRAME_HEAD_BYTES + frame.length;
    }
    r->ended = offset;
    memcpy(r->before, r->name, sizeof(r->before));
    /* In the others nothing is missing if the next one goes on where they end. */
    return st == ST_OK && last ? check_rest(r, offset, head) : st;
}

static enum status
read_segment(struct reading *r, size_t i)
{
    struct segments *s = &r->j->segments;
    bool last = i + 1 == s->count, empty = false;
    struct segment_head head;
    enum status st = open_segment(r, &s->all[i], last);

    if (st == ST_OK)
        st = fill(r, SEGMENT_HEAD_BYTES);
    if (st == ST_OK)
        st = check_head(r, &s->all[i], i == 0, last, &head, &empty);
    if (st == ST_OK && !empty) {
        r->out->segments++;
        st = read_frames(r, &head, last);
    }
    close_segment(r);
    if (st == ST_OK && empty) {
        int error = segments_drop(s, i);

        st = error == 0 ? ST_OK : system_fails(r, "remove", error);
    }
    return st;
}

/* Segments go only when a sweep has shown what was in them: whatever began before. */
static enum status
check_begin(struct reading *r)
{
    if (r->begins <= 1 || r->complete)
        return ST_OK;
    return fail(r, ST_BAD_VALUE,
                "the journal is damaged: it begins with %016" PRIx64
                ".log, and what was before that is missing",
                r->begins);
}

/* ------------------------------------------------------------------ going on */

/* The time that the store goes on from: never before what the log has seen. */
static enum status
choose_time(struct reading *r)
{
    struct journal_recovery *out = r->out;

    if (out->last_ms == 0)
        return ST_OK;
    if (out->now_ms > out->last_ms + JOURNAL_LIFE_MAX_MS && !out->accept_clock)
        return fail(r, ST_BAD_VALUE,
                    "the clock is %" PRId64
                    " days ahead of the journal's last entry, and every message would be "
                    "over: if it is right, start with --accept-clock",
                    (out->now_ms - out->last_ms) / (24 * 3600 * 1000));
    if (out->now_ms < out->last_ms)
        out->now_ms = out->last_ms;
    return ST_OK;
}

/* Begins to log behind what was read. */
static enum status
go_on(struct reading *r)
{
    struct journal *j = r->j;
    struct segments *s = &j->segments;
    int error;

    if (r->next_lsn == 0) { /* nothing is there: a new journal */
        r->next_lsn = 1;
        if (entropy_reserve(&s->entropy, NONCE_BYTES) != ST_OK)
            return fail(r, ST_UNAVAILABLE, "there are no random numbers");
        entropy_take(&s->entropy, s->journal, NONCE_BYTES);
    }
    /* A last segment without a whole frame would have the name of the one that begins. */
    if (s->count > 0 && s->all[s->count - 1].first_lsn == r->next_lsn) {
        error = segments_drop(s, s->count - 1);
        if (error != 0)
            return system_fails(r, "remove", error);
    }
    j->next_lsn = r->next_lsn;
    j->time_ms = r->out->now_ms;
    atomic_store(&j->durable, r->next_lsn - 1);
    error = segments_begin(s, r->next_lsn, r->out->now_ms);
    if (error == 0)
        error = disk_sync_names(s->disk);
    if (error != 0)
        return system_fails(r, "begin a segment behind", error);
    journal_look_for_room(j);
    if (atomic_load(&j->lost))
        return fail(r, ST_IO, "the journal cannot make the segments that come next");
    return ST_OK;
}

static enum status
end_replay(struct reading *r)
{
    struct store_durable *store = r->j->store;
    enum status st;

    r->j->starting = true;
    st = store->replay_end(store, r->out->now_ms);
    r->j->starting = false;
    if (st == ST_BAD_VALUE)
        return fail(
            r, st, "the journal is damaged: it has queues without a name, or two of one");
    if (st != ST_OK)
        return fail(r, st, "the store cannot go on: %s", status_text(st));
    (void)journal_mark(r->j, MARK_OPENED, 0);
    return ST_OK;
}

enum status
journal_recover(struct journal *j, struct store_durable *store,
                struct journal_recovery *recovery, char error[JOURNAL_ERROR_CAP])
{
    struct reading r = {.j = j, .out = recovery, .error = error};
    enum status st = ST_OK;
    int failed = segments_list(&j->segments);

    j->store = store;
    if (failed != 0)
        return system_fails(&r, "list its directory", failed);
    for (size_t i = 0; st == ST_OK && i < j->segments.count; i++)
        st = read_segment(&r, i);
    free(r.bytes);
    if (st == ST_OK)
        st = check_begin(&r);
    if (st == ST_OK)
        st = choose_time(&r);
    if (st == ST_OK)
        st = go_on(&r);
    return st == ST_OK ? end_replay(&r) : st;
}
