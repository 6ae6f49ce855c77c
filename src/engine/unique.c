#include "engine/unique.h"
#include "engine/claim.h"

struct message *
unique_find(const struct queue *q, struct bytes key, int64_t now_ms)
{
    struct message *m =
        backlog_find_key(q->backlog, key, core_text_hash(q->shard->core, key));

    if (m == NULL || !message_live(m, now_ms))
        return NULL;
    return m->claim != NULL && m->claim->due.due_ms <= now_ms &&
                   dies_with_claim(m->claim, m)
               ? NULL
               : m;
}

void
unique_hold(struct queue *q, struct message *m)
{
    if (message_key(m).len > 0)
        backlog_hold_key(q->backlog, m, core_text_hash(q->shard->core, message_key(m)));
}
