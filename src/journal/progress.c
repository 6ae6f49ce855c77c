#include "journal/progress.h"

enum { TELL_EVERY_MS = 1000 };

void
progress_begin(struct progress *p, const struct journal_config *config)
{
    *p = (struct progress){.config = config};
    if (config->stopwatch != NULL)
        p->began_ms = p->told_ms = clock_now_ms(config->stopwatch);
}

void
progress_expect(struct progress *p, uint64_t segments, uint64_t bytes)
{
    p->now.of_segments = segments;
    p->now.of_bytes = bytes;
}

void
progress_record(struct progress *p, const struct record *record)
{
    p->now.records++;
    if (record->type == RECORD_POST || record->type == RECORD_MOVE ||
        record->type == RECORD_STATE)
        p->now.messages += record->change.count;
}

void
progress_segment(struct progress *p, uint64_t bytes)
{
    p->now.segments++;
    p->now.bytes += bytes;
}

/* As if the rest took as long by the byte. The blanks of a last segment take less. */
static int64_t
estimate(const struct journal_progress *now)
{
    uint64_t left = now->of_bytes > now->bytes ? now->of_bytes - now->bytes : 0;

    return now->bytes == 0
               ? 0
               : (int64_t)((double)now->elapsed_ms * (double)left / (double)now->bytes);
}

void
progress_look(struct progress *p, uint64_t bytes)
{
    struct journal_progress told = p->now;
    int64_t now_ms;

    if (p->config->stopwatch == NULL || p->config->progress == NULL)
        return;
    now_ms = clock_now_ms(p->config->stopwatch);
    if (now_ms - p->told_ms < TELL_EVERY_MS)
        return;
    p->told_ms = now_ms;
    told.bytes += bytes;
    told.elapsed_ms = now_ms - p->began_ms;
    told.left_ms = estimate(&told);
    p->config->progress(p->config->progress_arg, &told);
}
