#include "client/work_slot.h"

#include "claimd/base/hash.h"
#include "claimd/base/invariant.h"

#include <errno.h>
#include <unistd.h>

void
slot_init(struct work_slot *s, struct mem *mem)
{
    s->process = PROCESS_NONE;
    buf_init(&s->lines, mem);
    slot_clear(s);
}

void
slot_fini(struct work_slot *s)
{
    process_end(&s->process);
    buf_fini(&s->lines);
    s->count = s->sent = 0;
}

/* ------------------------------------------------------------------ jobs */

void
slot_add(struct work_slot *s, struct work_job *j)
{
    ENSURE(s->count < SLOT_JOBS_MOST);
    s->jobs[s->count++] = j;
    j->slot = s;
    j->sent = false;
}

void
slot_remove(struct work_slot *s, struct work_job *j)
{
    size_t i = 0;

    while (i < s->count && s->jobs[i] != j)
        i++;
    ENSURE(i < s->count);
    if (i < s->sent)
        s->sent--;
    s->count--;
    memmove(&s->jobs[i], &s->jobs[i + 1], (s->count - i) * sizeof(s->jobs[0]));
    j->slot = NULL;
}

struct work_job *
slot_find(const struct work_slot *s, struct bytes id)
{
    for (size_t i = 0; i < s->sent; i++)
        if (bytes_equal(s->jobs[i]->id, id))
            return s->jobs[i];
    return NULL;
}

static uint64_t
id_hash(struct bytes id)
{
    static const struct hash_key key = {1, 2}; /* the server has made the ids */

    return hash_bytes(&key, id);
}

void
slot_remember(struct work_slot *s, struct bytes id)
{
    s->answered[s->answered_at++ % SLOT_ANSWERED] = id_hash(id);
}

bool
slot_has_answered(const struct work_slot *s, struct bytes id)
{
    const uint64_t hash = id_hash(id);

    for (size_t i = 0; i < SLOT_ANSWERED && i < s->answered_at; i++)
        if (s->answered[i] == hash)
            return true;
    return false;
}

/* ------------------------------------------------------------------ lines to it */

static size_t
slot_pending(const struct work_slot *s)
{
    return s->lines.len - s->lines_at;
}

bool
slot_has_next(const struct work_slot *s)
{
    return s->sent < s->count && slot_pending(s) < SLOT_AHEAD;
}

bool
slot_write(struct work_slot *s, int64_t deadline_s)
{
    struct work_job *j = s->jobs[s->sent];
    const size_t before = s->lines.len;

    job_line_write(&s->lines, j, deadline_s);
    if (s->lines.failed)
        return false;
    j->sent = true;
    j->line_at = s->written;
    s->written += s->lines.len - before;
    s->sent++;
    return true;
}

bool
slot_send(struct work_slot *s)
{
    while (slot_pending(s) > 0) {
        const ssize_t n =
            write(s->process.input, s->lines.data + s->lines_at, slot_pending(s));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        s->lines_at += (size_t)n;
    }
    if (slot_pending(s) > 0) {
        const bool is_full = errno == EAGAIN;

        if (s->lines_at >= SLOT_AHEAD) { /* the space before is used again */
            s->lines.len -= s->lines_at;
            memmove(s->lines.data, s->lines.data + s->lines_at, s->lines.len);
            s->lines_at = 0;
        }
        return is_full;
    }
    buf_reset(&s->lines, 2 * SLOT_AHEAD);
    s->lines_at = 0;
    return true;
}

/* ------------------------------------------------------------------ lines from it */

int
slot_read(struct work_slot *s)
{
    const size_t space = sizeof(s->read) - s->read_len;
    ssize_t n;

    if (s->process.output < 0)
        return -1;
    if (space == 0)
        return 0;
    n = read(s->process.output, s->read + s->read_len, space);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    s->read_len += (size_t)n;
    return 1;
}

bool
slot_next_line(const struct work_slot *s, size_t *taken, struct bytes *line)
{
    const char *begin = s->read + *taken,
               *end = memchr(begin, '\n', s->read_len - *taken);

    if (end == NULL)
        return false;
    *line = bytes_of(begin, (size_t)(end - begin));
    *taken += line->len + 1;
    return true;
}

bool
slot_drop(struct work_slot *s, size_t taken)
{
    s->read_len -= taken;
    memmove(s->read, s->read + taken, s->read_len);
    return s->read_len < sizeof(s->read);
}

/* ------------------------------------------------------------------ the end */

void
slot_take_back(struct work_slot *s)
{
    const uint64_t taken = s->written - slot_pending(s) - process_unread(&s->process);

    for (size_t i = s->sent; i > 0; i--) {
        struct work_job *j = s->jobs[i - 1];

        if (j->line_at < taken || j->stop != STOP_NONE)
            continue;
        /* It becomes the first of those that wait. */
        s->sent--;
        memmove(&s->jobs[i - 1], &s->jobs[i], (s->sent + 1 - i) * sizeof(s->jobs[0]));
        s->jobs[s->sent] = j;
        j->sent = false;
        j->timeout_ms = INT64_MAX;
    }
}

void
slot_clear(struct work_slot *s)
{
    ENSURE(s->sent == 0);
    process_end(&s->process);
    s->process = PROCESS_NONE;
    s->state = SLOT_EMPTY;
    buf_reset(&s->lines, 2 * SLOT_AHEAD);
    s->lines_at = s->read_len = s->answered_at = s->sample_len = 0;
    s->written = 0;
    s->responses = 0;
    s->blameless = false;
    s->fault[0] = '\0';
    s->end_ms = s->closed_ms = s->term_ms = s->kill_ms = INT64_MAX;
    s->polled = 0;
}
