/*
 * claims: those of a queue in the document of a state, which messages refer to by what they are
 * called there: an id of a claim that is kept, or any text.
 */
#ifndef API_WIRE_STATE_CLAIMS_H
#define API_WIRE_STATE_CLAIMS_H

#include "api/wire/state/doc.h"

/* What a claim is called. */
struct state_claim_name {
    struct bytes text;
    size_t index;
};

/* The claims of a queue. */
struct state_claims {
    struct store_image *image;      /* out: claims, claim_count */
    struct state_claim_name *names; /* sorted once they are all there */
};

enum status
state_claim_read(struct state_decoder *d, const struct doc_at *at, struct bytes text,
                 struct bytes *name, struct store_image_claim *out);

enum status state_claims_read(struct state_decoder *d, const struct doc_at *up,
                              const struct doc_member *m, struct state_claims *r);

/* 1 + index of the claim of this name; 0: there is none. O(log claims). */
size_t state_claims_find(const struct state_claims *r, struct bytes name);

#endif
