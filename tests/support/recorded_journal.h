/*
 * recorded_journal: the story that is in tests/unit/journal/recorded, once more.
 *
 * Two processes one after the other, on one disk, with every type of record between them.
 * The same seeds give the same bytes, as long as neither the format nor what the engine
 * draws from its seed is changed. Times are from START_MS on.
 *
 *     0 s      "jobs" gets the messages 1 to 7; claims, a deletion, a pop
 *     60 s     a claim is renewed; more queues, 8 to 18; a checkpoint; 19; a peaceful end
 *     660 s    the other process: 20 to 22, dead letters; then a power cut
 *
 * The story of version-2-bodies is another one, of messages that leave memory:
 *
 *     0 s      "waiting" gets 1 to 101, which are in a body file after a checkpoint
 *     60 s     the other process: 1 to 3 are claimed, 50 is deleted; the body file of
 *              "passing" is removed, "again" gets 108 to 117; then a power cut
 *
 * And that of version-3-unique, of messages with keys:
 *
 *     0 s      1 has no key; 2 has one until it is claimed, and is claimed; 3 has one and
 *              is a dead letter; a checkpoint; 3 goes back; a peaceful end
 *     60 s     the other process: 4 gets the key of 2; "paused" is paused; then a power
 *              cut
 */
#ifndef TESTS_SUPPORT_RECORDED_JOURNAL_H
#define TESTS_SUPPORT_RECORDED_JOURNAL_H

#include "support/journalled.h"
#include "support/store_fixture.h"

enum { RECORDED_SEGMENT = 16 * 1024 }; /* bytes */

/* One process with a store and a journal; zero but for its disk and `f.now_ms` before. */
struct recorder {
    struct journalled process;
    struct fixture f;
};

/* The process begins; ck_assert()s that it can. */
void recorder_start(struct recorder *r);

/* It ends in peace, or because its disk is dead. */
void recorder_stop(struct recorder *r);

/* All that has happened is durable. */
void recorder_commit(struct recorder *r);

/* The responses that its clients received. */
struct recorded_results {
    struct store_id ids[23]; /* of the messages, by their numbers */
    struct store_id renewed; /* the claim that holds 2 */
    struct store_id late;    /* the one that holds 4 */
};

/* Tells the story on an empty disk. */
void recorded_journal_write(struct sim_disk *disk, struct recorded_results *results);

/* The same for version-3-unique: `late` holds 2. */
void
recorded_journal_write_unique(struct sim_disk *disk, struct recorded_results *results);

/* The same for version-2-bodies: `late` holds 1 to 3. */
void
recorded_journal_write_unloaded(struct sim_disk *disk, struct recorded_results *results);

#endif
