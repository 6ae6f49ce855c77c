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
        fprintf(sim->trace, "    %s %d: ", part_name(who->part), who->number + 1);
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

static bool
is_shown(const char *header)
{
    return strcmp(header, "Location") == 0 || strcmp(header, "Claim-Number") == 0 ||
           strcmp(header, "Idempotent-Replay") == 0 ||
           strcmp(header, "Claimd-Unique") == 0;
}

void
history_request(struct sim *sim, struct trouble trouble, bool starved)
{
    const struct exchanged *said = &sim->server.last;
    FILE *out = sim->trace;

    if (out == NULL)
        return;
    fprintf(out, "%s %.*s", said->method, (int)said->target.len, said->target.data);
    fprintf(out, "  [%s]", said->project);
    if (said->key != NULL)
        fprintf(out, "  Idempotency-Key: %s", said->key);
    if (said->unique != NULL)
        fprintf(out, "  Claimd-Unique: %s", said->unique);
    if (said->body.len > 0) {
        fprintf(out, "\n      ");
        write_text(out, said->body);
    }
    if (starved)
        fprintf(out, "\n      (allocation %" PRIu64 " fails)", trouble.starve);
    if (trouble.tight)
        fprintf(out, "\n      (the memory budget is used up)");
    if (said->waits) {
        fprintf(out, "\n      -> (waits)\n");
        return;
    }
    fprintf(out, "\n      -> %d ", said->res->code);
    write_text(out, buf_view(&said->res->body));
    for (size_t i = 0; i < said->res->header_count; i++)
        if (is_shown(said->res->headers[i].name)) {
            fprintf(out, "\n         %s: ", said->res->headers[i].name);
            write_text(out, bytes_str(said->res->headers[i].value));
        }
    fprintf(out, "\n");
}

void
history_note(struct sim *sim, const char *text)
{
    if (sim->trace != NULL)
        fprintf(sim->trace, "%s", text);
}
