#include "model/linear/operation.h"

#include <inttypes.h>
#include <stdio.h>

void
operation_print(const struct operation *op)
{
    static const char *const names[LINEAR_KINDS] = {
#define LINEAR_KIND_NAME(name, text) text,
        LINEAR_KIND_LIST(LINEAR_KIND_NAME)
#undef LINEAR_KIND_NAME
    };

    printf("%12" PRId64 " .. %12" PRId64 " us  worker %2u  %s", op->call_ns / 1000,
           op->response_ns / 1000, op->worker, names[op->kind]);
    if (op->message != 0)
        printf(" message %u", op->message);
    if (op->claim != 0)
        printf(" with claim %u", op->claim);
    if (op->kind == LINEAR_FINISH)
        printf("%s, releases %x, posts %u, held %x", op->atomic ? " atomically" : "",
               op->released, op->posted, op->held);
    if (op->unique != 0)
        printf(" unique %u%s", op->unique, op->until_claimed ? " until claimed" : "");
    if (op->kind == LINEAR_PAUSE)
        printf("%s", op->pauses ? " on" : " off");
    if (op->limit != 0)
        printf(" limit %u%s", op->limit, op->include_claimed ? " claimed too" : "");
    if (op->waits)
        printf(" waiting");
    if (op->queued_ns != 0)
        printf(", in the wait queue by %" PRId64 " us", op->queued_ns / 1000);
    if (op->code == 0)
        printf(" -> no response");
    else
        printf(" -> %d", op->code);
    if (op->made != 0)
        printf(" claim %u", op->made);
    if (op->existing != 0)
        printf(" existing %u", op->existing);
    for (size_t i = 0; i < op->count; i++)
        printf("%s%u", i == 0 ? " messages " : ",", op->messages[i]);
    if (op->kind == LINEAR_STATS)
        printf(" claimed %u of %u", op->claimed, op->total);
    printf("\n");
}
