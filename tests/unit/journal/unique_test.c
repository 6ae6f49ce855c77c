/*
 * Keys of unique messages in the log: they are in the frame of their message, and the
 * segments that may have them say so, for the sake of an older claimd.
 */
#include "journal/frame.h"
#include "journal/record.h"
#include "journal/segment.h"
#include "support/journalled.h"
#include "support/store_fixture.h"

#include <stdlib.h>

enum {
    SEGMENT = 64 * 1024,
    FRAME = (SEGMENT - SEGMENT_HEAD_BYTES) / SEGMENT_FRAMES,
    SEGMENTS = 8
};

struct world {
    struct journalled p;
    struct fixture f;
};

static void
start(struct world *w)
{
    journalled_start(&w->p, w->f.now_ms);
    w->f.mem = w->p.mem;
    w->f.store = w->p.store;
    w->f.now_ms = w->p.recovery.now_ms;
}

static void
stop(struct world *w)
{
    store_batch_release(&w->f.seen);
    journalled_stop(&w->p);
}

static void
open_world(struct world *w)
{
    *w = (struct world){
        .p = {.disk = sim_disk_new(1), .segment_bytes = SEGMENT, .seed = 1},
        .f = {.now_ms = START_MS,
              .queue = {.project = BYTES_LIT("p"), .name = BYTES_LIT("q")}}};
    start(w);
    journalled_commit(&w->p);
}

static void
close_world(struct world *w)
{
    stop(w);
    sim_disk_free(w->p.disk);
}

#define WORLD_TEST(id) FIXTURE_TEST_AS(id, struct world, w, open_world(w), close_world(w))

/* The process ends in peace, or by a power cut, and another one starts. */
static void
restart(struct world *w, bool crash)
{
    if (crash)
        sim_disk_crash_losing_all(w->p.disk);
    stop(w);
    start(w);
    journalled_commit(&w->p);
}

/* Posts a message with this key. False: one exists. */
static bool
post_unique(struct world *w, const struct store_unique *unique)
{
    const struct store_draft draft = {BYTES_LIT("1"), 3600, 0};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .create_queue = true, .unique = unique};
    struct store_op op = {.now_ms = w->f.now_ms};
    struct store_id id;

    ck_assert_status(store_message_post(w->f.store, &op, &w->f.queue, &request, &id),
                     ST_OK);
    return !op.existing;
}

static bool
post_keyed(struct world *w, struct bytes key)
{
    return post_unique(w, &(const struct store_unique){.key = key});
}

static bool
post_key(struct world *w, const char *key)
{
    return post_keyed(w, bytes_str(key));
}

struct names {
    char text[SEGMENTS][DISK_NAME_CAP];
    size_t count;
};

static int
by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void
note_segment(void *arg, const char *name)
{
    struct names *names = arg;

    if (strstr(name, ".log") == NULL)
        return;
    ck_assert_uint_lt(names->count, SEGMENTS);
    (void)strcpy(names->text[names->count++], name);
}

/* The segments, oldest first. */
static struct names
segments_of(struct world *w)
{
    struct names names = {.count = 0};

    ck_assert_int_eq(disk_list(w->p.seen, note_segment, &names), 0);
    qsort(names.text, names.count, sizeof(names.text[0]), by_text);
    return names;
}

/* The bytes of a segment, and its head; owned. */
static uint8_t *
read_segment(struct world *w, const char *name, size_t *len, struct segment_head *head)
{
    uint8_t *bytes = sim_disk_get(w->p.disk, name, len);

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(segment_head_read(bytes, head), SEGMENT_GOOD);
    return bytes;
}

/* A letter for each segment, oldest first: 'u' if it may have keys, 'p' if it may say
 * which client paused a queue, else '-'. */
static void
expect_features(struct world *w, const char *expected)
{
    const struct names names = segments_of(w);
    char seen[SEGMENTS + 1] = "";

    for (size_t i = 0; i < names.count; i++) {
        struct segment_head head;
        size_t len;

        free(read_segment(w, names.text[i], &len, &head));
        seen[i] = (head.required & SEGMENT_UNIQUE) != 0   ? 'u'
                  : (head.required & SEGMENT_CAUSES) != 0 ? 'p'
                                                          : '-';
    }
    ck_assert_str_eq(seen, expected);
}

TEST_CASE("segments");

WORLD_TEST(a_journal_without_keys_does_not_require_them)
{
    post(&w->f, 3);
    journalled_commit(&w->p);
    journal_checkpoint(w->p.journal);
    journalled_commit(&w->p);
    expect_features(w, "-");
    restart(w, true);
    expect_features(w, "--");
}

WORLD_TEST(the_first_key_begins_a_segment_that_requires_them)
{
    post(&w->f, 3);
    journalled_commit(&w->p);
    expect_features(w, "-");
    ck_assert(post_key(w, "a"));
    journalled_commit(&w->p);
    expect_features(w, "-u");
    ck_assert(post_key(w, "b"));
    ck_assert(!post_key(w, "b"));
    post(&w->f, 1);
    journalled_commit(&w->p);
    expect_features(w, "-u"); /* it goes on in the same segment */
}

WORLD_TEST(the_first_pause_begins_a_segment_that_may_name_its_client)
{
    post(&w->f, 3);
    journalled_commit(&w->p);
    expect_features(w, "-");
    pause_queue(&w->f, STORE_PAUSE_POSTS);
    journalled_commit(&w->p);
    expect_features(w, "-p");
    restart(w, true);
    expect_features(w, "-pp");
}

LOOP_TEST(a_restart_keeps_the_keys_and_the_requirement, 2)
{
    struct world w;

    open_world(&w);
    ck_assert(post_key(&w, "a"));
    journalled_commit(&w.p);
    restart(&w, _i == 1);
    expect_features(&w, "-uu");
    ck_assert(!post_key(&w, "a"));
    delete_queue(&w.f);
    journalled_commit(&w.p);
    restart(&w, _i == 1);
    expect_features(&w, "-uuu"); /* there were keys */
    ck_assert(post_key(&w, "a"));
    close_world(&w);
}

WORLD_TEST(a_checkpoint_keeps_the_keys)
{
    ck_assert(post_key(w, "a"));
    journalled_commit(&w->p);
    for (int i = 0; i < 3; i++) {
        journal_checkpoint(w->p.journal);
        journalled_commit(&w->p);
        restart(w, true);
        ck_assert(!post_key(w, "a"));
    }
}

/* The claim is in the log behind the key that it has freed. */
WORLD_TEST(a_replayed_claim_frees_the_key)
{
    const struct store_unique until = {.key = BYTES_LIT("a"), .until_claimed = true};

    ck_assert(post_unique(w, &until));
    (void)take(&w->f, 1);
    journalled_commit(&w->p);
    restart(w, true);
    ck_assert(post_key(w, "a"));
    ck_assert(!post_key(w, "a"));
}

/* Records with a key come from other requests, too. */
WORLD_TEST(records_with_a_key_that_are_loaded_require_them)
{
    struct store_records records = STORE_RECORDS_INIT;
    struct world other;

    ck_assert(post_key(w, "a"));
    ck_assert_status(store_read(w->f.store, STORE_AT(w->f.now_ms), &w->f.queue, &records),
                     ST_OK);
    open_world(&other);
    ck_assert_status(store_apply(other.f.store, STORE_AT(other.f.now_ms), &other.f.queue,
                                 records.all, records.count),
                     ST_OK);
    store_records_release(&records);
    journalled_commit(&other.p);
    expect_features(&other, "-u");
    restart(&other, true);
    ck_assert(!post_key(&other, "a"));
    close_world(&other);
}

/* ------------------------------------------------------------------ frames */

/* Frames with a key: those with other records than its message and the key, and those
 * without. */
struct frames {
    size_t beside, alone;
};

static void
look_at_frame(struct frames *seen, const uint8_t *bytes, size_t len)
{
    unsigned before = RECORD_TYPES;
    size_t count = 0, keys = 0;

    for (size_t at = 0; at < len; at += record_size(bytes + at, len - at), count++) {
        struct record record;

        ck_assert_status(record_read(bytes + at, len - at, &record), ST_OK);
        if (record.type == STORE_CHANGE_DETAILS) {
            ck_assert_uint_eq(before, STORE_CHANGE_POST); /* its message */
            keys++;
        }
        before = record.type;
    }
    seen->beside += keys > 0 && count > 2;
    seen->alone += keys > 0 && count == 2;
}

static void
look_at_log(struct world *w, struct frames *seen)
{
    const struct names names = segments_of(w);

    for (size_t i = 0; i < names.count; i++) {
        struct segment_head head;
        struct frame frame;
        size_t len;
        uint8_t *bytes = read_segment(w, names.text[i], &len, &head);

        for (size_t at = SEGMENT_HEAD_BYTES;
             frame_read(bytes + at, len - at, head.nonce, &frame);
             at += FRAME_HEAD_BYTES + frame.length)
            look_at_frame(seen, bytes + at + FRAME_HEAD_BYTES, frame.length);
        free(bytes);
    }
}

/* Posts a message with a body of so many bytes. */
static void
post_body(struct world *w, size_t len)
{
    static char body[FRAME];
    struct store_draft draft = {bytes_of(body, len), 3600, 0};
    const struct store_post one = {.drafts = &draft, .count = 1};
    struct store_id id;

    memset(body, '1', sizeof(body));
    ck_assert_status(
        store_message_post(w->f.store, STORE_AT(w->f.now_ms), &w->f.queue, &one, &id),
        ST_OK);
}

TEST_CASE("frames");

/* A crash between two frames never leaves a message without its key. */
START_TEST(a_key_is_in_the_frame_of_its_message)
{
    static char text[STORE_UNIQUE_MAX];
    const struct bytes key = bytes_of(text, sizeof(text));
    struct frames seen = {0, 0};

    memset(text, 'k', sizeof(text));
    for (size_t left = 200; left <= 1100; left += 24) { /* bytes in the first frame */
        struct world w;

        open_world(&w);
        post(&w.f, 1);
        journalled_commit(&w.p);
        post_body(&w, FRAME / 2);
        post_body(&w, FRAME / 2 - left);
        ck_assert(post_keyed(&w, key));
        journalled_commit(&w.p);
        look_at_log(&w, &seen);
        restart(&w, true);
        ck_assert(!post_keyed(&w, key));
        close_world(&w);
    }
    ck_assert_uint_gt(seen.alone, 3);
    ck_assert_uint_gt(seen.beside, 3);
}
