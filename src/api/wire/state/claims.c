#include "api/wire/state/claims.h"

#include <stdlib.h>

enum { CLAIM_ID, CLAIM_TTL, CLAIM_AGE, CLAIM_MEMBERS };

enum status
state_claim_read(struct state_decoder *d, const struct doc_at *at, struct bytes text,
                 struct bytes *name, struct store_image_claim *out)
{
    struct doc_member m[CLAIM_MEMBERS] = {
        {.name = "id"}, {.name = "ttl"}, {.name = "age"}};
    const struct doc_at ttl = {at, "ttl", BYTES_NONE, 0}, id = {at, "id", BYTES_NONE, 0};
    int64_t ttl_ms = d->limits->default_claim_ttl * 1000, age_ms = 0;
    enum status st = doc_object(d, at, text, m, CLAIM_MEMBERS);

    *name = BYTES_NONE;
    if (st == ST_OK)
        st = doc_text(d, at, &m[CLAIM_ID], name);
    if (st == ST_OK)
        st = doc_seconds(d, at, &m[CLAIM_TTL], 0.001, &ttl_ms);
    if (st == ST_OK)
        st = doc_seconds(d, at, &m[CLAIM_AGE], 0, &age_ms);
    if (st != ST_OK)
        return st;
    if (!bytes_present(*name) || name->len == 0)
        return doc_refuse(d, &id, "it is required");
    if (ttl_ms - age_ms > d->limits->max_claim_ttl * 1000)
        return doc_refuse(d, &ttl, "ttl minus age exceeds max_claim_ttl");
    *out = (struct store_image_claim){.started_ms = d->now_ms - age_ms,
                                      .ends_ms = d->now_ms - age_ms + ttl_ms};
    if (store_id_good(*name))
        memcpy(out->id.text, name->data, name->len);
    return ST_OK;
}

static int
compare_names(const void *a, const void *b)
{
    return bytes_compare(((const struct state_claim_name *)a)->text,
                         ((const struct state_claim_name *)b)->text);
}

static enum status
read_claim_item(struct state_decoder *d, const struct doc_at *at, struct bytes text,
                size_t i, void *arg)
{
    struct state_claims *r = arg;

    r->names[i].index = i;
    return state_claim_read(d, at, text, &r->names[i].text, &r->image->claims[i]);
}

enum status
state_claims_read(struct state_decoder *d, const struct doc_at *up,
                  const struct doc_member *m, struct state_claims *r)
{
    const struct doc_at at = {up, "claims", BYTES_NONE, 0};
    struct store_image *image = r->image;
    enum status st = doc_items_count(d, &at, m, &image->claim_count);

    if (st != ST_OK)
        return st;
    image->claims = doc_array(d, image->claim_count, sizeof(*image->claims));
    r->names = doc_array(d, image->claim_count, sizeof(*r->names));
    if (image->claims == NULL || r->names == NULL)
        return ST_NO_MEMORY;
    st = doc_items(d, &at, m, read_claim_item, r);
    if (st != ST_OK)
        return st;
    qsort(r->names, image->claim_count, sizeof(*r->names), compare_names);
    for (size_t i = 1; i < image->claim_count; i++)
        if (bytes_equal(r->names[i - 1].text, r->names[i].text)) {
            const struct doc_at item = {&at, NULL, BYTES_NONE, r->names[i].index};
            const struct doc_at id = {&item, "id", BYTES_NONE, 0};

            return doc_refuse(d, &id, "another claim has the same id");
        }
    return ST_OK;
}

size_t
state_claims_find(const struct state_claims *r, struct bytes name)
{
    const struct state_claim_name key = {name, 0};
    const struct state_claim_name *found =
        bsearch(&key, r->names, r->image->claim_count, sizeof(key), compare_names);

    return found == NULL ? 0 : found->index + 1;
}
