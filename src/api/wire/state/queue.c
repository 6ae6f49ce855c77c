#include "api/wire/state/queue.h"

#include "api/caller.h"
#include "api/wire/metadata.h"
#include "api/wire/state/claims.h"
#include "api/wire/state/message.h"
#include "api/wire/state/subscription.h"

enum status
state_metadata_read(struct state_decoder *d, const struct doc_at *up,
                    const struct doc_member *m, struct store_metadata *out)
{
    const struct doc_at at = {up, "metadata", BYTES_NONE, 0};
    struct bytes text = doc_left_out(&m->value) ? bytes_str("") : m->value.text;
    enum status st = metadata_decode(text, d->limits, d->arena, out, d->why);

    return st == ST_TOO_LARGE
               ? doc_refuse(d, &at, "it is larger than max_queue_metadata allows")
               : doc_place(d, &at, st);
}

enum status
state_name_read(struct state_decoder *d, const struct doc_at *up,
                const struct doc_member *m, struct bytes *out)
{
    const struct doc_at at = {up, m->name, BYTES_NONE, 0};
    struct bytes text = BYTES_NONE;
    enum status st = doc_text(d, up, m, &text);

    if (st != ST_OK)
        return st;
    *out = text;
    return bytes_present(text) && caller_queue_name(text) == ST_OK
               ? ST_OK
               : doc_refuse(
                     d, &at,
                     "it is \"%s\". It must be 1 to 64 characters from A-Z a-z 0-9 _ - .",
                     received(text).text);
}

static enum status
read_message_item(struct state_decoder *d, const struct doc_at *at, struct bytes text,
                  size_t i, void *arg)
{
    const struct state_claims *r = arg;
    struct store_image_message *out = &r->image->messages[i];
    const struct doc_at place = {at, "claim", BYTES_NONE, 0};
    struct doc_member claim = {.name = "claim"};
    struct bytes name = BYTES_NONE;
    enum status st = state_message_read(d, at, text, &claim.value, out);

    if (st == ST_OK)
        st = doc_text(d, at, &claim, &name);
    if (st != ST_OK || !bytes_present(name))
        return st;
    out->claim = state_claims_find(r, name);
    return out->claim > 0
               ? ST_OK
               : doc_refuse(d, &place, "the queue does not have the claim \"%s\"",
                            received(name).text);
}

static enum status
read_subscription_item(struct state_decoder *d, const struct doc_at *at,
                       struct bytes text, size_t i, void *arg)
{
    const struct state_claims *r = arg;

    return state_subscription_read(d, at, text, &r->image->subscriptions[i]);
}

static enum status
read_lists(struct state_decoder *d, const struct doc_at *at, struct store_image *image,
           const struct doc_member *claims, const struct doc_member *messages,
           const struct doc_member *subscriptions)
{
    const struct doc_at message_list = {at, "messages", BYTES_NONE, 0};
    const struct doc_at subscription_list = {at, "subscriptions", BYTES_NONE, 0};
    struct state_claims r = {image, NULL};
    enum status st = state_claims_read(d, at, claims, &r);

    if (st == ST_OK)
        st = doc_items_count(d, &message_list, messages, &image->message_count);
    if (st == ST_OK)
        st = doc_items_count(d, &subscription_list, subscriptions,
                             &image->subscription_count);
    if (st != ST_OK)
        return st;
    image->messages = doc_array(d, image->message_count, sizeof(*image->messages));
    image->subscriptions =
        doc_array(d, image->subscription_count, sizeof(*image->subscriptions));
    if (image->messages == NULL || image->subscriptions == NULL)
        return ST_NO_MEMORY;
    st = doc_items(d, &message_list, messages, read_message_item, &r);
    return st == ST_OK ? doc_items(d, &subscription_list, subscriptions,
                                   read_subscription_item, &r)
                       : st;
}

/* What the store would have against it, with its place. */
static enum status
check_image(struct state_decoder *d, const struct doc_at *at,
            const struct store_image *image)
{
    struct store_flaw flaw;
    enum status st = store_image_check(d->mem, image, &flaw);

    if (st == ST_BAD_VALUE) {
        const struct doc_at list = {at, flaw.part, BYTES_NONE, 0};
        const struct doc_at item = {&list, NULL, BYTES_NONE, flaw.index};
        const struct doc_at member = {&item, flaw.member, BYTES_NONE, 0};

        return doc_refuse(d, &member, "%s", flaw.what);
    }
    for (size_t i = 0; st == ST_OK && i < image->message_count; i++) {
        const struct doc_at list = {at, "messages", BYTES_NONE, 0};
        const struct doc_at item = {&list, NULL, BYTES_NONE, i};

        if (image->metadata.settings.encrypt && !store_is_sealed(image->messages[i].body))
            return doc_refuse(
                d, &item,
                "the queue has _enable_encrypt_messages, but the body is not sealed");
    }
    return st;
}

enum status
state_queue_read(struct state_decoder *d, const struct doc_at *at, struct bytes text,
                 struct state_queue *out)
{
    enum { NAME, METADATA, CLAIMS, MESSAGES, SUBSCRIPTIONS, MEMBERS };
    struct doc_member m[MEMBERS] = {{.name = "name"},
                                    {.name = "metadata"},
                                    {.name = "claims"},
                                    {.name = "messages"},
                                    {.name = "subscriptions"}};
    enum status st = doc_object(d, at, text, m, MEMBERS);

    out->image = (struct store_image){.first = true};
    if (st == ST_OK)
        st = state_name_read(d, at, &m[NAME], &out->where.name);
    if (st == ST_OK)
        st = state_metadata_read(d, at, &m[METADATA], &out->image.metadata);
    if (st == ST_OK)
        st = read_lists(d, at, &out->image, &m[CLAIMS], &m[MESSAGES], &m[SUBSCRIPTIONS]);
    return st == ST_OK ? check_image(d, at, &out->image) : st;
}
