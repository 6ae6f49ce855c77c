/*
 * store/image: a queue in pieces that show all there is to it, and can be put back, here or into
 * another store.
 *
 * store_queue_image() shows a queue piece by piece, a slice each time: its metadata come with the
 * first piece, then its messages in their order, each with the claim that holds it, then its
 * subscriptions. What store_queue_load() is given may be such a piece, or one that somebody wrote.
 *
 *   Moment    a piece is what was there at visit->now_ms. Others may change the queue between
 *             two pieces: what is shown was there at some time meanwhile
 *   Ids       messages, claims and subscriptions keep theirs. A message loses its number: its
 *             place is where it is loaded. A claim's number for workers is another, larger one
 *   Times     are the store's, as they were: who loads a piece at another time moves them
 *   Not shown what a subscriber has still to get: a subscription that is loaded begins behind all
 *             that is there
 */
#ifndef CLAIMD_STORE_IMAGE_H
#define CLAIMD_STORE_IMAGE_H

#include "claimd/base/mem.h"
#include "claimd/store/types.h"

/* Messages of a piece that is loaded, at most; and how late a time may be, the year 5138. */
enum { STORE_IMAGE_MESSAGES = 1 << 19 };
#define STORE_IMAGE_MS_MOST INT64_C(100000000000000)

/* A claim that holds messages of the piece. */
struct store_image_claim {
    struct store_id
        id; /* load: empty: the store gives it one; else no other has it here */
    int64_t started_ms, ends_ms;
};

struct store_image_message {
    struct store_id id; /* load: likewise */
    size_t claim;       /* 1 + index of the claim that holds it; 0: free */
    struct bytes body;  /* JSON text, or sealed; until the piece is released */
    const struct store_checksum *checksum; /* likewise; NULL: none */
    uint64_t client;
    int64_t posted_ms, expires_ms;
    int64_t delayed_until_ms; /* 0: not delayed */
    uint32_t claim_count;
    void *pin; /* private to the store */
};

struct store_image_subscription {
    struct store_id id; /* load: as that of a claim */
    struct bytes subscriber, options;
    int64_t started_ms, ttl_s;
    bool confirmed;
    bool asked; /* it has still to be asked whether it wants to be told */
    uint64_t delivered, given_up, fallen_out;
    void *pin;
};

struct store_image {
    const struct store *store; /* who must release it; NULL: nothing to release */
    bool first; /* with `metadata`; load: makes the queue, which must not be there */
    struct store_metadata metadata;
    struct store_image_claim *claims;
    size_t claim_count;
    struct store_image_message *messages;
    size_t message_count;
    struct store_image_subscription *subscriptions;
    size_t subscription_count;
    void *pin;
    bool more; /* there may be another piece: ask again with this image, released */
    uint64_t resume
        [3]; /* private to the store; zeros at first; outlives the release, as `more` */
};

#define STORE_IMAGE_INIT                                                                 \
    {                                                                                    \
        .store = NULL                                                                    \
    }

/* What is wrong with a piece. */
struct store_flaw {
    const char *part; /* "messages", "claims", "subscriptions" */
    size_t index;     /* in it */
    const char *member;
    const char *what; /* a sentence that begins with "it" */
};

/*
 * Looks whether a piece could be loaded: ids in the form that every store keeps, no two the
 * same, times that make sense, claims that hold something. ST_BAD_VALUE, with the flaw;
 * ST_NO_MEMORY. O(n log n).
 */
enum status store_image_check(struct mem *mem, const struct store_image *image,
                              struct store_flaw *flaw);

#endif
