/*
 * A journal of the first version, as it was written once (recorded/README.md): every
 * later version can read it, and finds in it what is said here.
 */
#include "support/delete.h"
#include "support/recorded_journal.h"

#include "journal/bodies.h"
#include "journal/record.h"
#include "journal/segment.h"

#include <stdio.h>
#include <stdlib.h>

enum { SECOND_MS = 1000, RECORDED_FILES = 2 };

/* The story as the first version wrote it, the longer story of today, and those with body
 * files and with unique messages. */
static const char first[] = RECORDED "/version-1", previous[] = RECORDED "/version-2",
                  latest[] = RECORDED "/version-3",
                  unloaded[] = RECORDED "/version-2-bodies",
                  unique[] = RECORDED "/version-3-unique";

/* The results that clients got when the journals were written. */
static const char id_of_2[] = "c5097f290000000000000002";
static const char id_of_8[] = "c178728b0000000000000001";
static const char id_of_12[] = "cde765ed0000000000000001";
static const char renewed_claim[] = "f6d877c56353000000000001"; /* it holds 2 */
static const char late_claim[] = "a453dd521489000000000003";    /* it holds 4 */
static const char id_of_unique[] = "c5097f290000000000000003";
static const char unique_claim[] =
    "f558e79c97ad000000000002"; /* it holds 2 of "unique" */
static const char waiting_claim[] = "e1d3019f1418000000000001"; /* 1 to 3 of "waiting" */

/* ------------------------------------------------------------------ directories */

static int
by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The segments and body files of a directory, in their order. */
struct names {
    char text[8][DISK_NAME_CAP];
    size_t count;
};

static void
note_name(void *arg, const char *name)
{
    struct names *names = arg;

    if (strstr(name, ".log") == NULL && strstr(name, BODIES_SUFFIX) == NULL)
        return;
    ck_assert_uint_lt(names->count, sizeof(names->text) / sizeof(names->text[0]));
    strcpy(names->text[names->count++], name);
}

static struct names
files_of(struct disk *d)
{
    struct names names = {.count = 0};

    ck_assert_int_eq(disk_list(d, note_name, &names), 0);
    qsort(names.text, names.count, sizeof(names.text[0]), by_text);
    return names;
}

/* The bytes of a file, which is no longer than a segment; their number in *len. */
static uint8_t *
bytes_of_file(struct disk *d, const char *name, size_t *len)
{
    uint8_t *bytes = malloc(RECORDED_SEGMENT + 1);
    struct disk_file *file = NULL;

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(disk_file_open(d, name, DISK_READ, &file), 0);
    ck_assert_int_eq(disk_read(d, file, 0, bytes, RECORDED_SEGMENT + 1, len), 0);
    disk_close(d, file);
    return bytes;
}

static struct disk *
recorded(const char *folder)
{
    struct disk *d = NULL;

    ck_assert_int_eq(disk_open(folder, false, &d), 0);
    return d;
}

/* A copy of what was recorded, for a process that will write to it. */
static struct sim_disk *
copy_of_the_recorded(const char *folder)
{
    struct sim_disk *copy = sim_disk_new(1);
    struct disk *d = recorded(folder);
    struct names names = files_of(d);

    for (size_t i = 0; i < names.count; i++) {
        size_t len;
        uint8_t *bytes = bytes_of_file(d, names.text[i], &len);

        sim_disk_put(copy, names.text[i], bytes, len);
        free(bytes);
    }
    disk_shut(d);
    return copy;
}

/* Puts the files there instead of those that were recorded. */
static void
record_anew(struct sim_disk *sd, const struct names *names, const char *folder)
{
    struct disk *to = recorded(folder);
    struct names old = files_of(to);

    for (size_t i = 0; i < old.count; i++)
        ck_assert_int_eq(disk_unlink(to, old.text[i]), 0);
    for (size_t i = 0; i < names->count; i++) {
        size_t len;
        void *bytes = sim_disk_get(sd, names->text[i], &len);
        struct disk_file *file = NULL;

        ck_assert_int_eq(disk_file_open(to, names->text[i], DISK_NEW, &file), 0);
        ck_assert_int_eq(disk_write(to, file, 0, bytes, len), 0);
        disk_close(to, file);
        free(bytes);
    }
    disk_shut(to);
}

/* A disk has the bytes that were recorded. */
static void
expect_recorded(struct sim_disk *sd, const char *folder)
{
    struct disk *there = NULL, *here = sim_disk_open(sd);
    struct names names = files_of(here), old;

    if (getenv("CLAIMD_RECORD") != NULL)
        record_anew(sd, &names, folder);
    there = recorded(folder);
    old = files_of(there);
    ck_assert_uint_eq(names.count, old.count);
    for (size_t i = 0; i < names.count; i++) {
        size_t len, old_len;
        uint8_t *bytes = bytes_of_file(here, names.text[i], &len);
        uint8_t *old_bytes = bytes_of_file(there, old.text[i], &old_len);

        ck_assert_str_eq(names.text[i], old.text[i]);
        ck_assert_uint_eq(len, old_len);
        for (size_t at = 0; at < len; at++)
            ck_assert_msg(bytes[at] == old_bytes[at],
                          "%s is another one from byte %zu on: see recorded/README.md",
                          names.text[i], at);
        free(bytes);
        free(old_bytes);
    }
    disk_shut(here);
    disk_shut(there);
}

TEST_CASE("writing");

/* These come first: with CLAIMD_RECORD set, the others read what they have written. */
START_TEST(the_same_story_gives_the_same_bytes)
{
    struct sim_disk *sd = sim_disk_new(1);
    struct recorded_results results;

    recorded_journal_write(sd, &results);
    expect_recorded(sd, latest);
    ck_assert_str_eq(results.ids[2].text, id_of_2);
    ck_assert_str_eq(results.ids[8].text, id_of_8);
    ck_assert_str_eq(results.ids[12].text, id_of_12);
    ck_assert_str_eq(results.renewed.text, renewed_claim);
    ck_assert_str_eq(results.late.text, late_claim);
    sim_disk_free(sd);
}

START_TEST(the_story_of_body_files_gives_the_same_bytes)
{
    struct sim_disk *sd = sim_disk_new(1);
    struct recorded_results results;

    recorded_journal_write_unloaded(sd, &results);
    expect_recorded(sd, unloaded);
    ck_assert_str_eq(results.late.text, waiting_claim);
    sim_disk_free(sd);
}

START_TEST(the_story_of_unique_messages_gives_the_same_bytes)
{
    struct sim_disk *sd = sim_disk_new(1);
    struct recorded_results results;

    recorded_journal_write_unique(sd, &results);
    expect_recorded(sd, unique);
    ck_assert_str_eq(results.ids[3].text, id_of_unique);
    ck_assert_str_eq(results.late.text, unique_claim);
    sim_disk_free(sd);
}

TEST_CASE("bytes");

/* The contents of a journal. */
struct seen {
    size_t types[RECORD_TYPES], marks[MARK_FILE_GONE + 1];
    size_t seals, frames;
    bool delayed, held, original, checksum, key, until_claimed, cause, paused_by;
};

static void
look_at_record(struct seen *seen, struct record *record)
{
    struct store_message_record m;

    ck_assert_uint_lt(record->type, RECORD_TYPES);
    seen->types[record->type]++;
    if (record->type == RECORD_MARK)
        seen->marks[record->mark.what]++;
    seen->paused_by = seen->paused_by || record->metadata.settings.paused_by.len > 0;
    while (record->change.next(&record->change, &m)) {
        seen->delayed = seen->delayed || m.delayed_until_ms != 0;
        seen->held = seen->held || m.claim != NULL;
        seen->original = seen->original || m.original_id;
        seen->checksum = seen->checksum || m.checksum != NULL;
        seen->key = seen->key || (m.details != NULL && m.details->unique.key.len > 0);
        seen->cause = seen->cause || (m.details != NULL && m.details->attempts > 0);
        seen->until_claimed =
            seen->until_claimed || (m.details != NULL && m.details->unique.until_claimed);
    }
}

static void
look_at_segment(struct seen *seen, const uint8_t *bytes, size_t len)
{
    size_t at = SEGMENT_HEAD_BYTES;
    struct segment_head head;
    struct frame frame;

    ck_assert_int_eq(segment_head_read(bytes, &head), SEGMENT_GOOD);
    for (; frame_read(bytes + at, len - at, head.nonce, &frame); seen->frames++) {
        size_t end = at + FRAME_HEAD_BYTES + frame.length;

        seen->seals += (frame.flags & FRAME_SEAL) != 0;
        for (at += FRAME_HEAD_BYTES; at < end; at += record_size(bytes + at, end - at)) {
            struct record record;

            ck_assert_status(record_read(bytes + at, end - at, &record), ST_OK);
            look_at_record(seen, &record);
        }
    }
}

/* Looks at a journal, and at its body files, which have frames as well. */
static struct seen
look_at(const char *folder)
{
    struct disk *d = recorded(folder);
    struct names names = files_of(d);
    struct seen seen = {.frames = 0};

    for (size_t i = 0; i < names.count; i++) {
        size_t len;
        uint8_t *bytes = bytes_of_file(d, names.text[i], &len);

        look_at_segment(&seen, bytes, len);
        free(bytes);
    }
    disk_shut(d);
    return seen;
}

START_TEST(every_type_of_record_is_in_one_of_them)
{
    struct seen seen = look_at(latest);

    for (unsigned type = STORE_CHANGE_QUEUE; type < STORE_CHANGE_RUN; type++)
        ck_assert_msg(seen.types[type] > 0, "no %s", record_type_name(type));
    for (int mark = MARK_OPENED; mark <= MARK_CLOSED; mark++)
        ck_assert_msg(seen.marks[mark] > 0, "no mark %d", mark);
    ck_assert_uint_eq(seen.seals, 1); /* of the peaceful end */
    ck_assert(seen.delayed && seen.held && seen.original && seen.checksum && seen.cause);
    seen = look_at(previous);
    ck_assert(seen.types[STORE_CHANGE_DETAILS] > 0 && !seen.cause);
    seen = look_at(unloaded);
    ck_assert_uint_ge(seen.types[STORE_CHANGE_RUN], 3);
    ck_assert_uint_eq(seen.marks[MARK_FILE_GONE], 1);
    ck_assert(!seen.key);
    seen = look_at(unique);
    ck_assert(seen.key && seen.until_claimed && seen.paused_by);
}

/* ------------------------------------------------------------------ reading */

static struct recorder r;

/* A process starts on a copy, 800 seconds after the story's beginning. */
static void
start_with(const char *folder, bool unload)
{
    r = (struct recorder){
        .process = {.disk = copy_of_the_recorded(folder), .unload = unload, .seed = 99},
        .f = {.now_ms = START_MS + 800 * SECOND_MS,
              .client = 8,
              .queue = {.project = bytes_str("p")}}};
    recorder_start(&r);
}

static void
start(void)
{
    start_with(first, false);
}

static void
stop(void)
{
    recorder_stop(&r);
    sim_disk_free(r.process.disk);
}

/* The messages shown last have these bodies, in this order: "2 4". */
static void
expect_bodies(const char *bodies)
{
    char shown[128] = "";
    size_t len = 0;

    for (size_t i = 0; i < r.f.seen.count; i++) {
        struct bytes body = r.f.seen.messages[i].body;

        len += (size_t)snprintf(shown + len, sizeof(shown) - len, "%s%.*s",
                                i == 0 ? "" : " ", (int)body.len, body.data);
        ck_assert_uint_lt(len, sizeof(shown));
    }
    ck_assert_str_eq(shown, bodies);
}

static const struct store_message *
first_seen(void)
{
    ck_assert_uint_ge(r.f.seen.count, 1);
    return &r.f.seen.messages[0];
}

static void
get_text(const char *id)
{
    const struct bytes ids[] = {bytes_str(id)};

    store_batch_release(&r.f.seen);
    ck_assert_status(
        store_message_get(r.f.store, STORE_AT(r.f.now_ms), &r.f.queue, ids, 1, &r.f.seen),
        ST_OK);
}

TEST_CASE("reading", .setup = start, .teardown = stop);

START_TEST(all_queues_are_there_but_the_deleted_one)
{
    const struct store_page page = {.project = bytes_str("p"), .limit = 100};
    struct store_queues found = STORE_QUEUES_INIT;
    char names[128] = "";
    size_t len = 0;

    ck_assert_status(store_queue_list(r.f.store, STORE_AT(r.f.now_ms), &page, &found),
                     ST_OK);
    for (size_t i = 0; i < found.count; i++)
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%.*s ",
                                (int)found.queues[i].name.len, found.queues[i].name.data);
    ck_assert_str_eq(names, "careless fleeting jobs letters news purged strict tuned ");
    store_queues_release(&found);
    ck_assert(!r.process.recovery.torn);
    ck_assert_uint_eq(r.process.recovery.segments, RECORDED_FILES);
    ck_assert_int_eq(r.process.recovery.last_ms, START_MS + 660 * SECOND_MS);
}

START_TEST(messages_are_there_in_their_order_with_their_ids)
{
    use(&r.f, "jobs");
    list_all(&r.f);
    expect_bodies("2 4 6 7 19");
    ck_assert_str_eq(first_seen()->id.text, id_of_2);
    ck_assert_int_eq(first_seen()->age_s, 800);
    list_ready(&r.f);
    expect_bodies("7 19");
    ck_assert_ptr_nonnull(first_seen()->checksum);
    ck_assert_int_eq(first_seen()->checksum->digest[15], 16);
    ck_assert_ptr_null(r.f.seen.messages[1].checksum);
}

START_TEST(the_producer_of_a_message_is_recovered)
{
    struct store_filter filter = {.limit = 10, .hide_client = true, .client = 7};

    use(&r.f, "jobs");
    list(&r.f, &filter);
    expect_bodies("");
    filter.client = 8;
    list(&r.f, &filter);
    expect_bodies("7 19");
}

START_TEST(queues_of_one_name_in_other_projects_are_others)
{
    use(&r.f, "jobs");
    use_project(&r.f, "other");
    list_all(&r.f);
    expect_bodies("17");
    use_project(&r.f, "");
    list_all(&r.f);
    expect_bodies("18");
}

START_TEST(a_renewed_claim_holds_on_until_its_end)
{
    struct store_id claim = text_id(renewed_claim);

    use(&r.f, "jobs");
    ck_assert_status(query(&r.f, claim), ST_OK);
    expect_bodies("2");
    ck_assert_int_eq(first_seen()->claim_count, 1);
    ck_assert_int_eq(first_seen()->ttl_s, 4260); /* 60 s, the claim and its grace */
    ck_assert_int_eq(r.f.seen.claim_ttl_s, 4000);
    ck_assert_int_eq(r.f.seen.claim_age_s, 740);
    /* The queue was made at START_MS: docs/engine.md, "Claim numbers". */
    ck_assert_uint_eq(r.f.seen.claim_number, ((uint64_t)START_MS << 12) + 1);
    get_text(id_of_2);
    ck_assert_str_eq(first_seen()->claim_id.text, renewed_claim);
    wait_s(&r.f, 4060 - 800);
    ck_assert_status(query(&r.f, claim), ST_NOT_FOUND);
    list_ready(&r.f);
    expect_bodies("2 6");
}

START_TEST(only_the_claim_of_a_message_deletes_it)
{
    const struct bytes id = bytes_str(id_of_2);

    use(&r.f, "jobs");
    ck_assert_status(
        delete_message(r.f.store, STORE_AT(r.f.now_ms), &r.f.queue, id, BYTES_NONE),
        ST_CLAIMED);
    ck_assert_status(delete_message(r.f.store, STORE_AT(r.f.now_ms), &r.f.queue, id,
                                    bytes_str(renewed_claim)),
                     ST_OK);
    list_all(&r.f);
    expect_bodies("4 6 7 19");
}

START_TEST(a_claim_after_the_checkpoint_counts_those_before)
{
    use(&r.f, "jobs");
    ck_assert_status(query(&r.f, text_id(late_claim)), ST_OK);
    expect_bodies("4");
    ck_assert_int_eq(first_seen()->claim_count, 2);
    ck_assert_uint_eq(r.f.seen.claim_number, ((uint64_t)START_MS << 12) + 3);
    (void)take(&r.f, 1);
    ck_assert_uint_eq(r.f.seen.claim_number, ((uint64_t)START_MS << 12) + 4);
}

START_TEST(a_delay_ends_when_it_would_have)
{
    use(&r.f, "jobs");
    wait_ms(&r.f, 100 * SECOND_MS - 1);
    list_ready(&r.f);
    expect_bodies("7 19");
    wait_ms(&r.f, 1);
    list_ready(&r.f);
    expect_bodies("6 7 19");
}

START_TEST(a_claim_that_ended_meanwhile_is_over)
{
    use(&r.f, "strict");
    list_ready(&r.f);
    expect_bodies(""); /* 13 was on its last attempt, and is in "letters" */
}

START_TEST(dead_letters_have_moved_with_their_ids)
{
    use(&r.f, "letters");
    list_ready(&r.f);
    expect_bodies("12 20 13"); /* 20 came from a queue in memory, and was kept */
    ck_assert_str_eq(first_seen()->id.text, id_of_12);
    ck_assert_int_eq(first_seen()->ttl_s, 86400);
    ck_assert_int_eq(first_seen()->claim_count, 0);
    get_text(id_of_12);
    expect_bodies("12");
    use(&r.f, "strict");
    get_text(id_of_12);
    expect_bodies("");
}

START_TEST(purged_and_deleted_messages_are_not_recovered)
{
    use(&r.f, "purged");
    list_all(&r.f);
    expect_bodies("11");
    use(&r.f, "gone");
    post(&r.f, 1);
    get_text(id_of_8); /* of the queue that had this name */
    expect_bodies("");
    list_all(&r.f);
    expect_bodies("1");
}

START_TEST(metadata_are_as_they_were_changed)
{
    struct store_queues found = STORE_QUEUES_INIT;
    const struct store_metadata *md;

    use(&r.f, "tuned");
    ck_assert_status(store_queue_get(r.f.store, STORE_AT(r.f.now_ms), &r.f.queue, &found),
                     ST_OK);
    md = &found.queues[0].metadata;
    ck_assert(bytes_equal_str(md->json, "{\"colour\": \"gr\xc3\xbcn\"}"));
    ck_assert_int_eq(md->settings.max_post_bytes, 1000);
    ck_assert_int_eq(md->settings.message_ttl_s, 120);
    ck_assert_int_eq(md->settings.message_delay_s, 5);
    ck_assert_int_eq(md->settings.claim_ttl_s, STORE_UNSET); /* not in older journals */
    ck_assert_int_eq(md->settings.claim_grace_s, STORE_UNSET);
    ck_assert_int_eq(md->settings.max_claim_count, 1);
    ck_assert_int_eq(md->settings.dead_letter_ttl_s, 86400);
    ck_assert(bytes_equal_str(md->settings.dead_letter, "letters"));
    ck_assert(!md->settings.transient);
    store_queues_release(&found);
}

/* It was leased 2^20 numbers by each of the two processes, and has another tag now. */
START_TEST(a_queue_in_memory_is_empty_and_goes_on_behind_its_numbers)
{
    struct store_queues found = STORE_QUEUES_INIT;

    use(&r.f, "fleeting");
    list_all(&r.f);
    expect_bodies(""); /* 22 moved into it, and is gone as well */
    ck_assert_status(store_queue_get(r.f.store, STORE_AT(r.f.now_ms), &r.f.queue, &found),
                     ST_OK);
    ck_assert(found.queues[0].metadata.settings.transient);
    store_queues_release(&found);
    post(&r.f, 1);
    ck_assert_str_eq(r.f.ids[1].text + 8, "0000000000200001");
    use(&r.f, "careless");
    list_all(&r.f);
    expect_bodies("");
}

START_TEST(a_recovered_journal_can_be_compacted_and_recovered_again)
{
    recorder_commit(&r);
    journal_checkpoint(r.process.journal);
    recorder_commit(&r);
    recorder_stop(&r);
    recorder_start(&r);
    ck_assert_uint_eq(r.process.recovery.segments,
                      1); /* those that were recorded are gone */
    use(&r.f, "jobs");
    list_all(&r.f);
    expect_bodies("2 4 6 7 19");
    ck_assert_status(query(&r.f, text_id(renewed_claim)), ST_OK);
    expect_bodies("2");
    use(&r.f, "letters");
    list_ready(&r.f);
    expect_bodies("12 20 13");
}

TEST_CASE("reading body files", .times = 2);

/* Lists "waiting" in pages, without 1 to 3 and 50. */
static void
expect_waiting(void)
{
    struct store_filter filter = {.limit = 40};
    struct store_id last;
    size_t next = 4;

    use(&r.f, "waiting");
    do {
        list(&r.f, &filter);
        for (size_t i = 0; i < r.f.seen.count; i++, next++) {
            char body[12];

            next += next == 50;
            (void)snprintf(body, sizeof(body), "%zu", next);
            ck_assert(bytes_equal_str(r.f.seen.messages[i].body, body));
            last = r.f.seen.messages[i].id;
        }
        filter.marker = store_id_bytes(&last);
    } while (r.f.seen.count > 0);
    ck_assert_uint_eq(next, 102);
}

/* 1: the process unloads messages as well. */
START_TEST(unloaded_messages_are_there_in_their_order)
{
    start_with(unloaded, _i == 1);
    expect_waiting();
    ck_assert_status(query(&r.f, text_id(waiting_claim)), ST_OK);
    expect_bodies("1 2 3");
    use(&r.f, "passing");
    list_all(&r.f);
    expect_bodies("");
    use(&r.f, "again");
    list_all(&r.f);
    expect_bodies("108 109 110 111 112 113 114 115 116 117");
    recorder_commit(&r);
    journal_checkpoint(r.process.journal);
    recorder_commit(&r);
    recorder_stop(&r);
    recorder_start(&r);
    expect_waiting();
    stop();
}

TEST_CASE("reading keys");

/* The key of a message; empty: it has none. */
static struct bytes
key_of(const char *id)
{
    const struct store_details *d;

    get_text(id);
    d = first_seen()->details;
    return d == NULL ? BYTES_NONE : d->unique.key;
}

/* Posts a message with this key. Returns the id of the message that has it. */
static struct store_id
holder_of(const char *key, bool existing)
{
    const struct store_unique wanted = {.key = bytes_str(key)};
    const struct store_draft draft = {BYTES_LIT("new"), 3600, 0};
    const struct store_post request = {.drafts = &draft, .count = 1, .unique = &wanted};
    struct store_op op = {.now_ms = r.f.now_ms};
    struct store_id id;

    ck_assert_status(store_message_post(r.f.store, &op, &r.f.queue, &request, &id),
                     ST_OK);
    ck_assert_int_eq(op.existing, existing);
    return id;
}

START_TEST(messages_hold_their_keys)
{
    struct store_id holder;

    start_with(unique, false);
    use(&r.f, "unique");
    ck_assert_status(query(&r.f, text_id(unique_claim)), ST_OK);
    expect_bodies("2");
    ck_assert(first_seen()->details == NULL ||
              first_seen()->details->unique.key.len == 0); /* the claim has freed it */
    list_ready(&r.f);
    expect_bodies("3 4");
    ck_assert(bytes_equal_str(key_of(id_of_unique), "for-good"));
    holder = holder_of("for-good", true);
    ck_assert_str_eq(holder.text, id_of_unique);
    holder = holder_of("until-claimed", true);
    get_text(holder.text);
    expect_bodies("4");
    ck_assert(first_seen()->details->unique.until_claimed);
    stop();
}

START_TEST(a_paused_queue_names_its_client)
{
    struct store_queues queues = STORE_QUEUES_INIT;

    start_with(unique, false);
    use(&r.f, "paused");
    ck_assert_status(
        store_queue_get(r.f.store, STORE_AT(r.f.now_ms), &r.f.queue, &queues), ST_OK);
    ck_assert_uint_eq(queues.queues[0].metadata.settings.paused, STORE_PAUSE_POSTS);
    ck_assert(bytes_equal_str(queues.queues[0].metadata.settings.paused_by, PAUSED_BY));
    store_queues_release(&queues);
    stop();
}
