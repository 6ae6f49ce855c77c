#include "main/run/leak_report.h"

#include "claimd/json/tree.h"
#include "main/config_errors.h"

#include <string.h>

/* ------------------------------------------------------------------ lines */

/* A text of a leak, NULL if it is not known. */
static const char *
text_of(const json_t *leak, const char *name)
{
    return json_string_value(json_object_get(leak, name));
}

static const char *
who(const json_t *leak)
{
    const char *client = text_of(leak, "client");

    return client == NULL ? "an unknown client" : client;
}

static bool
write_claim(struct leak_report *r, const json_t *leak, const char *where)
{
    struct config_errors to = {.to = r->to};
    json_int_t messages = json_integer_value(json_object_get(leak, "messages"));

    if (text_of(leak, "claim") == NULL)
        return false;
    if (r->claims++ < LEAK_REPORT_LINES)
        config_error(&to,
                     "leaked: claim %s of %lld message%s in %s, neither finished nor "
                     "released, claimed by %s at %s%s",
                     text_of(leak, "claim"), (long long)messages,
                     messages == 1 ? "" : "s", where, who(leak), text_of(leak, "at"),
                     r->of);
    return true;
}

static bool
write_unread(struct leak_report *r, const json_t *leak, const char *where)
{
    struct config_errors to = {.to = r->to};

    if (text_of(leak, "id") == NULL)
        return false;
    if (r->unread++ < LEAK_REPORT_LINES)
        config_error(&to, "leaked: message %s in %s, never read, posted by %s at %s%s",
                     text_of(leak, "id"), where, who(leak), text_of(leak, "at"), r->of);
    return true;
}

static bool
write_dead_letter(struct leak_report *r, const json_t *leak, const char *where)
{
    struct config_errors to = {.to = r->to};

    if (text_of(leak, "id") == NULL || text_of(leak, "from") == NULL)
        return false;
    if (r->dead_letters++ < LEAK_REPORT_LINES)
        config_error(
            &to,
            "leaked: dead letter %s in %s, from queue %s, last claimed by %s, moved "
            "at %s%s",
            text_of(leak, "id"), where, text_of(leak, "from"), who(leak),
            text_of(leak, "at"), r->of);
    return true;
}

static bool
write_leak(struct leak_report *r, const json_t *leak)
{
    const char *kind = text_of(leak, "kind"), *queue = text_of(leak, "queue");
    const char *project = text_of(leak, "project");
    char where[512];

    if (kind == NULL || queue == NULL || project == NULL || text_of(leak, "at") == NULL)
        return false;
    (void)snprintf(where, sizeof(where), "queue %s (project %s)", queue, project);
    if (strcmp(kind, "claim") == 0)
        return write_claim(r, leak, where);
    if (strcmp(kind, "unread") == 0)
        return write_unread(r, leak, where);
    return strcmp(kind, "dead_letter") == 0 && write_dead_letter(r, leak, where);
}

/* ------------------------------------------------------------------ pages */

static bool
read_next(const json_t *page, char next[LEAK_REPORT_NEXT_CAP])
{
    const json_t *link = json_array_get(json_object_get(page, "links"), 0);
    const char *href = text_of(link, "href");

    next[0] = '\0';
    if (link == NULL)
        return true;
    if (href == NULL || strlen(href) >= LEAK_REPORT_NEXT_CAP)
        return false;
    memcpy(next, href, strlen(href) + 1);
    return true;
}

static bool
write_page(struct leak_report *r, const json_t *page, char next[LEAK_REPORT_NEXT_CAP])
{
    const json_t *leaks = json_object_get(page, "leaks"), *leak;
    size_t i;

    if (!json_is_array(leaks))
        return false;
    json_array_foreach(leaks, i, leak)
    {
        if (!write_leak(r, leak))
            return false;
    }
    return read_next(page, next);
}

bool
leak_report_page(struct leak_report *r, struct bytes page,
                 char next[LEAK_REPORT_NEXT_CAP])
{
    json_t *tree;
    bool good;

    if (json_tree_read(page, &tree) != ST_OK)
        return false;
    good = write_page(r, tree, next);
    json_decref(tree);
    return good;
}

size_t
leak_report_count(const struct leak_report *r)
{
    return r->claims + r->unread + r->dead_letters;
}

static const char *
plural(size_t count)
{
    return count == 1 ? "" : "s";
}

void
leak_report_sum_up(const struct leak_report *r)
{
    struct config_errors to = {.to = r->to};
    const size_t all = leak_report_count(r);

    if (all > 0)
        config_error(
            &to, "%zu leak%s: %zu claim%s, %zu message%s never read, %zu dead letter%s",
            all, plural(all), r->claims, plural(r->claims), r->unread, plural(r->unread),
            r->dead_letters, plural(r->dead_letters));
}
