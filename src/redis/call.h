/*
 * call: one call of a script about a queue, from its words to its answer.
 *
 *     call_begin(&c, s, visit, where);
 *     call_text(&c, ...);
 *     st = call_run(&c, SCRIPT_message_get, CALL_LOOKS);
 *     if (st == ST_OK)
 *         ... call_item(&c, 1) ...
 *     call_end(&c);
 */
#ifndef REDIS_CALL_H
#define REDIS_CALL_H

#include "redis/private.h"

enum call_kind {
    CALL_LOOKS,   /* is sent again if it may be lost */
    CALL_CHANGES, /* is confirmed; ST_UNCONFIRMED if it may be lost */
    CALL_NOTES    /* what does no harm if it is lost: neither of them */
};

struct call {
    struct redis_store *store;
    struct command words;
    const struct store_queue *where; /* borrowed; NULL: it is not about a queue */
    size_t arguments;                /* where they begin in the words, */
    size_t parts;                    /* and how many keys of the queue stand in front */
    size_t
        asked; /* groups of words that the response may have (SHAPE_ASKED); 0 at first */
    struct cluster_request request;
    int64_t begun_ns; /* clock_stopwatch_ns() */
    struct reason why;
};

/* Begins with the keys of a queue, and the time. */
void call_begin(struct call *c, struct redis_store *s, const struct store_visit *visit,
                const struct store_queue *where);

/* The same with all keys that it may have: while its slot is being moved that may be refused. */
void call_begin_all(struct call *c, struct redis_store *s,
                    const struct store_visit *visit, const struct store_queue *where);

/* Begins with one key, which is written already, and no time; call_time() adds it. */
void call_begin_key(struct call *c, struct redis_store *s, struct bytes key);
void call_time(struct call *c, const struct store_visit *visit);

static inline void
call_word(struct call *c, struct bytes word)
{
    command_word(&c->words, word.data == NULL ? bytes_str("") : word);
}

static inline void
call_text(struct call *c, const char *word)
{
    command_text(&c->words, word);
}

static inline void
call_number(struct call *c, int64_t number)
{
    command_number(&c->words, number);
}

/* The most groups that the response may have, as a number that the script gets. */
static inline void
call_limit(struct call *c, size_t limit)
{
    c->asked = limit;
    call_number(c, (int64_t)limit);
}

/*
 * An id from a client: of a message, a claim, a subscription. What is no id names nothing: the script
 * gets "-" then, so that only ids in the form of store/image.h are ever read as numbers.
 */
void call_id(struct call *c, struct bytes id);

/* A marker from a client: an id, or a number. Anything else is no marker, and so is one that is absent. */
void call_marker(struct call *c, struct bytes marker);

/* The ids of what a batch says is opened (struct store_batch), as scripts that take messages want it. */
void call_opened(struct call *c, const struct store_batch *opened);

/*
 * Runs it, once more with more keys of the queue if it needs them. The script's own status, or
 * ST_NO_MEMORY, ST_UNAVAILABLE, ST_OVER_BUDGET, ST_UNCONFIRMED; there is an answer if call_has(c, 0).
 *
 * With the script's own status the response has the shape that SCRIPT_LIST says, and readers rely on
 * it. Any other response is ST_UNAVAILABLE, or, of a script that changes something, ST_UNCONFIRMED; then
 * its words may be anything.
 */
enum status call_run(struct call *c, enum script script, enum call_kind kind);

void call_end(struct call *c);

/* Does the answer have an i-th word? */
bool call_has(const struct call *c, size_t i);
size_t call_count(const struct call *c);

/* A word of the answer: a text (absent if it is none), a whole number (0). Texts are valid until the
 * end. */
struct bytes call_item(const struct call *c, size_t i);
int64_t call_integer(const struct call *c, size_t i);

/* Takes the answer away from the call: to be given to redis_answer_free(). */
redisReply *call_take_answer(struct call *c);
void redis_answer_free(struct redis_store *s, redisReply *answer);

#endif
