/*
 * tally: how often each request had each response, to see what the histories reach.
 */
#ifndef TESTS_SIM_TALLY_H
#define TESTS_SIM_TALLY_H

#include "sim/response.h"

#include <stdio.h>

struct tally {
    uint64_t requests;
    uint64_t restarts;                        /* of the server */
    uint64_t undone;                          /* of those: changes were lost */
    uint64_t held;                            /* responses that waited for the journal */
    uint64_t leased;                          /* deliveries */
    uint64_t moves;                           /* of the clock, by the test API */
    uint64_t done[OP_COUNT], empty[OP_COUNT]; /* 200 and 201; 204 */
    uint64_t refused[OP_COUNT];               /* all other statuses */
    uint64_t unable[OP_COUNT];                /* 503 */
    uint64_t shown[OP_COUNT];                 /* messages in the responses */
    uint64_t waits[OP_COUNT];                 /* runs after which the request waits */
};

/* response NULL: the request waits. */
void tally_count(struct tally *t, const struct operation *op,
                 const struct sim_response *response);
void tally_add(struct tally *to, const struct tally *from);
void tally_print(const struct tally *t, FILE *out);

#endif
