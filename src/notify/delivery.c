#include "notify/delivery.h"

#include <stdio.h>

static const struct scheme {
    struct bytes text;
    enum target_kind kind;
} schemes[] = {
    {BYTES_LIT("http://"), TARGET_WEB},
    {BYTES_LIT("https://"), TARGET_WEB},
    {BYTES_LIT("mailto:"), TARGET_MAIL},
    {BYTES_LIT("trust+http://"), TARGET_TRUST},
    {BYTES_LIT("trust+https://"), TARGET_TRUST},
};

/* Host and port: what is between the last @ in front of the path and the path. */
static struct bytes
host_of(struct bytes rest)
{
    struct bytes host = rest;

    for (size_t i = 0; i < rest.len; i++) {
        /* Some readers of URIs take a backslash for a slash, so nothing behind it is shown. */
        if (strchr("/?#\\", rest.data[i]) != NULL) {
            host.len = (size_t)(rest.data + i - host.data);
            return host;
        }
        if (rest.data[i] == '@')
            host = bytes_of(rest.data + i + 1, rest.len - i - 1);
    }
    return host;
}

void
target_read(struct bytes uri, struct target *out)
{
    *out = (struct target){.kind = TARGET_OTHER, .rest = uri};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        const struct scheme *s = &schemes[i];
        struct bytes host = bytes_str("");

        if (uri.len < s->text.len ||
            !bytes_equal_nocase(bytes_of(uri.data, s->text.len), s->text))
            continue;
        out->kind = s->kind;
        out->rest = bytes_of(uri.data + s->text.len, uri.len - s->text.len);
        if (s->kind != TARGET_MAIL)
            host = host_of(out->rest);
        (void)snprintf(out->place, sizeof(out->place), "%s%.*s", s->text.data,
                       (int)host.len, host.data);
        for (char *c = out->place; *c != '\0'; c++)
            if (*c >= 'A' && *c <= 'Z')
                *c = (char)(*c - 'A' + 'a');
        return;
    }
}

struct delivery *
delivery_new(struct mem *mem, const struct store_delivery *lent)
{
    struct delivery *p = mem_calloc(mem, 1, sizeof(*p));

    if (p == NULL)
        return NULL;
    p->lent = *lent;
    target_read(lent->subscriber, &p->target);
    buf_init(&p->url, mem);
    buf_init(&p->text, mem);
    return p;
}

void
delivery_free(struct mem *mem, struct delivery *p)
{
    ENSURE(p->handle == NULL && !list_linked(&p->link));
    buf_fini(&p->url);
    buf_fini(&p->text);
    mem_free(mem, p);
}
