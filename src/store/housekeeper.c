#include "claimd/store/housekeeper.h"

/*
 * A store of many shards has many deadlines to read, and under load a worker is about to
 * sleep 10 000 times a second. So it reads them at most every ASK_MS. A worker that
 * becomes idle therefore wakes up once more, that much later.
 */
enum { ASK_MS = 2 };

/*
 * The timeouts of the kernel do not advance while the machine is suspended, but the clock
 * of the store does. So a worker that sleeps until a deadline looks at the clock this
 * often.
 */
enum { LOOK_MS = 30000 };

int64_t
housekeeping_step(struct housekeeping *h, int64_t real_ms)
{
    struct housekeeper *shared = h->shared;
    int64_t now_ms, next_ms, after_ms, trim_ms, sleep_ms;

    if (h->asked_ms != INT64_MIN && real_ms - h->asked_ms < ASK_MS)
        return ASK_MS;
    h->asked_ms = real_ms;
    now_ms = clock_now_ms(shared->clock);
    next_ms = store_next_ms(shared->store);
    if (next_ms <= now_ms) {
        if (atomic_exchange(&shared->busy, true))
            return ASK_MS; /* the busy worker may leave what becomes due meanwhile */
        store_housekeep(shared->store, now_ms, &next_ms);
        atomic_store(&shared->busy, false);
        housekeeping_hurry(h);
        /* A thread that made something due meanwhile may have found this worker busy, or
         * asleep. */
        after_ms = store_next_ms(shared->store);
        if (next_ms > after_ms)
            next_ms = after_ms;
    }
    if (next_ms <= now_ms)
        return 0;
    trim_ms = trimmer_step(&shared->trimmer, real_ms);
    if (next_ms == INT64_MAX || clock_stands(shared->clock))
        return trim_ms;
    sleep_ms = next_ms - now_ms < LOOK_MS ? next_ms - now_ms : LOOK_MS;
    return trim_ms >= 0 && trim_ms < sleep_ms ? trim_ms : sleep_ms;
}

void
housekeeping_hurry(struct housekeeping *h)
{
    h->asked_ms = INT64_MIN;
}
