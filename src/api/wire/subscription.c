#include "api/wire/subscription.h"

#include "claimd/base/clock.h"
#include "claimd/json/string.h"

static void
write_head(struct buf *out, const struct store_subscription *s)
{
    buf_str(out, "{\"id\":\"");
    buf_bytes(out, store_id_bytes(&s->id));
    buf_byte(out, '"');
}

static void
write_text(struct buf *out, const char *name, struct bytes text)
{
    buf_str(out, name);
    json_string_write(out, text);
}

static void
write_number(struct buf *out, const char *name, int64_t number)
{
    buf_str(out, name);
    buf_i64(out, number);
}

static void
write_count(struct buf *out, const char *name, uint64_t count)
{
    buf_str(out, name);
    buf_u64(out, count);
}

static void
write_flag(struct buf *out, const char *name, bool flag)
{
    buf_str(out, name);
    buf_str(out, flag ? "true" : "false");
}

void
subscription_write(struct buf *out, struct bytes source,
                   const struct store_subscription *subscription)
{
    write_head(out, subscription);
    write_text(out, ",\"source\":", source);
    write_text(out, ",\"subscriber\":", subscription->subscriber);
    write_number(out, ",\"ttl\":", subscription->ttl_s);
    write_number(out, ",\"age\":", subscription->age_s);
    buf_str(out, ",\"options\":");
    buf_bytes(out, subscription->options);
    write_flag(out, ",\"confirmed\":", subscription->confirmed);
    buf_byte(out, '}');
}

/* One that is due, or rests, has none. */
static void
write_next_try(struct buf *out, int64_t now_ms, int64_t next_try_ms)
{
    char text[CLOCK_TEXT_CAP];

    buf_str(out, ",\"next_try\":");
    if (next_try_ms <= now_ms) {
        buf_str(out, "null");
        return;
    }
    clock_text(next_try_ms, text);
    json_string_write(out, bytes_str(text));
}

void
subscription_write_progress(struct buf *out, int64_t now_ms,
                            const struct store_subscription *subscription)
{
    const struct store_progress *p = &subscription->progress;

    write_head(out, subscription);
    write_flag(out, ",\"confirmed\":", subscription->confirmed);
    write_number(out, ",\"ttl\":", subscription->ttl_s);
    write_number(out, ",\"age\":", subscription->age_s);
    write_count(out, ",\"delivered\":", p->delivered);
    write_count(out, ",\"given_up\":", p->given_up);
    write_count(out, ",\"fallen_out\":", p->fallen_out);
    write_count(out, ",\"behind\":", p->behind);
    write_count(out, ",\"failures\":", p->failures);
    write_count(out, ",\"failed\":", p->failed);
    write_flag(out, ",\"delivering\":", p->lent);
    write_next_try(out, now_ms, p->next_try_ms);
    buf_byte(out, '}');
}
