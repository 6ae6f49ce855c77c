/*
 * call: the store on Redis as its operations see it, and one call of a script about a queue, from its words
 * to its response.
 *
 *     struct call c = call_begin(s, op, where);
 *
 *     call_text(&c, ...);
 *     st = call_run(&c, SCRIPT_message_get, CALL_LOOKS);
 *     if (st == ST_OK)
 *         ... call_item(&c, 1) ...
 *     call_end(&c);
 */
#ifndef REDIS_CALL_H
#define REDIS_CALL_H

#include "claimd/base/clock.h"
#include "claimd/base/entropy.h"
#include "claimd/base/hash.h"
#include "claimd/redis/redis.h"
#include "claimd/store/figures.h"
#include "redis/cluster.h"

struct waiting;     /* waiting.h */
struct deliveries;  /* subscription_ops.h */
struct stats_scan;  /* stats_scan.c */
struct maintenance; /* maintenance.c */

/* What this process has done to queues. Scripts do what time causes, and that is not counted. */
struct counters {
    struct counter counts[STORE_COUNTERS];
    struct buckets spans[STORE_SPANS];
};

struct redis_store {
    struct store store;
    struct redis_config config; /* borrowed, but for `url` */
    struct url url;
    struct hiredis_library library;
    struct cluster cluster;
    _Atomic int64_t warned_ns; /* the last warning; 0: none yet */
    struct lock lock;          /* of the entropy, and of writers of the counters */
    struct entropy entropy;
    struct counters counters;
    struct hash_key hash_key; /* of names of queues */
    struct waiting *waiting;  /* owned, as what follows */
    struct deliveries *deliveries;
    struct stats_scan *stats_scan;
    struct maintenance *maintenance; /* NULL: none (tests) */
};

static inline struct redis_store *
redis_of(struct store *s)
{
    return container_of(s, struct redis_store, store);
}

/* The clock of this process: real time (ms of the stopwatch), in tests that of the operation. */
static inline int64_t
redis_clock_ms(const struct redis_store *s, int64_t op_ms)
{
    return s->config.test_clock ? op_ms : clock_stopwatch_ns() / 1000000;
}

/* Logs the text, once a second at most. */
void redis_warn(void *store, const char *text);

void counters_add(struct redis_store *s, enum store_counter which, uint64_t by);
void counters_span(struct redis_store *s, enum store_span which, int64_t value);

/* Copies the address of a queue, with its texts in `text`. False: no memory. */
bool
address_copy(const struct store_queue *from, struct buf *text, struct store_queue *to);

/* ---------------------------------------------------------------------- operations */

#define REDIS_OPERATION(name) store_##name##_fn redis_##name;

STORE_OPERATIONS(REDIS_OPERATION)

#undef REDIS_OPERATION

store_read_fn redis_read;
store_apply_fn redis_apply;
store_records_release_fn redis_records_release;

/* ---------------------------------------------------------------------- calls */

enum call_kind {
    CALL_LOOKS,   /* is sent again if it may be lost */
    CALL_CHANGES, /* is confirmed; ST_UNCONFIRMED if it may be lost */
    CALL_NOTES    /* a change that does no harm if it is lost: neither of them */
};

enum { TAG_DIGITS = 8, SECRET_DIGITS = 12 };

struct call {
    struct redis_store *store;
    struct command words;
    const struct store_queue *where; /* borrowed; NULL: it is not about a queue */
    size_t arguments;                /* where they begin in the words, */
    size_t parts;                    /* and how many keys of the queue stand in front */
    size_t most; /* groups of words in the response (SHAPE_ASKED); 0 at first */
    struct cluster_request request;
    enum status failure;        /* of call_run(), if the words have failed */
    char digits[SECRET_DIGITS]; /* of call_digits() */
    int64_t begun_ns;           /* clock_stopwatch_ns() */
    struct reason why;
};

/* Begins with the keys of a queue, and the time. To be ended: call_end(), call_finish(). */
struct call call_begin(struct redis_store *s, const struct store_op *op,
                       const struct store_queue *where);

/* The same with all keys that it may have. While its slot moves, Redis may refuse that. */
struct call call_begin_all(struct redis_store *s, const struct store_op *op,
                           const struct store_queue *where);

/* Begins with one key, and no time; call_time() adds it. Ends the key. */
struct call call_begin_key(struct redis_store *s, struct buf *key);
void call_time(struct call *c, const struct store_op *op);

static inline void
call_word(struct call *c, struct bytes word)
{
    command_word(&c->words, word.data == NULL ? bytes_str("") : word);
}

static inline void
call_text(struct call *c, const char *word)
{
    command_word(&c->words, bytes_str(word));
}

static inline void
call_number(struct call *c, int64_t number)
{
    command_number(&c->words, number);
}

/* Hexadecimal digits by chance, the first a letter: the tag of a new queue, or the secret part of the id of a
 * claim or a subscription. Without entropy call_run() returns ST_UNAVAILABLE. */
void call_digits(struct call *c, size_t count);

/* The bytes of a value. */
static inline void
call_raw(struct call *c, const void *value, size_t len)
{
    command_word(&c->words, bytes_of(value, len));
}

/* NULL: none. */
void call_checksum(struct call *c, const struct store_checksum *checksum);

/* A word that was made for the call. Ends it. */
void call_buf(struct call *c, struct buf *word);

/* The most groups that the response may have, as a number that the script gets. */
static inline void
call_limit(struct call *c, size_t limit)
{
    c->most = limit;
    call_number(c, (int64_t)limit);
}

/*
 * An id from a client: of a message, a claim, a subscription. Other text names nothing: the script gets "-"
 * then, so that it reads only ids in the form of store/types.h as numbers.
 */
void call_id(struct call *c, struct bytes id);

/* A marker from a client: an id, or a number. Anything else is no marker, as if it were absent. */
void call_marker(struct call *c, struct bytes marker);

/* A document and eight settings; NULL: none. */
enum { METADATA_WORDS = 9 };
void call_metadata(struct call *c, const struct store_metadata *metadata);

/*
 * Runs it, once more with more keys of the queue if it needs them. The script's own status, or
 * ST_NO_MEMORY, ST_UNAVAILABLE, ST_OVER_BUDGET, ST_UNCONFIRMED; there is a response if call_has(c, 0).
 *
 * With the script's own status the response has the shape that SCRIPT_LIST says, and readers rely on
 * it. Any other response is ST_UNAVAILABLE, or, of a script that changes something, ST_UNCONFIRMED; then
 * its words may be anything.
 */
enum status call_run(struct call *c, enum script script, enum call_kind kind);

void call_end(struct call *c);

/* Runs it and ends it. */
enum status call_finish(struct call *c, enum script script, enum call_kind kind);

/* ---------------------------------------------------------------------- responses */

/* Does the response have an i-th word? */
bool call_has(const struct call *c, size_t i);
size_t call_count(const struct call *c);

/* A word of the response: a text (absent if it is none), a whole number (0). Texts are valid until the
 * end. */
struct bytes call_item(const struct call *c, size_t i);
int64_t call_integer(const struct call *c, size_t i);

/* The words of call_metadata(), from the `at`-th one on; texts are valid as long as the response. */
void call_read_metadata(const struct call *c, size_t at, struct store_metadata *out);

/* The head of a message; its texts are valid as long as the response. */
struct message_head call_head(const struct call *c, size_t i);

/* Writes the id of a message: that of its number, or the original one (absent: none). */
void write_message_id(struct bytes tag, uint64_t number, struct bytes original,
                      struct store_id *out);

/* Takes the response away from the call: for wire_give_back(). */
redisReply *call_take_response(struct call *c);

/* ---------------------------------------------------------------------- lists of queues: queue_ops.c */

/* Lists a new queue. ST_UNCONFIRMED: it may exist, but not be listed; the next post to it lists it. */
enum status queue_index_add(struct redis_store *s, const struct store_op *op,
                            const struct store_queue *where, struct bytes tag);

/* Removes the entry of a deleted queue. */
enum status queue_index_remove(struct redis_store *s, const struct store_queue *where,
                               struct bytes tag);

/* Removes the entries of deleted queues of this name. */
enum status queue_index_tidy(struct redis_store *s, const struct store_op *op,
                             const struct store_queue *where);

/* Some entries of a list, and how many it has. */
struct index_page {
    struct redis_store *store;
    redisReply *response; /* owned: index_page_release() */
    size_t count;
    uint64_t total;
};

/* Reads `limit` entries at most of a project's queues, or of the list of projects (NULL), behind those
 * with the name `marker` (absent: from the first one). To be released in any case. */
enum status
queue_index_page(struct redis_store *s, const struct bytes *project, enum store_kind kind,
                 struct bytes marker, size_t limit, struct index_page *out);

/* The i-th name of a page; behind that of a queue follows its tag (NULL: not wanted). */
struct bytes index_page_name(const struct index_page *page, size_t i, struct bytes *tag);
void index_page_release(struct index_page *page);

/* How many queues of this kind a project has. */
enum status queue_index_count(struct redis_store *s, struct bytes project,
                              enum store_kind kind, uint64_t *count);

/* ---------------------------------------------------------------------- parts of the store */

/* ST_UNAVAILABLE with a reason; ST_NO_MEMORY. */
enum status preflight_check(struct redis_store *s, struct reason *why);

/* Can it be used just now: does each primary answer, and is the cluster well? Likewise. */
enum status preflight_ping(struct redis_store *s, struct reason *why);

/* Makes s->stats_scan. ST_NO_MEMORY. */
enum status stats_scan_open(struct redis_store *s);

/* Fine if it is not open. */
void stats_scan_close(struct redis_store *s);

/* The age of the oldest dead letter in transfer, in ms. */
int64_t stats_scan_outbox_ms(const struct redis_store *s);

/* Starts it: s->maintenance. ST_NO_MEMORY; ST_UNAVAILABLE. */
enum status maintenance_start(struct redis_store *s);

/* Ends it; NULL is fine. */
void maintenance_end(struct maintenance *m);

/*
 * Transfers the dead letters of a response: from its `from`-th word on, two words each (id of the transfer,
 * dead letter), out of this queue, for a minute at most. Later another process may have them, and they may
 * have arrived. Dead letters that cannot arrive now stay in X: only a caller that waits for them needs the
 * status.
 */
enum status outbox_deliver(const struct call *c, size_t from, const struct store_op *op,
                           const struct store_queue *where);

#endif
