#include "notify/parcel.h"

struct parcel *
parcel_new(struct mem *mem, const struct store_delivery *lent)
{
    struct parcel *p = mem_calloc(mem, 1, sizeof(*p));

    if (p == NULL)
        return NULL;
    p->lent = *lent;
    target_read(lent->subscriber, &p->target);
    buf_init(&p->url, mem);
    buf_init(&p->text, mem);
    return p;
}

void
parcel_free(struct mem *mem, struct parcel *p)
{
    ENSURE(p->handle == NULL && !list_linked(&p->link));
    buf_fini(&p->url);
    buf_fini(&p->text);
    mem_free(mem, p);
}
