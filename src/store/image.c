#include "claimd/store/image.h"

#include "claimd/base/mem.h"
#include "claimd/store/subscription.h"

#include <stdlib.h>

enum { ID_DIGITS = 24, NUMBER_DIGITS = 12 };

/* So that numbers can go on behind the largest one for ever. */
#define NUMBER_MOST (UINT64_C(1) << 47)

bool
store_id_good(struct bytes text)
{
    if (text.len != ID_DIGITS || text.data[0] < 'a')
        return false;
    for (size_t i = 0; i < ID_DIGITS; i++)
        if (!(text.data[i] >= '0' && text.data[i] <= '9') &&
            !(text.data[i] >= 'a' && text.data[i] <= 'f'))
            return false;
    return true;
}

uint64_t
store_id_number(const struct store_id *id)
{
    uint64_t number = 0;

    (void)hex_read(bytes_of(id->text + ID_DIGITS - NUMBER_DIGITS, NUMBER_DIGITS),
                   &number); /* 0: it is none */
    return number;
}

/* ------------------------------------------------------------------ two of the same */

/* A text and where it is from. */
struct key {
    struct bytes text;
    size_t index;
};

static int
compare(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = bytes_compare(x->text, y->text);

    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Leaves in *index one that is there twice; false: there is none. */
static bool
find_twice(struct key *keys, size_t count, size_t *index)
{
    bool found = false;

    if (count > 1)
        qsort(keys, count, sizeof(*keys), compare);
    for (size_t i = 1; i < count; i++)
        if (bytes_equal(keys[i - 1].text, keys[i].text) &&
            (!found || keys[i].index < *index)) {
            *index = keys[i].index;
            found = true;
        }
    return found;
}

/* ------------------------------------------------------------------ checks */

struct check {
    struct mem *mem;
    const struct store_image *image;
    struct store_flaw *flaw;
    struct key *keys; /* owned; room for as many as the largest part has */
};

static enum status
refuse(const struct check *c, const char *part, size_t index, const char *member,
       const char *what)
{
    *c->flaw = (struct store_flaw){part, index, member, what};
    return ST_BAD_VALUE;
}

static bool
is_time(int64_t ms)
{
    return ms >= -STORE_IMAGE_MS_MOST && ms <= STORE_IMAGE_MS_MOST;
}

static enum status
check_message(const struct check *c, size_t i)
{
    const struct store_image_message *m = &c->image->messages[i];
    static const char part[] = "messages";

    if (m->id.text[0] != '\0' && !store_id_good(store_id_bytes(&m->id)))
        return refuse(c, part, i, "id", "it is malformed");
    if (m->claim > c->image->claim_count)
        return refuse(c, part, i, "claim", "the claim does not exist");
    if (m->claim > 0 && m->delayed_until_ms != 0)
        return refuse(c, part, i, "claim", "a claim cannot hold a delayed message");
    if (!is_time(m->posted_ms))
        return refuse(c, part, i, "age", "it is out of range");
    if (!is_time(m->expires_ms) || m->expires_ms <= m->posted_ms)
        return refuse(c, part, i, "ttl", "it is out of range");
    if (m->delayed_until_ms != 0 &&
        (!is_time(m->delayed_until_ms) || m->delayed_until_ms > m->expires_ms))
        return refuse(c, part, i, "delay",
                      "it is out of range, or longer than the TTL of the message");
    if (m->body.len == 0 || m->body.len > UINT32_MAX / 2)
        return refuse(c, part, i, "body", "it is missing or too long");
    return ST_OK;
}

static enum status
check_messages(const struct check *c)
{
    const struct store_image *image = c->image;
    size_t named = 0, twice;
    enum status st = ST_OK;

    if (image->message_count > STORE_IMAGE_MESSAGES)
        return refuse(c, "messages", STORE_IMAGE_MESSAGES, "id",
                      "the queue has too many messages to load at once");
    for (size_t i = 0; st == ST_OK && i < image->message_count; i++) {
        st = check_message(c, i);
        if (image->messages[i].id.text[0] != '\0')
            c->keys[named++] = (struct key){store_id_bytes(&image->messages[i].id), i};
    }
    if (st == ST_OK && find_twice(c->keys, named, &twice))
        return refuse(c, "messages", twice, "id", "another message has the same id");
    return st;
}

/* Ids of claims or subscriptions are found by their numbers. */
static bool
is_numbered(const struct store_id *id)
{
    uint64_t number;

    if (id->text[0] == '\0')
        return true;
    number = store_id_good(store_id_bytes(id)) ? store_id_number(id) : 0;
    return number > 0 && number < NUMBER_MOST;
}

static struct bytes
number_text(const struct store_id *id)
{
    return bytes_of(id->text + ID_DIGITS - NUMBER_DIGITS, NUMBER_DIGITS);
}

static enum status
check_claims(const struct check *c)
{
    const struct store_image *image = c->image;
    size_t named = 0, twice;

    for (size_t i = 0; i < image->claim_count; i++) {
        const struct store_image_claim *claim = &image->claims[i];

        if (!is_numbered(&claim->id))
            return refuse(c, "claims", i, "id", "it is not a valid id of a claim");
        if (!is_time(claim->started_ms))
            return refuse(c, "claims", i, "age", "it is out of range");
        if (!is_time(claim->ends_ms) || claim->ends_ms <= claim->started_ms)
            return refuse(c, "claims", i, "ttl", "it is out of range");
        if (claim->id.text[0] != '\0')
            c->keys[named++] = (struct key){number_text(&claim->id), i};
    }
    if (find_twice(c->keys, named, &twice))
        return refuse(c, "claims", twice, "id",
                      "its last 12 digits are those of another claim");
    return ST_OK;
}

/* Which claims hold something: marks are the keys' indexes. */
static enum status
check_holding(const struct check *c)
{
    const struct store_image *image = c->image;

    for (size_t i = 0; i < image->claim_count; i++)
        c->keys[i].index = 0;
    for (size_t i = 0; i < image->message_count; i++)
        if (image->messages[i].claim > 0)
            c->keys[image->messages[i].claim - 1].index = 1;
    for (size_t i = 0; i < image->claim_count; i++)
        if (c->keys[i].index == 0)
            return refuse(c, "claims", i, "id", "the claim holds no message");
    return ST_OK;
}

static enum status
check_subscription(const struct check *c, size_t i)
{
    const struct store_image_subscription *s = &c->image->subscriptions[i];
    static const char part[] = "subscriptions";

    if (!is_numbered(&s->id))
        return refuse(c, part, i, "id", "it is not a valid id of a subscription");
    if (!is_time(s->started_ms))
        return refuse(c, part, i, "age", "it is out of range");
    if (s->ttl_s <= 0 || s->ttl_s > STORE_IMAGE_MS_MOST / 1000)
        return refuse(c, part, i, "ttl", "it is out of range");
    if (s->subscriber.len == 0 || s->subscriber.len > STORE_SUBSCRIBER_MOST)
        return refuse(c, part, i, "subscriber", "it is missing or too long");
    if (s->options.len > STORE_SUBSCRIBER_MOST)
        return refuse(c, part, i, "options", "it is too long");
    return ST_OK;
}

static enum status
check_subscriptions(const struct check *c)
{
    const struct store_image *image = c->image;
    size_t named = 0, twice;
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < image->subscription_count; i++) {
        st = check_subscription(c, i);
        if (image->subscriptions[i].id.text[0] != '\0')
            c->keys[named++] = (struct key){number_text(&image->subscriptions[i].id), i};
    }
    if (st != ST_OK)
        return st;
    if (find_twice(c->keys, named, &twice))
        return refuse(c, "subscriptions", twice, "id",
                      "its last 12 digits are those of another subscription");
    for (size_t i = 0; i < image->subscription_count; i++)
        c->keys[i] = (struct key){image->subscriptions[i].subscriber, i};
    if (find_twice(c->keys, image->subscription_count, &twice))
        return refuse(c, "subscriptions", twice, "subscriber",
                      "it has two subscriptions to the queue");
    return ST_OK;
}

static size_t
largest_part(const struct store_image *image)
{
    size_t most = image->message_count;

    if (most < image->claim_count)
        most = image->claim_count;
    return most < image->subscription_count ? image->subscription_count : most;
}

enum status
store_image_check(struct mem *mem, const struct store_image *image,
                  struct store_flaw *flaw)
{
    struct check c = {mem, image, flaw, NULL};
    enum status st;

    c.keys = mem_calloc(mem, largest_part(image) + 1, sizeof(*c.keys));
    if (c.keys == NULL)
        return ST_NO_MEMORY;
    st = check_claims(&c);
    if (st == ST_OK)
        st = check_messages(&c);
    if (st == ST_OK)
        st = check_holding(&c);
    if (st == ST_OK)
        st = check_subscriptions(&c);
    mem_free(mem, c.keys);
    return st;
}
