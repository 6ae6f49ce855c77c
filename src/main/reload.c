#include "main/reload.h"
#include "main/config_load.h"

static void
compare(struct reload *r, const struct option *option, const struct config *now)
{
    if (option_same(option, &r->next, now))
        return;
    if (option->live) {
        r->changed++;
        return;
    }
    r->kept[r->kept_count++] = option;
    option_copy(option, &r->next, now);
}

enum status
reload_read(struct reload *r, const struct config *now, struct config_errors *errors)
{
    enum status st;

    *r = (struct reload){.changed = 0};
    st = config_reload(now, &r->next, errors);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < option_count; i++)
        compare(r, &options[i], now);
    /* What was good with the new ones need not be with the old ones. */
    return r->kept_count == 0 ? ST_OK : config_check(&r->next, errors);
}

void
reload_take(const struct reload *r, struct config *now)
{
    for (size_t i = 0; i < option_count; i++)
        if (options[i].live)
            option_copy(&options[i], now, &r->next);
}
