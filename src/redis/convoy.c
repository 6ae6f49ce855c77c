#include "redis/convoy.h"

#include <errno.h>
#include <sched.h>

void
convoy_init(struct convoy *c)
{
    lock_init(&c->lock);
    list_init(&c->waiting);
    c->under_way = 0;
}

void
convoy_fini(struct convoy *c)
{
    lock_fini(&c->lock);
}

static struct rider *
pop(struct list *riders)
{
    return container_of(list_pop(riders), struct rider, link);
}

/* Until it is done, or it leads. */
static void
wait_for_turn(struct rider *mine)
{
    while (sem_wait(&mine->turn) != 0)
        ENSURE(errno == EINTR);
}

/* Who waits comes along, as far as there is room. */
static void
gather(struct convoy *c, struct rider *mine, struct list *riders)
{
    size_t count = 1, bytes = mine->bytes;

    list_init(riders);
    list_add_before(riders, &mine->link);
    lock_acquire(&c->lock);
    while (!list_empty(&c->waiting) && count < CONVOY_RIDERS && bytes < CONVOY_BYTES) {
        struct rider *next = pop(&c->waiting);

        list_add_before(riders, &next->link);
        bytes += next->bytes;
        count++;
    }
    lock_release(&c->lock);
}

bool
convoy_join(struct convoy *c, struct rider *mine, bool lingers, struct list *riders)
{
    bool leads;

    ENSURE(sem_init(&mine->turn, 0, 0) == 0);
    mine->leads = false;
    lock_acquire(&c->lock);
    leads = c->under_way < CONVOYS;
    if (leads)
        c->under_way++;
    else
        list_add_before(&c->waiting, &mine->link);
    lock_release(&c->lock);
    if (!leads) {
        wait_for_turn(mine);
        leads = mine->leads;
    }
    (void)sem_destroy(&mine->turn);
    if (!leads)
        return false;
    if (lingers)
        (void)sched_yield();
    gather(c, mine, riders);
    return true;
}

void
convoy_arrive(struct convoy *c, const struct rider *mine, struct list *riders)
{
    struct rider *next = NULL;

    lock_acquire(&c->lock);
    if (list_empty(&c->waiting)) {
        c->under_way--;
    } else {
        next = pop(&c->waiting);
        next->leads = true;
    }
    lock_release(&c->lock);
    if (next != NULL)
        (void)sem_post(&next->turn);
    while (!list_empty(riders)) {
        struct rider *one = pop(riders);

        if (one != mine)
            (void)sem_post(&one->turn);
    }
}
