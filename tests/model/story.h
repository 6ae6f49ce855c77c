/*
 * story: random histories of a store with queues, dead letters, subscriptions, and time
 * that passes.
 *
 * All operations depend on the story's dice alone. Some queues are transient, which they
 * stay for life; ids that are used were given out before, or are nonsense.
 */
#ifndef TESTS_MODEL_STORY_H
#define TESTS_MODEL_STORY_H

#include "support/random.h"
#include "support/store_fixture.h"

enum { STORY_QUEUES = 8, STORY_KNOWN = 64, STORY_POST = 4, STORY_KEYS = 3 };

/* Ids that were given out of late, and the queues they belong to. */
struct story_ids {
    struct store_id ids[STORY_KNOWN];
    size_t queues[STORY_KNOWN];
    uint64_t count;
};

struct story {
    struct fixture f; /* filled in by the test */
    struct random random;
    struct story_ids messages, claims, subscriptions;
    uint64_t fences[STORY_QUEUES]; /* largest claim number of a queue of this address */
    uint64_t bodies;
    struct store_key key; /* of the operation under way */
    size_t big_body;      /* bodies are shorter than this; 0: they are numbers only */
};

/* The addresses of the queues: four names in each of two projects. */
struct store_queue story_queue(size_t i);

/* The projects; a NULL stands behind them. */
extern const char *const story_projects[];

/* The keys of unique messages. */
extern const char *const story_keys[STORY_KEYS];

/*
 * Checks that at most one message of each queue holds a key. probe: and that a post with
 * the key finds it, which changes a store in which it is free.
 */
void story_check_keys(struct store *store, int64_t now_ms, bool probe);

/* The other way round. */
size_t story_index(const struct store_queue *queue);

uint64_t story_below(struct story *s, uint64_t n);

/* Does something with a queue; claim numbers must grow. */
enum status story_operate(struct story *s, struct store_op *op, size_t queue);

/* Lets time pass, often to a deadline, or housekeeping come, or neither. */
void story_move_time(struct story *s);

#endif
