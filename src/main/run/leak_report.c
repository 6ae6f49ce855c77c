#include "main/run/run.h"

#include "claimd/json/tree.h"

#include <string.h>

/* A text of a leak, NULL if it is not known. */
static const char *
text_of(const json_t *leak, const char *name)
{
    return json_string_value(json_object_get(leak, name));
}

static const char *
client_of(const json_t *leak)
{
    const char *client = text_of(leak, "client");

    return client == NULL ? "an unknown client" : client;
}

static bool
write_leak(struct leak_report *r, const json_t *leak)
{
    struct config_errors to = {.to = r->to};
    const char *kind = text_of(leak, "kind"), *queue = text_of(leak, "queue");
    const char *project = text_of(leak, "project"), *at = text_of(leak, "at");
    const char *id = text_of(leak, "id"), *claim = text_of(leak, "claim");
    const char *from = text_of(leak, "from");
    json_int_t messages = json_integer_value(json_object_get(leak, "messages"));
    char where[512];

    if (kind == NULL || queue == NULL || project == NULL || at == NULL)
        return false;
    (void)snprintf(where, sizeof(where), "queue %s (project %s)", queue, project);
    if (strcmp(kind, "claim") == 0 && claim != NULL) {
        if (r->claims++ < LEAK_REPORT_LINES)
            config_error(&to,
                         "leaked: claim %s of %lld message%s in %s, neither finished nor "
                         "released, claimed by %s at %s%s",
                         claim, (long long)messages, messages == 1 ? "" : "s", where,
                         client_of(leak), at, r->of);
    } else if (strcmp(kind, "unread") == 0 && id != NULL) {
        if (r->unread++ < LEAK_REPORT_LINES)
            config_error(&to,
                         "leaked: message %s in %s, never read, posted by %s at %s%s", id,
                         where, client_of(leak), at, r->of);
    } else if (strcmp(kind, "dead_letter") == 0 && id != NULL && from != NULL) {
        if (r->dead_letters++ < LEAK_REPORT_LINES)
            config_error(&to,
                         "leaked: dead letter %s in %s, from queue %s, last claimed by "
                         "%s, moved at %s%s",
                         id, where, from, client_of(leak), at, r->of);
    } else {
        return false;
    }
    return true;
}

static bool
write_page(struct leak_report *r, const json_t *page, char next[LEAK_REPORT_NEXT_CAP])
{
    const json_t *leaks = json_object_get(page, "leaks"), *leak;
    const json_t *link = json_array_get(json_object_get(page, "links"), 0);
    const char *href = text_of(link, "href");
    size_t i;

    if (!json_is_array(leaks))
        return false;
    json_array_foreach(leaks, i, leak)
    {
        if (!write_leak(r, leak))
            return false;
    }
    next[0] = '\0';
    if (link == NULL)
        return true;
    if (href == NULL || strlen(href) >= LEAK_REPORT_NEXT_CAP)
        return false;
    memcpy(next, href, strlen(href) + 1);
    return true;
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
