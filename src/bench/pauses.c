#include "bench/pauses.h"

void
pauses_add(struct pauses *p, struct connection *c)
{
    struct connection *before = p->last;

    while (before != NULL && before->resume_ns > c->resume_ns)
        before = before->earlier;
    c->earlier = before;
    c->later = before == NULL ? p->first : before->later;
    *(c->earlier == NULL ? &p->first : &c->earlier->later) = c;
    *(c->later == NULL ? &p->last : &c->later->earlier) = c;
}

void
pauses_remove(struct pauses *p, struct connection *c)
{
    *(c->earlier == NULL ? &p->first : &c->earlier->later) = c->later;
    *(c->later == NULL ? &p->last : &c->later->earlier) = c->earlier;
    c->earlier = NULL;
    c->later = NULL;
}
