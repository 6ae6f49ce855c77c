#include "sim/history.h"

#include <inttypes.h>

enum { SHOWN = 240 }; /* bytes of a text */

void
history_who(struct sim *sim, const struct actor *who)
{
    if (sim->trace == NULL)
        return;
    if (who == NULL)
        fprintf(sim->trace, "    checker: ");
    else
        fprintf(sim->trace, "    %s %d: ", role_name(who->role), who->number + 1);
}

void
history_wait(struct sim *sim, int64_t ms)
{
    if (sim->trace != NULL && ms > 0)
        fprintf(sim->trace, "  %" PRId64 ".%03d s later\n", ms / 1000, (int)(ms % 1000));
}

static void
write_text(FILE *out, struct bytes text)
{
    size_t len = text.len < SHOWN ? text.len : SHOWN;

    fprintf(out, "%.*s%s", (int)len, text.data, len < text.len ? "..." : "");
}

void
history_request(struct sim *sim, struct trouble trouble, bool starved)
{
    const struct server *s = &sim->server;
    FILE *out = sim->trace;

    if (out == NULL)
        return;
    fprintf(out, "%s %.*s", s->method, (int)s->target.len, s->target.data);
    fprintf(out, "  [%s]", s->caller.headers[API_HEADER_PROJECT_ID]);
    if (s->body.len > 0) {
        fprintf(out, "\n      ");
        write_text(out, buf_view(&s->body));
    }
    if (starved)
        fprintf(out, "\n      (allocation %" PRIu64 " fails)", trouble.starve);
    if (trouble.tight)
        fprintf(out, "\n      (the memory budget is used up)");
    fprintf(out, "\n      -> %d ", s->caller.res.code);
    write_text(out, buf_view(&s->caller.res.body));
    for (size_t i = 0; i < s->caller.res.header_count; i++)
        if (strcmp(s->caller.res.headers[i].name, "Location") == 0) {
            fprintf(out, "\n         Location: ");
            write_text(out, bytes_str(s->caller.res.headers[i].value));
        }
    fprintf(out, "\n");
}

void
history_note(struct sim *sim, const char *text)
{
    if (sim->trace != NULL)
        fprintf(sim->trace, "%s", text);
}
