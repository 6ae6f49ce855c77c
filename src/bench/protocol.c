#include "bench/protocol.h"

const struct protocol *
protocol_find(const char *name)
{
    static const struct protocol *const all[] = {&protocol_zaqar, &protocol_beanstalk,
                                                 &protocol_redis};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    }
    return NULL;
}

void
protocol_add_body(const struct plan *plan, struct actor *a, struct buf *out)
{
    char number[BODY_NUMBER];

    if (plan->scenario == SCENARIO_DELIVERY)
        hex_write(number, (uint64_t)a->due_ns, BODY_NUMBER);
    else
        hex_write(number, a->serial++, BODY_NUMBER);
    buf_bytes(out, plan->body_head);
    buf_add(out, number, sizeof number);
    buf_bytes(out, plan->body_tail);
}
