/*
 * known_ids: the ids a series of requests has seen in responses, so that later requests
 * of a fuzz input can name them: "@m0" is the first message id seen, "@c2" the third
 * claim, "@n1" the second marker, "@s0" the first subscription. Numbers are taken modulo
 * what is known.
 */
#ifndef TESTS_FUZZ_KNOWN_IDS_H
#define TESTS_FUZZ_KNOWN_IDS_H

#include "claimd/base/buf.h"
#include "claimd/store/store.h"

enum id_kind { ID_MESSAGE, ID_CLAIM, ID_MARKER, ID_SUBSCRIPTION, ID_KINDS };

enum { KNOWN_IDS_MAX = 64 }; /* of a kind; later ones are not learned */

struct known_ids {
    struct {
        struct store_id ids[KNOWN_IDS_MAX];
        size_t count;
    } kinds[ID_KINDS];
};

/* Learns every id of a response's text that is not known yet, in order. */
void known_ids_learn(struct known_ids *known, struct bytes text);

/* Appends the text with every @-name replaced; an unknown one stays as it is. */
void known_ids_fill(const struct known_ids *known, struct bytes text, struct buf *out);

#endif
