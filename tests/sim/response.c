#include "sim/response.h"
#include "sim/json_read.h"

#include <time.h>

/* ---------------------------------------------------------------------- pieces */

static bool
copy_text(struct bytes from, char *to, size_t cap)
{
    if (from.len >= cap)
        return false;
    memcpy(to, from.data, from.len);
    to[from.len] = '\0';
    return true;
}

static bool
copy_id(struct bytes from, struct store_id *to)
{
    return copy_text(from, to->text, sizeof(to->text));
}

/* The text behind the last mark; absent without a mark. */
static struct bytes
behind(struct bytes text, char mark)
{
    const char *at = text.len == 0 ? NULL : memrchr(text.data, mark, text.len);

    if (at == NULL)
        return BYTES_NONE;
    at++;
    return bytes_of(at, text.len - (size_t)(at - text.data));
}

/* ".../messages/ID?claim_id=CLAIM", the query only if there is a claim. */
static bool
read_href(struct bytes value, struct store_id *id, struct store_id *claim)
{
    struct bytes path, rest;

    if (!json_read_text(value, &rest))
        return false;
    path = bytes_cut(&rest, '?');
    if (!copy_id(behind(path, '/'), id))
        return false;
    if (!bytes_present(rest))
        return true;
    return claim != NULL && bytes_equal_str(bytes_cut(&rest, '='), "claim_id") &&
           copy_id(rest, claim);
}

/* ---------------------------------------------------------------------- messages */

static bool
read_message(struct bytes text, bool popped, struct seen_message *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct store_id in_href = {""};
    struct bytes name, value, id;
    bool sound = true;

    *out = (struct seen_message){.ttl_s = -1, .age_s = -1, .claim_count = -1};
    while (sound && json_read_member(&r, &name, &value)) {
        if (bytes_equal_str(name, "id"))
            sound = json_read_text(value, &id) && copy_id(id, &out->id);
        else if (bytes_equal_str(name, "href") && !popped)
            sound = read_href(value, &in_href, &out->claim);
        else if (bytes_equal_str(name, "ttl"))
            sound = json_read_i64(value, &out->ttl_s);
        else if (bytes_equal_str(name, "age"))
            sound = json_read_i64(value, &out->age_s);
        else if (bytes_equal_str(name, "body"))
            out->body = value;
        else if (bytes_equal_str(name, "claim_count") && popped)
            sound = json_read_i64(value, &out->claim_count);
        else if (bytes_equal_str(name, "claim_id") && popped)
            sound = bytes_equal_str(value, "null");
        else
            sound = false; /* one of the SDKs dies of a key it does not know */
    }
    return sound && json_read_done(&r) && out->ttl_s >= 0 && out->age_s >= 0 &&
           out->body.data != NULL &&
           (popped ? out->claim_count >= 0 : strcmp(in_href.text, out->id.text) == 0);
}

static bool
read_messages(struct bytes text, bool popped, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '[');
    struct bytes value;

    while (json_read_item(&r, &value)) {
        if (out->count == IDS_MAX ||
            !read_message(value, popped, &out->messages[out->count]))
            return false;
        out->count++;
    }
    return json_read_done(&r);
}

/* The marker of the one link there may be. */
static bool
read_links(struct bytes text, struct sim_response *out)
{
    struct json_read links = json_read_begin(text, '[');
    struct json_read link;
    struct bytes value, name;

    while (json_read_item(&links, &value)) {
        link = json_read_begin(value, '{');
        while (json_read_member(&link, &name, &value))
            if (bytes_equal_str(name, "href") && json_read_text(value, &value) &&
                !copy_id(behind(value, '='), &out->marker))
                return false;
        if (!json_read_done(&link) || out->marker.text[0] == '\0')
            return false;
    }
    return json_read_done(&links);
}

static bool
read_messages_document(const struct operation *op, struct bytes text,
                       struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    bool sound = true, links = false, messages = false;
    struct bytes name, value;

    while (sound && json_read_member(&r, &name, &value)) {
        if (bytes_equal_str(name, "messages"))
            sound = messages = read_messages(value, op->kind == OP_POP, out);
        else if (bytes_equal_str(name, "links") && op->kind == OP_LIST)
            sound = links = read_links(value, out);
        else if (bytes_equal_str(name, "age") && op->kind == OP_CLAIM_SHOW)
            sound = json_read_i64(value, &out->claim_age_s);
        else if (bytes_equal_str(name, "ttl") && op->kind == OP_CLAIM_SHOW)
            sound = json_read_i64(value, &out->claim_ttl_s);
        else if (bytes_equal_str(name, "href") && op->kind == OP_CLAIM_SHOW)
            sound = read_href(value, &out->location, NULL);
        else
            sound = false;
    }
    return sound && json_read_done(&r) && messages && links == (op->kind == OP_LIST);
}

static bool
read_posted(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct json_read items;
    struct bytes name, value;

    if (!json_read_member(&r, &name, &value) || !bytes_equal_str(name, "resources"))
        return false;
    items = json_read_begin(value, '[');
    while (json_read_item(&items, &value))
        if (out->posted_count == DRAFTS_MAX ||
            !read_href(value, &out->posted[out->posted_count++], NULL))
            return false;
    return json_read_done(&items) && !json_read_member(&r, &name, &value) &&
           json_read_done(&r);
}

/* ---------------------------------------------------------------------- queues */

static bool
read_end(struct bytes text, struct seen_end *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct bytes name, value;
    bool sound = true;

    while (sound && json_read_member(&r, &name, &value)) {
        if (bytes_equal_str(name, "age"))
            sound = json_read_i64(value, &out->age_s);
        else if (bytes_equal_str(name, "created"))
            sound = json_read_text(value, &value) &&
                    copy_text(value, out->created, sizeof(out->created));
        else
            sound = bytes_equal_str(name, "href") && read_href(value, &out->id, NULL);
    }
    return sound && json_read_done(&r);
}

static bool
read_stats(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct json_read inner;
    struct bytes name, value;
    bool sound = true;

    if (!json_read_member(&r, &name, &value) || !bytes_equal_str(name, "messages"))
        return false;
    inner = json_read_begin(value, '{');
    while (sound && json_read_member(&inner, &name, &value)) {
        if (bytes_equal_str(name, "claimed"))
            sound = json_read_i64(value, &out->claimed);
        else if (bytes_equal_str(name, "free"))
            sound = json_read_i64(value, &out->free);
        else if (bytes_equal_str(name, "total"))
            sound = json_read_i64(value, &out->total);
        else if (bytes_equal_str(name, "oldest"))
            sound = read_end(value, &out->oldest);
        else
            sound = bytes_equal_str(name, "newest") && read_end(value, &out->newest);
    }
    return sound && json_read_done(&inner) && !json_read_member(&r, &name, &value) &&
           json_read_done(&r);
}

static bool
read_queue_names(struct bytes text, struct sim_response *out)
{
    struct json_read items = json_read_begin(text, '[');
    struct bytes name, value;

    while (json_read_item(&items, &value)) {
        struct json_read queue = json_read_begin(value, '{');

        if (out->queue_count == PLACES)
            return false;
        while (json_read_member(&queue, &name, &value))
            if (bytes_equal_str(name, "name") &&
                !json_read_text(value, &out->queues[out->queue_count]))
                return false;
        if (!json_read_done(&queue) || out->queues[out->queue_count].data == NULL)
            return false;
        out->queue_count++;
    }
    return json_read_done(&items);
}

static bool
read_queue_list(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct bytes name, value;
    bool sound = true;

    out->queue_total = -1;
    while (sound && json_read_member(&r, &name, &value)) {
        if (bytes_equal_str(name, "queues"))
            sound = read_queue_names(value, out);
        else if (bytes_equal_str(name, "count"))
            sound = json_read_i64(value, &out->queue_total);
    }
    return sound && json_read_done(&r);
}

static int
name_number(struct bytes name)
{
    for (int i = 0; i < NAMES; i++)
        if (bytes_equal_str(name, place_name(i)))
            return i;
    return NOWHERE;
}

static bool
read_setting(enum setting s, struct bytes value, int64_t *out)
{
    if (bytes_equal_str(value, "null"))
        return true;
    if (s != SETTING_DEAD_LETTER)
        return json_read_i64(value, out);
    if (!json_read_text(value, &value))
        return false;
    *out = name_number(value);
    return *out != NOWHERE;
}

static bool
read_metadata(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct bytes name, value;

    for (int i = 0; i < SETTING_COUNT; i++)
        out->settings[i] = STORE_UNSET;
    while (json_read_member(&r, &name, &value))
        for (int i = 0; i < SETTING_COUNT; i++)
            if (bytes_equal_str(name, setting_member((enum setting)i)) &&
                !read_setting((enum setting)i, value, &out->settings[i]))
                return false;
    return json_read_done(&r);
}

/* ---------------------------------------------------------------------- subscriptions */

static bool
read_subscribed(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct bytes name, value;

    return json_read_member(&r, &name, &value) &&
           bytes_equal_str(name, "subscription_id") && json_read_text(value, &value) &&
           copy_id(value, &out->subscribed) && !json_read_member(&r, &name, &value) &&
           json_read_done(&r);
}

static bool
read_flag(struct bytes value, bool *out)
{
    *out = bytes_equal_str(value, "true");
    return *out || bytes_equal_str(value, "false");
}

static bool
read_next_try(struct bytes value, struct seen_subscription *out)
{
    return bytes_equal_str(value, "null") ||
           (json_read_text(value, &value) &&
            copy_text(value, out->next_try, sizeof(out->next_try)));
}

/* A number that has this name; NULL: none has. */
static int64_t *
number_of(struct seen_subscription *s, struct bytes name)
{
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {{"ttl", &s->ttl_s},           {"age", &s->age_s},
                   {"delivered", &s->delivered}, {"given_up", &s->permanent_failures},
                   {"behind", &s->behind},       {"fallen_out", &s->dropped},
                   {"failures", &s->failures},   {"failed", &s->failed}};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (bytes_equal_str(name, numbers[i].name))
            return numbers[i].number;
    return NULL;
}

static bool
read_subscription(struct bytes text, struct seen_subscription *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct bytes name, value;
    bool sound = true;

    while (sound && json_read_member(&r, &name, &value)) {
        int64_t *number = number_of(out, name);

        if (number != NULL)
            sound = json_read_i64(value, number);
        else if (bytes_equal_str(name, "id"))
            sound = json_read_text(value, &value) && copy_id(value, &out->id);
        else if (bytes_equal_str(name, "confirmed"))
            sound = read_flag(value, &out->confirmed);
        else if (bytes_equal_str(name, "delivering"))
            sound = read_flag(value, &out->leased);
        else if (bytes_equal_str(name, "subscriber"))
            sound = json_read_text(value, &out->subscriber);
        else if (bytes_equal_str(name, "options"))
            out->options = value;
        else if (bytes_equal_str(name, "next_try"))
            sound = read_next_try(value, out);
        else
            sound = bytes_equal_str(name, "source");
    }
    return sound && json_read_done(&r);
}

static bool
read_subscriptions(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct json_read items;
    struct bytes name, value;

    if (!json_read_member(&r, &name, &value) || !bytes_equal_str(name, "subscriptions"))
        return false;
    items = json_read_begin(value, '[');
    while (json_read_item(&items, &value))
        if (out->subscription_count == SUBSCRIBERS ||
            !read_subscription(value, &out->subscriptions[out->subscription_count++]))
            return false;
    return json_read_done(&items);
}

/* ---------------------------------------------------------------------- failing jobs */

static bool
read_results(struct bytes text, struct sim_response *out)
{
    struct json_read items = json_read_begin(text, '[');
    struct bytes name, value, id, result;

    while (json_read_item(&items, &value)) {
        struct json_read r = json_read_begin(value, '{');

        if (out->result_count == IDS_MAX || !json_read_member(&r, &name, &id) ||
            !bytes_equal_str(name, "id") || !json_read_text(id, &id) ||
            !copy_id(id, &out->finished[out->result_count]) ||
            !json_read_member(&r, &name, &result) || !bytes_equal_str(name, "result") ||
            !json_read_text(result, &result) || result.len < 3 ||
            json_read_member(&r, &name, &value) || !json_read_done(&r))
            return false;
        out->results[out->result_count++] = result.data[2] == 'a' ? 'd' : result.data[0];
        if (bytes_equal_str(result, "deleted"))
            out->results[out->result_count - 1] = 'x';
    }
    return json_read_done(&items);
}

static bool
read_resources(struct bytes text, struct sim_response *out)
{
    struct json_read items = json_read_begin(text, '[');
    struct bytes value;

    while (json_read_item(&items, &value))
        if (out->posted_count == DRAFTS_MAX ||
            !read_href(value, &out->posted[out->posted_count++], NULL))
            return false;
    return json_read_done(&items);
}

/* One item of the posts of a finish. */
static bool
read_post_item(struct bytes text, bool *existing, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct bytes name, value;

    if (!json_read_member(&r, &name, &value) || !bytes_equal_str(name, "queue") ||
        !json_read_member(&r, &name, &value))
        return false;
    if (bytes_equal_str(name, "existing") &&
        (!read_flag(value, existing) || !json_read_member(&r, &name, &value)))
        return false;
    return bytes_equal_str(name, "resources") && read_resources(value, out) &&
           !json_read_member(&r, &name, &value) && json_read_done(&r);
}

static bool
read_posts(struct bytes text, struct sim_response *out)
{
    struct json_read items = json_read_begin(text, '[');
    struct bytes value;
    size_t count = 0;

    while (json_read_item(&items, &value))
        if (count == POSTS_MAX || !read_post_item(value, &out->existing[count++], out))
            return false;
    return json_read_done(&items);
}

static bool
read_finish(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct bytes name, value;
    bool sound = true;

    while (sound && json_read_member(&r, &name, &value)) {
        if (bytes_equal_str(name, "results"))
            sound = read_results(value, out);
        else if (bytes_equal_str(name, "posted"))
            sound = read_posts(value, out);
        else if (bytes_equal_str(name, "renewed"))
            sound = out->says_renewed = read_flag(value, &out->renewed);
        else
            sound = false;
    }
    return sound && json_read_done(&r);
}

static bool
read_redrive(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct bytes name, value;
    bool sound = true;

    out->moved = out->remaining = out->without_origin = out->key_held = -1;
    while (sound && json_read_member(&r, &name, &value)) {
        if (bytes_equal_str(name, "moved"))
            sound = json_read_i64(value, &out->moved);
        else if (bytes_equal_str(name, "remaining"))
            sound = json_read_i64(value, &out->remaining);
        else if (bytes_equal_str(name, "without_origin"))
            sound = json_read_i64(value, &out->without_origin);
        else if (bytes_equal_str(name, "key_held"))
            sound = json_read_i64(value, &out->key_held);
        else
            sound = bytes_equal_str(name, "by_target");
    }
    return sound && json_read_done(&r) && out->moved >= 0 && out->remaining >= 0 &&
           out->without_origin >= 0 && out->key_held >= 0;
}

static bool
read_pause(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct bytes name, value;
    bool sound = true, on, last = false;
    unsigned seen = 0;

    while (sound && json_read_member(&r, &name, &value)) {
        unsigned bit = 0;

        if (bytes_equal_str(name, "last_pause"))
            last = !bytes_equal_str(value, "null");
        else if (bytes_equal_str(name, "claims"))
            bit = STORE_PAUSE_CLAIMS;
        else if (bytes_equal_str(name, "posts"))
            bit = STORE_PAUSE_POSTS;
        else
            sound = false;
        seen |= bit;
        if (bit != 0)
            sound = read_flag(value, &on);
        if (bit != 0 && sound && on)
            out->paused |= bit;
    }
    return sound && json_read_done(&r) &&
           seen == (STORE_PAUSE_CLAIMS | STORE_PAUSE_POSTS) && last == (out->paused != 0);
}

/* ---------------------------------------------------------------------- schedules */

/* The first due time of a list. */
static bool
read_next(struct bytes text, int64_t *out)
{
    struct json_read r = json_read_begin(text, '[');
    struct tm tm = {.tm_isdst = 0};
    struct bytes value;
    char at[32];
    bool sound = true;

    while (sound && json_read_item(&r, &value)) {
        sound = *out == 0 && json_read_text(value, &value) &&
                copy_text(value, at, sizeof(at)) &&
                strptime(at, "%Y-%m-%dT%H:%M:%SZ", &tm) != NULL;
        *out = (int64_t)timegm(&tm) * 1000;
    }
    return sound && json_read_done(&r);
}

/* One of these words. */
static bool
read_word(struct bytes value, const char *const *words, int count, int *out)
{
    *out = 0;
    if (!json_read_text(value, &value))
        return false;
    while (*out < count && !bytes_equal_str(value, words[*out]))
        ++*out;
    return *out < count;
}

static bool
read_schedule_member(struct bytes name, struct bytes value, struct seen_schedule *out)
{
    struct schedule_terms *terms = &out->terms;
    bool sound = true;
    int word;

    if (bytes_equal_str(name, "name")) {
        out->number = value.len == 3 ? value.data[1] - '0' : -1;
        return out->number >= 0 && out->number < SCHEDULES;
    }
    if (bytes_equal_str(name, "every"))
        return json_read_i64(value, &terms->every_s);
    if (bytes_equal_str(name, "posted"))
        return json_read_i64(value, &out->posted);
    if (bytes_equal_str(name, "missed_count"))
        return json_read_i64(value, &out->missed);
    if (bytes_equal_str(name, "skipped_count"))
        return json_read_i64(value, &out->skipped);
    if (bytes_equal_str(name, "paused"))
        return read_flag(value, &terms->paused);
    if (bytes_equal_str(name, "next"))
        return read_next(value, &out->next_ms);
    if (bytes_equal_str(name, "cron")) {
        terms->cron = true;
        terms->every_s = 60;
    } else if (bytes_equal_str(name, "missed")) {
        sound = read_word(value, schedule_missed_names, SCHEDULE_MISSED_NONE + 1, &word);
        terms->missed = (enum schedule_missed)word;
    } else if (bytes_equal_str(name, "overlap")) {
        sound =
            read_word(value, schedule_overlap_names, SCHEDULE_OVERLAP_SKIP + 1, &word);
        terms->overlap = (enum schedule_overlap)word;
    }
    return sound;
}

static bool
read_schedule(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct seen_schedule *seen = &out->schedules[out->schedule_count++];
    struct bytes name, value;
    bool sound = true;

    *seen = (struct seen_schedule){-1, .posted = -1, .missed = -1, .skipped = -1};
    while (sound && json_read_member(&r, &name, &value))
        sound = read_schedule_member(name, value, seen);
    return sound && json_read_done(&r) && seen->number >= 0 && seen->posted >= 0 &&
           seen->missed >= 0 && seen->skipped >= 0 && seen->terms.every_s > 0;
}

static bool
read_schedule_list(struct bytes text, struct sim_response *out)
{
    struct json_read r = json_read_begin(text, '{');
    struct json_read items;
    struct bytes name, value;
    bool sound =
        json_read_member(&r, &name, &value) && bytes_equal_str(name, "schedules");

    items = json_read_begin(value, '[');
    while (sound && json_read_item(&items, &value))
        sound = out->schedule_count < SCHEDULES && read_schedule(value, out);
    return sound && json_read_done(&items);
}

/* ---------------------------------------------------------------------- whole */

static bool
read_applied(struct bytes value, int64_t *out)
{
    struct bytes name = bytes_cut(&value, '=');

    return bytes_equal_str(name, "wait") && json_read_i64(value, out) && *out > 0;
}

static bool
read_headers(const struct response *res, struct sim_response *out)
{
    bool sound = true;

    for (size_t i = 0; i < res->header_count; i++) {
        const struct response_header *h = &res->headers[i];

        if (strcmp(h->name, "Retry-After") == 0)
            out->retry_after = true;
        if (strcmp(h->name, "Idempotent-Replay") == 0)
            out->replayed = strcmp(h->value, "true") == 0;
        if (strcmp(h->name, "Claimd-Unique") == 0)
            sound = sound && (out->existing[0] = strcmp(h->value, "existing") == 0);
        if (strcmp(h->name, "Preference-Applied") == 0)
            sound = sound && read_applied(bytes_str(h->value), &out->applied_s);
        if (strcmp(h->name, "Claim-Number") == 0)
            sound = sound && bytes_to_u64(bytes_str(h->value), &out->claim_number) &&
                    out->claim_number > 0 && out->claim_number <= INT64_MAX;
        if (strcmp(h->name, "Location") == 0 && strchr(h->value, '?') == NULL)
            sound = sound && copy_id(behind(bytes_str(h->value), '/'), &out->location);
    }
    return sound;
}

static bool
read_problem(struct bytes text)
{
    struct json_read r = json_read_begin(text, '{');
    struct bytes name, value;
    bool titled = false;

    while (json_read_member(&r, &name, &value))
        titled = titled || bytes_equal_str(name, "title");
    return titled && json_read_done(&r);
}

bool
response_read(const struct operation *op, const struct response *res,
              struct sim_response *out)
{
    struct bytes text = buf_view(&res->body);

    memset(out, 0, sizeof(*out));
    out->code = res->code;
    if (!read_headers(res, out))
        return false;
    if (res->code == 503 && text.len == 0)
        return true; /* no memory for the document: the code must do */
    if (res->code >= 400)
        return read_problem(text);
    if (res->code == 204 || op->kind == OP_QUEUE_PUT)
        return text.len == 0;
    switch (op->kind) {
    case OP_POST:
        return read_posted(text, out);
    case OP_FINISH:
        return read_finish(text, out);
    case OP_REDRIVE:
        return read_redrive(text, out);
    case OP_GET_ONE:
        out->count = 1;
        return read_message(text, false, &out->messages[0]);
    case OP_SUBSCRIBE:
        return read_subscribed(text, out);
    case OP_SUBSCRIPTION_LIST:
    case OP_PROGRESS_LIST:
        return read_subscriptions(text, out);
    case OP_SCHEDULE_SET:
    case OP_SCHEDULE_SHOW:
    case OP_SCHEDULE_PAUSE:
        return read_schedule(text, out);
    case OP_SCHEDULE_LIST:
        return read_schedule_list(text, out);
    case OP_QUEUE_PAUSE:
        return read_pause(text, out);
    case OP_QUEUE_STATS:
        return read_stats(text, out);
    case OP_QUEUE_LIST:
        return read_queue_list(text, out);
    case OP_QUEUE_SHOW:
    case OP_QUEUE_PATCH:
        return read_metadata(text, out);
    default:
        return read_messages_document(op, text, out);
    }
}
