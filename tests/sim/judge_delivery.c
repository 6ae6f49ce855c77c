/* The rules for deliveries: claimd/store/subscription.h, docs/engine.md. */
#include "sim/judge.h"

/* An entry of a feed costs its body and no more than that. */
enum { ENTRY_MOST = 512 };

static struct known_queue *
queue_at(const struct delivering *by, int place)
{
    return &by->ledger->queues[place];
}

/* Has so much been posted behind it that it may have fallen out of the feed? */
static bool
may_have_fallen(const struct delivering *by, const struct known_queue *q, size_t post)
{
    int64_t bytes = 0;

    if (by->rules->feed_bytes == 0 || post + 1 == q->post_count)
        return false;
    for (size_t i = post; i < q->post_count && bytes <= by->rules->feed_bytes; i++)
        bytes += (int64_t)q->posts[i].bytes + ENTRY_MOST;
    return bytes > by->rules->feed_bytes;
}

/* Has so much been posted behind it that it must have? */
static bool
must_have_fallen(const struct delivering *by, const struct known_queue *q, size_t post)
{
    int64_t bytes = 0;

    if (by->rules->feed_bytes == 0 || post + 1 == q->post_count)
        return false;
    for (size_t i = post; i < q->post_count; i++)
        bytes += (int64_t)q->posts[i].bytes;
    return bytes > by->rules->feed_bytes;
}

/* Must it still be there? */
static bool
must_come(const struct delivering *by, const struct known_queue *q, size_t post)
{
    return by->now_ms < q->posts[post].expires_ms && !may_have_fallen(by, q, post);
}

bool
judging_due(const struct delivering *by, const struct known_subscription *s)
{
    const struct known_queue *q = queue_at(by, s->place);

    if (s->leased || by->now_ms < s->again_ms)
        return false;
    if (s->notice != 0)
        return true;
    for (size_t i = s->at; s->listens && i < q->post_count; i++)
        if (must_come(by, q, i))
            return true;
    return false;
}

bool
judge_nothing_due(const struct delivering *by, bool settled)
{
    ledger_advance(by->ledger, by->now_ms);
    for (int place = 0; place < PLACES; place++) {
        const struct known_queue *q = queue_at(by, place);

        for (size_t i = 0; i < q->subscription_count; i++) {
            const struct known_subscription *s = q->subscriptions[i];

            if (judging_due(by, s) && (settled || s->again_ms == 0))
                return verdict_break(
                    by->verdict,
                    s->again_ms > 0 ? PROMISE_ON_TIME : PROMISE_DELIVERED_AT_LEAST_ONCE,
                    "nothing is leased, but subscription %s has something "
                    "to get",
                    s->id.text);
        }
    }
    return true;
}

/* ---------------------------------------------------------------------- one of them */

static int
place_of_queue(const struct store_queue *queue)
{
    for (int place = 0; place < PLACES; place++)
        if (bytes_equal_str(queue->project, place_project(place)) &&
            bytes_equal_str(queue->name, place_name(place)))
            return place;
    return NOWHERE;
}

static bool
is_body(const struct known_post *post, struct bytes body, struct buf *buffer)
{
    if (post->bytes != body.len)
        return false;
    buf_reset(buffer, SIZE_MAX);
    draft_body(buffer, post->number, post->len);
    return bytes_equal(buf_view(buffer), body);
}

/* Which post that is, looked for from `from` on; post_count: none. */
static size_t
find_post(const struct known_queue *q, size_t from, struct bytes body)
{
    struct mem *mem = mem_new(0);
    struct buf buffer;
    size_t i = from;

    buf_init(&buffer, mem);
    while (i < q->post_count && !is_body(&q->posts[i], body, &buffer))
        i++;
    buf_fini(&buffer);
    mem_destroy(mem);
    return i;
}

static bool
judge_stranger(const struct delivering *by, const struct known_queue *q,
               const struct known_subscription *s, struct bytes body)
{
    size_t post = find_post(q, 0, body);

    if (post == q->post_count)
        return verdict_break(by->verdict, PROMISE_NOTHING_LOST,
                             "subscription %s gets what was never posted", s->id.text);
    if (post < s->first)
        return verdict_break(by->verdict, PROMISE_ONLY_SUBSCRIBERS,
                             "subscription %s gets what was posted before it listened",
                             s->id.text);
    return verdict_break(by->verdict,
                         s->low < s->at ? PROMISE_FEW_DELIVERED_AGAIN
                                        : PROMISE_DELIVERED_IN_ORDER,
                         "subscription %s gets again what it is done with", s->id.text);
}

/* It gets this post: everything before it that it has not had is lost. */
static bool
judge_place(const struct delivering *by, const struct known_queue *q,
            struct known_subscription *s, size_t post)
{
    for (size_t i = s->at; i < post; i++)
        if (must_come(by, q, i))
            return verdict_break(by->verdict, PROMISE_DELIVERED_AT_LEAST_ONCE,
                                 "subscription %s gets message %llu without %llu before",
                                 s->id.text, (unsigned long long)q->posts[post].number,
                                 (unsigned long long)q->posts[i].number);
    if (by->now_ms >= q->posts[post].expires_ms)
        return verdict_break(by->verdict, PROMISE_ON_TIME,
                             "subscription %s gets message %llu, which has expired",
                             s->id.text, (unsigned long long)q->posts[post].number);
    if (must_have_fallen(by, q, post))
        return verdict_break(by->verdict, PROMISE_SAYS_SO,
                             "a feed has more than the bytes it may have");
    if (post > s->at) {
        s->missed += post - s->at;
        s->failed = 0;
    }
    s->low = s->at = post;
    return true;
}

/* The log knows when a delay ends, and none ends after its message. */
static bool
has_times(const struct known_post *post, const struct store_delivery *d)
{
    return d->ttl_s == post->ttl_s &&
           (d->delay_s == post->delay_s ||
            (post->delay_s > post->ttl_s && d->delay_s == post->ttl_s));
}

/* Which arrival of this body a subscription gets. A redrive lets a message arrive again,
 * when the earlier arrival may have expired, or have fallen out of the feed, or the log
 * knows that it was delivered. */
static size_t
find_arrival(const struct delivering *by, const struct known_queue *q, size_t from,
             const struct store_delivery *d)
{
    size_t post = find_post(q, from, d->body);

    while (post < q->post_count &&
           (by->now_ms >= q->posts[post].expires_ms || must_have_fallen(by, q, post) ||
            !has_times(&q->posts[post], d))) {
        const size_t next = find_post(q, post + 1, d->body);

        if (next == q->post_count)
            break;
        post = next;
    }
    return post;
}

static bool
judge_post(const struct delivering *by, struct known_subscription *s,
           const struct store_delivery *d)
{
    const struct known_queue *q = queue_at(by, s->place);
    size_t post;

    if (!s->listens)
        return verdict_break(by->verdict, PROMISE_ONLY_SUBSCRIBERS,
                             "subscription %s is not confirmed, and gets a message",
                             s->id.text);
    if (s->notice != 0)
        return verdict_break(by->verdict, PROMISE_DELIVERED_IN_ORDER,
                             "subscription %s gets a message before its confirmation",
                             s->id.text);
    post = find_arrival(by, q, s->low, d);
    if (post == q->post_count)
        return judge_stranger(by, q, s, d->body);
    if (!judge_place(by, q, s, post))
        return false;
    if (!has_times(&q->posts[post], d))
        return verdict_break(by->verdict, PROMISE_NOTHING_LOST,
                             "a message is delivered with ttl %lld and delay %lld",
                             (long long)d->ttl_s, (long long)d->delay_s);
    s->maybe = 0;
    return true;
}

static bool
judge_notice(const struct delivering *by, struct known_subscription *s, int notice)
{
    if (s->notice != notice && (s->notice != 0 || s->maybe != notice))
        return verdict_break(by->verdict, PROMISE_ONLY_SUBSCRIBERS,
                             "subscription %s gets notice %d, but must get %d",
                             s->id.text, notice, s->notice);
    s->notice = s->maybe = 0;
    return true;
}

static bool
judge_address(const struct delivering *by, const struct known_subscription *s,
              const struct store_delivery *d)
{
    if (!bytes_equal_str(d->subscriber, subscriber_uri(s->subscriber)) ||
        d->expires_ms != subscription_end_ms(s))
        return verdict_break(by->verdict, PROMISE_NOTHING_LOST,
                             "subscription %s is leased as it was before", s->id.text);
    if (d->failed != s->failed)
        return verdict_break(
            by->verdict, PROMISE_ADDS_UP,
            "subscription %s is leased with %u failures, but must have %u", s->id.text,
            d->failed, s->failed);
    return true;
}

bool
judge_leased(const struct delivering *by, const struct store_delivery *d)
{
    int place = place_of_queue(&d->queue);
    struct known_subscription *s;
    bool post = d->notice == STORE_NOTICE_MESSAGE;

    ledger_advance(by->ledger, by->now_ms);
    s = place == NOWHERE ? NULL
                         : ledger_subscription(by->ledger, place, d->subscription.text);
    if (s == NULL)
        return verdict_break(
            by->verdict, PROMISE_ONLY_SUBSCRIBERS,
            "subscription %s gets a delivery, but %s", d->subscription.text,
            ending_text(ledger_ending(by->ledger, place, d->subscription.text)));
    if (s->leased)
        return verdict_break(by->verdict, PROMISE_DELIVERED_IN_ORDER,
                             "subscription %s has two deliveries at once", s->id.text);
    if (by->now_ms < s->again_ms)
        return verdict_break(by->verdict, PROMISE_ON_TIME,
                             "subscription %s has a delivery %lld ms before its time",
                             s->id.text, (long long)(s->again_ms - by->now_ms));
    if (!(post ? judge_post(by, s, d) : judge_notice(by, s, 1 + (int)d->notice)) ||
        !judge_address(by, s, d))
        return false;
    s->leased = true;
    s->leased_post = post;
    s->leased_notice = post ? 0 : 1 + (int)d->notice;
    s->changed = false;
    s->again_ms = 0;
    ledger_hurry(by->ledger);
    return true;
}
