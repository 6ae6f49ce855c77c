#include "engine/backlog.h"
#include "claimd/base/hash.h"
#include "claimd/base/invariant.h"

struct backlog *
backlog_new(struct mem *mem, struct tally *tally)
{
    struct backlog *b = mem_calloc(mem, 1, sizeof(*b));

    if (b == NULL)
        return NULL;
    b->tally = tally;
    hashmap_init(&b->originals, mem);
    hashmap_init(&b->unique, mem);
    return b;
}

void
tally_backlog(struct tally *t, const struct backlog *b, size_t times)
{
    t->messages += times * backlog_live(b);
    t->claimed += times * b->claimed;
    t->delayed += times * backlog_delayed(b);
    t->dead_letters += times * b->dead_letters;
    t->claims += times * b->claims.live;
    t->bytes += times * b->bytes;
    t->unloaded += times * b->unloaded;
    t->unloaded_bytes += times * b->unloaded_bytes;
}

void
backlog_count_in(struct backlog *b, struct tally *tally)
{
    tally_backlog(b->tally, b, SIZE_MAX);
    tally_backlog(tally, b, 1);
    b->tally = tally;
}

void
backlog_free(struct mem *mem, struct backlog *b)
{
    ENSURE(b->messages.live == 0 && b->claims.live == 0 && b->originals.count == 0 &&
           b->unique.count == 0 && b->runs.live == 0);
    hashmap_fini(&b->originals);
    hashmap_fini(&b->unique);
    mem_free(mem, b);
}

enum status
backlog_reserve(struct backlog *b, struct seqmap_pool *pool, uint64_t last_seq,
                size_t count, size_t spare)
{
    return seqmap_pool_stock(pool,
                             seqmap_nodes_for(&b->messages, last_seq + 1, count) + spare);
}

void
backlog_add(struct backlog *b, struct seqmap_pool *pool, struct message *m)
{
    ENSURE(m->backlog == NULL && m->claim == NULL);
    m->backlog = b;
    b->tally->messages++;
    b->tally->delayed += m->delayed;
    b->tally->bytes += m->body_len;
    b->bytes += m->body_len;
    b->sealed += store_is_sealed(message_body(m));
    seqmap_insert(&b->messages, pool, m->seq, m, !m->delayed);
}

void
backlog_load(struct backlog *b, struct seqmap_pool *pool, struct message *m)
{
    ENSURE(m->backlog == NULL && m->claim == NULL && !m->delayed);
    m->backlog = b;
    seqmap_insert(&b->messages, pool, m->seq, m, true);
}

void
backlog_unload(struct backlog *b, struct seqmap_pool *pool, struct message *m)
{
    const void *item = seqmap_remove(&b->messages, pool, m->seq);

    ENSURE(item == m && m->backlog == b && m->claim == NULL && !m->delayed);
    m->backlog = NULL;
}

void
backlog_exchange(struct backlog *b, struct seqmap_pool *pool, struct message *m,
                 struct message *fresh)
{
    const bool ready = seqmap_is_ready(&b->messages, m->seq);
    const void *item = seqmap_remove(&b->messages, pool, m->seq);

    ENSURE(item == m && m->backlog == b && m->body_len == fresh->body_len);
    fresh->seq = m->seq;
    fresh->backlog = b;
    fresh->claim = m->claim;
    fresh->extra = m->extra;
    if (fresh->extra != NULL)
        fresh->extra->message = fresh;
    fresh->expires_ms = m->expires_ms;
    fresh->claim_count = m->claim_count;
    fresh->delayed = m->delayed;
    fresh->due.due_ms = m->due.due_ms;
    m->backlog = NULL;
    m->claim = NULL;
    m->extra = NULL;
    seqmap_insert(&b->messages, pool, fresh->seq, fresh, ready);
}

/* Notes that a message differs from what its body file has. */
static inline void
mark_changed(const struct backlog *b, uint64_t seq)
{
    struct run *r = backlog_run(b, seq);

    if (r != NULL)
        run_mark_changed(r, run_bit(seq));
}

uint64_t
backlog_find_unloaded(const struct backlog *b, uint64_t from)
{
    uint64_t block = from / RUN_MESSAGES;
    const struct run *r = seqmap_next_ready(&b->runs, &block);
    uint64_t bits;

    if (r == NULL)
        return RUN_NONE;
    bits = r->unloaded;
    if (from > r->first)
        bits &= ~UINT64_C(0) << (from - r->first);
    if (bits == 0) { /* all of them are in front of `from` */
        block++;
        r = seqmap_next_ready(&b->runs, &block);
        bits = r == NULL ? 0 : r->unloaded;
    }
    return bits == 0 ? RUN_NONE : r->first + run_lowest(bits);
}

uint64_t
backlog_next_ready(const struct backlog *b, uint64_t from)
{
    const uint64_t unloaded = backlog_next_unloaded(b, from);
    uint64_t here = from;

    return seqmap_next_ready(&b->messages, &here) != NULL && here < unloaded ? here
                                                                             : unloaded;
}

/* Changes the sums of unloaded messages: of + 1 or - 1 times these. */
static void
count_unloaded(struct run *r, uint64_t bits, size_t times)
{
    struct backlog *b = r->backlog;
    const uint64_t bytes = run_bytes(r, bits);

    b->unloaded += times * run_count(bits);
    b->tally->unloaded += times * run_count(bits);
    b->unloaded_bytes += times * bytes;
    b->tally->unloaded_bytes += times * bytes;
    seqmap_set_ready(&b->runs, r->first / RUN_MESSAGES, r->unloaded != 0);
}

void
backlog_count_loaded(struct run *r, uint64_t bits)
{
    ENSURE((bits & ~r->unloaded) == 0);
    r->unloaded &= ~bits;
    count_unloaded(r, bits, SIZE_MAX);
}

void
backlog_count_unloaded(struct run *r, uint64_t bits)
{
    ENSURE((bits & ~r->stored) == 0 && (bits & (r->unloaded | r->changed)) == 0);
    r->unloaded |= bits;
    count_unloaded(r, bits, 1);
}

static void
uncount_claimed(struct backlog *b)
{
    ENSURE(b->claimed > 0 && b->tally->claimed > 0);
    b->claimed--;
    b->tally->claimed--;
}

/* Counts a dead letter (times 1), or one less (times SIZE_MAX). */
static void
count_dead_letter(struct backlog *b, const struct message *m, size_t times)
{
    if (!message_is_dead_letter(m))
        return;
    b->dead_letters += times;
    b->tally->dead_letters += times;
}

/* The message, which has an `extra`, does not hold a key any more. */
static void
free_key(struct backlog *b, struct message *m)
{
    if (!m->extra->holds_key)
        return;
    hashmap_remove(&b->unique, &m->extra->key_node);
    m->extra->holds_key = false;
}

/* Takes the key and the original id of a message out of the tables. Out of line: few
 * messages have either. */
static void __attribute__((noinline)) remove_extra(struct backlog *b, struct message *m)
{
    free_key(b, m);
    if (!m->extra->has_id)
        return;
    hashmap_remove(&b->originals, &m->extra->node);
    count_dead_letter(b, m, SIZE_MAX);
}

/* Frees a key that was held until the first claim. */
static void __attribute__((noinline))
free_key_of_claimed(struct backlog *b, struct message *m)
{
    struct details *claimed =
        m->extra->details == NULL ? NULL : m->extra->details->claimed;

    if (claimed == NULL)
        return;
    free_key(b, m);
    m->extra->details->claimed = NULL;
    message_set_details(b->unique.mem, m, claimed);
}

void
backlog_remove(struct backlog *b, struct seqmap_pool *pool, struct message *m)
{
    const void *item = seqmap_remove(&b->messages, pool, m->seq);

    ENSURE(item == m && m->backlog == b && b->bytes >= m->body_len);
    b->tally->messages--;
    b->tally->delayed -= m->delayed;
    b->tally->bytes -= m->body_len;
    b->bytes -= m->body_len;
    b->sealed -= store_is_sealed(message_body(m));
    if (m->claim != NULL)
        uncount_claimed(b);
    if (m->extra != NULL)
        remove_extra(b, m);
    m->claim = NULL;
    m->backlog = NULL;
}

void
backlog_claim_message(struct backlog *b, struct message *m, struct claim *c)
{
    ENSURE(m->backlog == b && m->claim == NULL && !m->delayed);
    mark_changed(b, m->seq);
    if (m->extra != NULL)
        free_key_of_claimed(b, m);
    m->claim = c;
    b->claimed++;
    b->tally->claimed++;
    seqmap_set_ready(&b->messages, m->seq, false);
}

void
backlog_release(struct backlog *b, struct message *m)
{
    ENSURE(m->backlog == b && m->claim != NULL);
    m->claim = NULL;
    uncount_claimed(b);
    seqmap_set_ready(&b->messages, m->seq, true);
}

void
backlog_end_delay(struct backlog *b, struct message *m)
{
    ENSURE(m->delayed && m->claim == NULL);
    m->delayed = false;
    b->tally->delayed--;
    seqmap_set_ready(&b->messages, m->seq, true);
}

void
backlog_delay(struct backlog *b, struct message *m)
{
    ENSURE(m->backlog == b && !m->delayed && m->claim == NULL);
    mark_changed(b, m->seq);
    m->delayed = true;
    b->tally->delayed++;
    seqmap_set_ready(&b->messages, m->seq, false);
}

static uint64_t
original_hash(struct ident id)
{
    return hash_mix(id.low ^ (uint64_t)id.high << 32);
}

static bool
original_equal(const struct hashnode *node, const void *key)
{
    const struct extra *f = container_of(node, const struct extra, node);

    return ident_equal(f->id, *(const struct ident *)key);
}

struct message *
backlog_find(const struct backlog *b, uint32_t tag, struct ident id)
{
    struct hashnode *node;

    if (id.high == tag) {
        struct message *m = seqmap_find(&b->messages, id.low);

        if (m != NULL && !message_has_original(m))
            return m;
    }
    node = hashmap_find(&b->originals, original_hash(id), original_equal, &id);
    return node == NULL ? NULL : container_of(node, struct extra, node)->message;
}

void
backlog_add_original(struct backlog *b, struct message *m)
{
    ENSURE(m->backlog == b);
    hashmap_insert(&b->originals, &m->extra->node, original_hash(m->extra->id));
    count_dead_letter(b, m, 1);
}

void
backlog_set_details(struct backlog *b, struct mem *mem, struct message *m,
                    struct details *details)
{
    ENSURE(m->backlog == b);
    mark_changed(b, m->seq);
    count_dead_letter(b, m, SIZE_MAX);
    free_key(b, m);
    message_set_details(mem, m, details);
    count_dead_letter(b, m, 1);
}

static bool
holds_this_key(const struct hashnode *node, const void *key)
{
    const struct extra *e = container_of(node, const struct extra, key_node);

    return bytes_equal(e->details->view.unique.key, *(const struct bytes *)key);
}

struct message *
backlog_find_key(const struct backlog *b, struct bytes key, uint64_t hash)
{
    struct hashnode *node = hashmap_find(&b->unique, hash, holds_this_key, &key);

    return node == NULL ? NULL : container_of(node, struct extra, key_node)->message;
}

void
backlog_hold_key(struct backlog *b, struct message *m, uint64_t hash)
{
    struct message *other;

    ENSURE(m->backlog == b && !m->extra->holds_key);
    if (!store_holds_key(&m->extra->details->view))
        return;
    other = backlog_find_key(b, message_key(m), hash);
    if (other != NULL)
        free_key(b, other);
    hashmap_insert(&b->unique, &m->extra->key_node, hash);
    m->extra->holds_key = true;
}

static bool
runs_audit(const struct backlog *b, size_t *unloaded, size_t *sealed)
{
    const struct run *r;

    if (!seqmap_audit(&b->runs))
        return false;
    for (uint64_t at = 0; (r = seqmap_next_live(&b->runs, &at)) != NULL; at++) {
        if (r->first != at * RUN_MESSAGES || r->backlog != b || r->stored == 0 ||
            (r->unloaded & ~r->stored) != 0 || (r->changed & ~r->stored) != 0 ||
            (r->changed & r->unloaded) != 0 ||
            deadline_armed(&r->due) != (r->unloaded != 0))
            return false;
        for (uint64_t rest = r->stored; rest != 0; rest &= rest - 1) {
            const uint64_t seq = r->first + run_lowest(rest);
            const bool here = seqmap_find(&b->messages, seq) != NULL;

            if (here == ((r->unloaded & run_bit(seq)) != 0))
                return false;
        }
        *unloaded += run_count(r->unloaded);
        *sealed += run_count(r->unloaded & r->sealed);
    }
    return true;
}

bool
backlog_audit(const struct backlog *b)
{
    size_t live = 0, claimed = 0, original = 0, dead_letters = 0, sealed = 0;
    size_t unloaded = 0, unique = 0;
    uint64_t seq = 0;
    struct message *m;

    if (!seqmap_audit(&b->messages) || !hashmap_audit(&b->originals) ||
        !hashmap_audit(&b->unique) || !seqmap_audit(&b->claims) || b->claims.ready != 0 ||
        !runs_audit(b, &unloaded, &sealed))
        return false;
    while ((m = seqmap_next_live(&b->messages, &seq)) != NULL) {
        bool ready = m->claim == NULL && !m->delayed;

        if (m->seq != seq || m->backlog != b || !deadline_armed(&m->due) ||
            m->due.due_ms > m->expires_ms ||
            (!m->delayed && m->due.due_ms != m->expires_ms))
            return false;
        if (seqmap_is_ready(&b->messages, seq) != ready)
            return false;
        if (m->extra != NULL && m->extra->message != m)
            return false;
        if (message_has_original(m) && backlog_find(b, 0, m->extra->id) != m)
            return false;
        if (m->extra != NULL && m->extra->holds_key) {
            unique++;
            if (backlog_find_key(b, message_key(m), m->extra->key_node.hash) != m ||
                !store_holds_key(&m->extra->details->view))
                return false;
        }
        live++;
        claimed += m->claim != NULL;
        original += message_has_original(m);
        dead_letters += message_is_dead_letter(m);
        sealed += store_is_sealed(message_body(m));
        seq++;
    }
    return live == b->messages.live && claimed == b->claimed &&
           original == b->originals.count && unique == b->unique.count &&
           dead_letters == b->dead_letters && sealed == b->sealed &&
           unloaded == b->unloaded;
}
