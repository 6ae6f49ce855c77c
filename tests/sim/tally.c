#include "sim/tally.h"

#include <inttypes.h>

void
tally_count(struct tally *t, const struct operation *op,
            const struct sim_response *response)
{
    t->requests++;
    if (response == NULL) {
        t->waits[op->kind]++;
        return;
    }
    t->shown[op->kind] += response->count + response->posted_count;
    if (response->code == 503)
        t->unable[op->kind]++;
    else if (response->code >= 400)
        t->refused[op->kind]++;
    else if (response->code == 204)
        t->empty[op->kind]++;
    else
        t->done[op->kind]++;
}

void
tally_add(struct tally *to, const struct tally *from)
{
    to->requests += from->requests;
    to->restarts += from->restarts;
    to->undone += from->undone;
    to->held += from->held;
    to->leased += from->leased;
    to->moves += from->moves;
    for (int i = 0; i < OP_COUNT; i++) {
        to->done[i] += from->done[i];
        to->empty[i] += from->empty[i];
        to->refused[i] += from->refused[i];
        to->unable[i] += from->unable[i];
        to->shown[i] += from->shown[i];
        to->waits[i] += from->waits[i];
    }
}

void
tally_print(const struct tally *t, FILE *out)
{
    fprintf(out, "%-14s %10s %10s %10s %10s %10s %10s\n", "request", "200, 201", "204",
            "others", "503", "waits", "messages");
    for (int i = 0; i < OP_COUNT; i++)
        fprintf(out,
                "%-14s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64
                " %10" PRIu64 "\n",
                operation_name((enum op_kind)i), t->done[i], t->empty[i], t->refused[i],
                t->unable[i], t->waits[i], t->shown[i]);
}
