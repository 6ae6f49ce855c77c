#include "main/watchdog.h"

#include "claimd/base/bytes.h"

/* LATE_PART: of the pace, after which one who is late is looked at again. */
enum { USEC_PER_MS = 1000, LATE_PART = 8 };

bool
watchdog_init(struct watchdog *w, const char *usec, const char *pid, int64_t self)
{
    int64_t patience_us, watched;

    *w = (struct watchdog){.look_ms = 0};
    if (usec == NULL)
        return true;
    if (pid != NULL && !bytes_to_i64(bytes_str(pid), &watched))
        return false;
    if (!bytes_to_i64(bytes_str(usec), &patience_us) || patience_us <= 0)
        return false;
    if (pid != NULL && watched != self)
        return true; /* meant for whoever started us: it was not taken out */
    w->look_ms = patience_us / 2 / USEC_PER_MS;
    if (w->look_ms == 0)
        w->look_ms = 1;
    return true;
}

int64_t
watchdog_look(struct watchdog *w, const struct supervisor *s,
              const struct watchdog_rounds *rounds)
{
    if (w->look_ms == 0 || !s->wanted)
        return -1;
    if (w->asked && !rounds->all_went(rounds->ctx))
        return w->look_ms / LATE_PART + 1;
    /* Not told: nobody reads. The next look tells again, before it is too late. */
    if (w->asked)
        (void)supervisor_send(s, "WATCHDOG=1");
    rounds->ask(rounds->ctx);
    w->asked = true;
    return w->look_ms;
}
