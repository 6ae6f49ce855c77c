/*
 * store/sampler: one hour of history of the queues that /metrics shows, and a line of the
 * log for each of them in which messages expired unread or were dead-lettered.
 *
 * The sampler reads the metrics of these queues every 5 seconds of the store's clock. It
 * keeps the last 720 samples of each queue. Once a minute it logs what happened since the
 * last time.
 *
 *   Cost     each 5 s: one store_queue_metrics() for each shown queue
 *   Memory   for each shown queue about 500 bytes, and 3.3 KiB for each 5 minutes in
 *            which it had messages: at most 40 KiB. If the budget does not admit that, a
 *            queue loses its history
 *   Threads  any; sampler_start() makes one of its own that calls sampler_tick()
 */
#ifndef CLAIMD_STORE_SAMPLER_H
#define CLAIMD_STORE_SAMPLER_H

#include "claimd/base/clock.h"
#include "claimd/base/log.h"
#include "claimd/base/mem.h"
#include "claimd/store/store.h"

enum { SAMPLER_SAMPLES = 720, SAMPLER_INTERVAL_MS = 5000 };

/* A queue at one moment, and what happened since the sample before. */
struct store_sample {
    int64_t at_ms;
    uint32_t ready, delayed, claimed;
    uint32_t oldest_ready_s, oldest_claim_s; /* ages; UINT32_MAX: none */
    uint32_t counts[STORE_QUEUE_COUNTERS];
    uint32_t expired;
    uint32_t unread, letters_expired; /* never claimed; dead letters */
    bool paused;                      /* claims are paused */
};

/* Messages per second over the last minute, times 1000. */
struct store_rates {
    uint64_t counts[STORE_QUEUE_COUNTERS];
    uint64_t expired;
};

struct sampler_config {
    struct mem *mem; /* all pointers are borrowed */
    struct store *store;
    const struct clock *clock; /* of the store */
    const struct log *log;
    size_t queues; /* maximum number of queues that /metrics shows */
};

struct sampler; /* opaque */

/* Makes one without a thread, owned. ST_NO_MEMORY. */
enum status sampler_open(const struct sampler_config *config, struct sampler **out);

/* Starts the thread. ST_UNAVAILABLE. */
enum status sampler_start(struct sampler *s);

/* Ends the thread and frees s. NULL is fine. */
void sampler_close(struct sampler *s);

/* Calls a function after the next sample, and then once a minute, while s ticks. */
void sampler_each_minute(struct sampler *s, void (*call)(void *arg, int64_t now_ms),
                         void *arg);

/* Takes a sample if the clock has reached its time. No effect while another thread does
 * so. */
void sampler_tick(struct sampler *s);

/* The time of the next sample. If the clock goes on to until_ms at once, the first sample
 * that is less than an hour old then. */
int64_t sampler_next_ms(const struct sampler *s, int64_t until_ms);

/*
 * Copies the samples of a queue, oldest first, into space for SAMPLER_SAMPLES. Returns
 * their number. ST_NOT_FOUND: the queue has no history.
 */
enum status sampler_read(struct sampler *s, const struct store_queue *where,
                         struct store_sample *out, size_t *count);

/* False: the queue has no sample. */
bool sampler_rates(struct sampler *s, const struct store_queue *where,
                   struct store_rates *out);

#endif
