/*
 * call: the store on Redis as its operations see it, and the call of a script, from its
 * arguments to its response.
 *
 *     struct call c = call_begin(s, op, where);
 *
 *     call_text(&c, ...);
 *     st = call_run(&c, SCRIPT_message_get, CALL_READ);
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
#include "claimd/store/metrics.h"
#include "redis/cluster.h"

struct redis_waiting; /* waiting.h */
struct deliveries;    /* subscription_ops.h */
struct stats_scan;    /* stats_scan.c */
struct maintenance;   /* maintenance.c */
struct claim_ends;    /* claim_ends.c */

/* Counts of the operations of this process on queues. Expiry happens in scripts and is
 * not counted here. */
struct counters {
    struct counter counts[STORE_COUNTERS];
    struct buckets spans[STORE_SPANS];
};

struct redis_store {
    struct store store;
    struct redis_config config; /* borrowed, except `url` */
    struct url url;
    struct hiredis_library library;
    struct cluster cluster;
    _Atomic int64_t warned_ns; /* the last warning; 0: none yet */
    struct lock lock;          /* guards `entropy`, and writes to `counters` */
    struct entropy entropy;
    struct counters counters;
    struct hash_key hash_key; /* of names of queues */
    char servers[96];         /* as redis_servers() returns them, each once */
    /* Owned: */
    struct redis_waiting *waiting;
    struct deliveries *deliveries;
    struct claim_ends *claim_ends;
    struct stats_scan *stats_scan;
    struct maintenance *maintenance; /* NULL: none, for tests */
};

static inline struct redis_store *
redis_of(struct store *s)
{
    return container_of(s, struct redis_store, store);
}

/* The clock of this process in ms: the stopwatch, or the clock of the operation in
 * tests. */
static inline int64_t
redis_clock_ms(const struct redis_store *s, int64_t op_ms)
{
    return s->config.test_clock ? op_ms : clock_stopwatch_ns() / 1000000;
}

/* Logs a text, at most once a second. `store` is a struct redis_store. */
void redis_warn(void *store, const char *text);

/* Count an operation on a queue. One on a queue of schedules does not count. */
void counters_add(struct redis_store *s, const struct store_queue *where,
                  enum store_counter which, uint64_t by);
void counters_span(struct redis_store *s, const struct store_queue *where,
                   enum store_span which, int64_t value);

/* Copies the address of a queue, with its texts in `text`. False: no memory. */
bool queue_address_copy(const struct store_queue *from, struct buf *text,
                        struct store_queue *to);

/* ---------------------------------------------------------------------- operations */

#define REDIS_OPERATION(name) store_##name##_fn redis_##name;

STORE_OPERATIONS(REDIS_OPERATION)

#undef REDIS_OPERATION

store_read_fn redis_read;
store_apply_fn redis_apply;
store_records_release_fn redis_records_release;

/* ---------------------------------------------------------------------- calls */

enum call_kind {
    CALL_READ,       /* changes nothing. Sent again if the response is lost */
    CALL_CHANGE,     /* replicas confirm it. ST_UNCONFIRMED if the response is lost */
    CALL_BEST_EFFORT /* a change that may be lost. Neither confirmed nor sent again */
};

enum { TAG_DIGITS = 8, SECRET_DIGITS = 12 };

struct call {
    struct redis_store *store;
    struct command_words words;
    const struct store_op *op; /* borrowed, as `where`; NULL: the call is not about */
    const struct store_queue *where; /* a queue */
    size_t arguments;                /* where the arguments begin in the words */
    size_t key_count;                /* keys of the queue before the arguments */
    size_t words_of_keys;            /* and the words before the arguments */
    const struct store_key *key;     /* call_key(); NULL: none */
    bool repeated; /* the response is that of an earlier call with this key */
    size_t most;   /* groups in the response (SHAPE_ASKED); initially 0 */
    struct cluster_request request;
    enum status failure;        /* status of call_run() if the words have failed */
    char digits[SECRET_DIGITS]; /* of the last call_random_digits() */
    int64_t begun_ns;           /* clock_stopwatch_ns() */
    struct reason why;
};

/*
 * Begin a call with the keys of a queue, and the time. call_begin_all() adds the keys
 * that a queue only sometimes has. While the slot of the queue moves, Redis may refuse
 * such a call. Each call must be ended by call_end() or call_finish().
 */
struct call call_begin(struct redis_store *s, const struct store_op *op,
                       const struct store_queue *where);
struct call call_begin_all(struct redis_store *s, const struct store_op *op,
                           const struct store_queue *where);

/* Begins a call with one key, and ends the buffer of the key. call_time() adds the
 * time. */
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

/* The bytes of a value. */
static inline void
call_raw(struct call *c, const void *value, size_t len)
{
    command_word(&c->words, bytes_of(value, len));
}

/*
 * Random hexadecimal digits, the first one a letter: the tag of a new queue, or the
 * secret part of the id of a claim or a subscription. Without entropy call_run() returns
 * ST_UNAVAILABLE.
 */
void call_random_digits(struct call *c, size_t count);

/* NULL: none. */
void call_checksum(struct call *c, const struct store_checksum *checksum);

/* Adds the content of a buffer, and ends the buffer. */
void call_buf(struct call *c, struct buf *word);

/* Limits the groups of the response. The script gets the limit as a number. */
static inline void
call_limit(struct call *c, size_t limit)
{
    c->most = limit;
    call_number(c, (int64_t)limit);
}

/*
 * The id of a message, a claim or a subscription, as a client sent it. If it does not
 * have the form of store/types.h, the script gets "-", so that scripts never parse other
 * texts as numbers.
 */
void call_id(struct call *c, struct bytes id);

/* A marker, as a client sent it: an id or a number. Anything else counts as absent. */
void call_marker(struct call *c, struct bytes marker);

/* Adds the key of a post (lib/post.lua; NULL: none), and the members of struct store_post
 * that go with it. */
void call_unique(struct call *c, const struct store_unique *unique, struct bytes replaces,
                 int64_t ready_ms);

/*
 * Adds the key of an operation (store/key.h), after all other arguments. The script must
 * be the keyed one then. No effect without a key.
 */
void call_key(struct call *c, const struct store_key *key);

/* The script of a call, or the keyed one. */
#define CALL_SCRIPT(call, name)                                                          \
    ((call)->key == NULL ? SCRIPT_##name : SCRIPT_##name##_keyed)

/* A document and twelve settings. NULL: none. */
enum { METADATA_WORDS = 13 };
void call_metadata(struct call *c, const struct store_metadata *metadata);

/*
 * Runs the call, and once more if the script needs further keys of the queue. Returns the
 * status of the script, or ST_NO_MEMORY, ST_UNAVAILABLE, ST_OVER_BUDGET, ST_UNCONFIRMED.
 * If call_count() > 0, there is a response.
 *
 * With a status of the script, the response has the shape in SCRIPT_LIST, and readers
 * rely on it. If the shape is wrong, the status is ST_UNAVAILABLE, or ST_UNCONFIRMED for
 * CALL_CHANGE. The words may be anything then.
 */
enum status call_run(struct call *c, enum script script, enum call_kind kind);

void call_end(struct call *c);

/* Runs and ends the call. */
enum status call_finish(struct call *c, enum script script, enum call_kind kind);

/* ---------------------------------------------------------------------- responses */

/* The number of words; 0: there is no response. */
size_t call_count(const struct call *c);

/* True if the response has an i-th word. */
bool call_has(const struct call *c, size_t i);

/* A word of the response as a text (absent: it is none) or as an integer (0: it is none).
 * Texts are valid until the call ends. */
struct bytes call_item(const struct call *c, size_t i);
int64_t call_integer(const struct call *c, size_t i);

/* Reads the words of call_metadata() from word `at` on. The texts are valid as long as
 * the response. */
void call_read_metadata(const struct call *c, size_t at, struct store_metadata *out);

/* The head of a message. Its texts are valid as long as the response. */
struct message_head call_head(const struct call *c, size_t i);

/* Writes the id of a message: the original one, or if that is absent, the id of its
 * number. */
void message_id_write(struct bytes tag, uint64_t number, struct bytes original,
                      struct store_id *out);

/* The details of the message with this head. False: it has none. */
bool message_head_details(const struct message_head *head, struct store_details *out);

/* Takes the response out of the call. The caller ends it with wire_free_response(). */
redisReply *call_take_response(struct call *c);

/* ------------------------------------------------------------- claims: message_ops.c */

/* Adds the terms of a claim, as read_terms() of lib/messages.lua reads them. */
void call_claim_terms(struct call *c, const struct store_terms *terms);

/* Adds the Client-ID of an operation, as far as a claim keeps it. */
void call_client(struct call *c, const struct store_op *op);

/* The fencing token of a claim, from two words of a response. */
uint64_t fencing_token(const struct call *c, size_t number, size_t base);

/* ------------------------------------------------------ index of queues: queue_ops.c */

/* Lists a new queue. ST_UNCONFIRMED: the queue may exist without being listed. The next
 * post lists it. */
enum status queue_index_add(struct redis_store *s, const struct store_op *op,
                            const struct store_queue *where, struct bytes tag);

/* Some entries of a list, and the total number. */
struct index_page {
    struct redis_store *store;
    redisReply *response; /* owned: index_page_release() */
    size_t count;
    uint64_t total;
};

/*
 * Reads at most `limit` entries of the queues of a project, or of the list of projects
 * (NULL), after the name `marker` (absent: from the first one). The page must be released
 * in any case.
 */
enum status
queue_index_page(struct redis_store *s, const struct bytes *project, enum store_kind kind,
                 struct bytes marker, size_t limit, struct index_page *out);

/* The i-th name of a page. *tag is set to the tag of a queue (NULL: not wanted). */
struct bytes index_page_name(const struct index_page *page, size_t i, struct bytes *tag);
void index_page_release(struct index_page *page);

/* The number of queues of this kind in a project. */
enum status queue_index_count(struct redis_store *s, struct bytes project,
                              enum store_kind kind, uint64_t *count);

/* ---------------------------------------------------------------- parts of the store */

/* Makes s->stats_scan. ST_NO_MEMORY. */
enum status stats_scan_open(struct redis_store *s);

/* Does nothing if s->stats_scan is NULL. */
void stats_scan_close(struct redis_store *s);

/* The age of the oldest transfer, in ms. */
int64_t stats_scan_outbox_ms(const struct redis_store *s);

/* Starts the thread and sets s->maintenance. ST_NO_MEMORY; ST_UNAVAILABLE. */
enum status maintenance_start(struct redis_store *s);

/* NULL is fine. */
void maintenance_end(struct maintenance *m);

/* Defined in claim_ends.c: claimd looks at the queue at this time of Redis (0: now). Does
 * not block. */
void claim_ends_add(struct redis_store *s, const struct store_queue *where, int64_t ms);

/*
 * Defined in outbox.c, because a call that expires claims sends their dead letters. Sends
 * the transfers of a response: from word `from` on, two words describe each, the id and
 * the content.
 */
enum status outbox_deliver(const struct call *c, size_t from, const struct store_op *op,
                           const struct store_queue *where);

/* Copies a text of a response as an id, cut if it is too long. */
void call_copy_id(struct bytes text, struct store_id *out);

#endif
