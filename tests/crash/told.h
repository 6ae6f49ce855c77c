/*
 * told: a change of a store as its log got it (store/log.h), copied.
 *
 * Bodies are known by their hashes. Without memory the program ends, as in all of tests/crash.
 */
#ifndef TESTS_CRASH_TOLD_H
#define TESTS_CRASH_TOLD_H

#include "claimd/store/log.h"
#include "claimd/store/store.h"

enum { TOLD_NAME_CAP = 16, TOLD_JSON_CAP = 32 };

struct told_metadata {
    char json[TOLD_JSON_CAP];
    struct store_settings settings; /* but for the dead letter queue's name: */
    char dead_letter[TOLD_NAME_CAP];
};

struct told_message {
    uint64_t number, old_number, claim;
    struct store_id id;
    uint64_t body; /* its hash */
    size_t body_len;
    bool summed;
    struct store_checksum checksum;
    uint64_t client;
    int64_t posted_ms, expires_ms, delayed_until_ms;
    uint32_t claim_count;
};

struct told {
    struct told *next;
    uint64_t lsn;
    enum store_change_kind kind;
    int64_t now_ms;
    uint32_t tag, target_tag;
    bool transient, target_transient;
    uint64_t fence_base, claim;
    char name[TOLD_NAME_CAP];
    struct told_metadata metadata; /* QUEUE, META */
    struct store_id claim_id;
    int64_t started_ms, ends_ms;
    size_t count;
    struct told_message messages[]; /* count */
};

/* Returns a copy, owned: free() it. The change is left as it is. */
struct told *told_copy(const struct store_change *change);

void told_metadata_copy(struct told_metadata *to, const struct store_metadata *from);
bool told_metadata_same(const struct told_metadata *a, const struct told_metadata *b);

uint64_t told_hash(struct bytes text);

#endif
