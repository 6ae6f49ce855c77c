/*
 * move: moves messages from one queue to another, whose shards are both locked: dead
 * letters, and dead letters that are put back.
 *
 * The locks of shards are taken in the order of the shards
 * (docs/adr/0003-dead-letters.md). So a message is always in exactly one of the queues. A
 * message keeps its id.
 */
#ifndef ENGINE_MOVE_H
#define ENGINE_MOVE_H

#include "engine/txn.h"

enum {
    MOVE_SLICE = 64, /* messages of a move, at most */
    MOVE_CHANGES =
        4 /* of a move in the log: QUEUE, MOVE, DETAILS, numbers of the target */
};

/* Messages that must be encrypted for the target, and their encrypted copies, which are
 * made without a lock. */
struct move_seals {
    struct store_queue where; /* the target of the copies; its name is in `name` */
    struct details *name;     /* owned; NULL: there are no copies */
    uint64_t hash;            /* of where */
    size_t count;
    struct {
        struct message *clear;  /* pinned */
        struct message *sealed; /* owned copy; NULL: not made, or moved */
    } pairs[MOVE_SLICE];
    enum status failed; /* not ST_OK: a copy could not be made */
};

static inline void
move_seals_init(struct move_seals *seals)
{
    seals->name = NULL;
    seals->count = 0;
    seals->failed = ST_OK;
}

/* The new parts of a message that moves. */
struct moving {
    struct bytes reason; /* of the worker that dead-letters it; absent: none */
    enum store_cause cause;
    struct extra *extra;     /* owned, as are the next two; NULL: it has one */
    struct details *details; /* its details in the target */
    struct message *sealed;  /* moves instead; NULL: none */
};

struct move {
    struct txn *from;         /* of the source, whose shard is locked */
    struct shard *shard;      /* of the target, locked; may be from->shard */
    struct store_queue where; /* the target */
    uint64_t hash;            /* of where */
    struct bytes client;      /* of the worker, for the reasons; absent: none */
    bool back;                /* dead letters go back; false: they become dead letters */
    bool keeps_count;         /* back: the messages keep their delivery counts */
    bool whole;               /* all messages move, of any size, or none */
    size_t spare;             /* nodes of the target's pool that others have reserved */
    size_t posted;            /* messages that the same step posts to the target before */
    size_t count;
    struct message *messages[MOVE_SLICE];
    /* Private: */
    uint64_t numbers[MOVE_SLICE]; /* in the source */
    struct moving all[MOVE_SLICE];
    size_t bytes;  /* of the bodies in the target */
    size_t logged; /* bytes in the log, at most */
    struct queue *target;
    bool made; /* the target is new and not linked yet */
};

/* Begins a move without messages. The target need not exist: it is made if needed.
 * ST_NO_MEMORY. Ends with move_commit(), or with move_undo(). */
enum status move_begin(struct move *move);

/* The same to a queue that exists when the move commits. Cannot fail. */
void move_begin_to(struct move *move, struct queue *target);

/* Adds a message of the source. `cause` and `reason` are of a dead letter. False: the
 * move has enough messages or bytes. */
bool move_add(struct move *move, struct message *m, enum store_cause cause,
              struct bytes reason);

/*
 * Does everything that can fail. Unless it is whole, the move may lose messages at its
 * end that are not encrypted yet. ST_SEALED: it needs encrypted copies: undo, release the
 * locks, call move_make_seals(), and try again. ST_NO_MEMORY; statuses of the log and of
 * the sealer.
 */
enum status move_reserve(struct move *move, struct move_seals *seals);
void move_undo(struct move *move);

/*
 * Moves the messages, and logs them. The change refers to the move: if it is collected in
 * a group, the move must live until the group ends. A claim that held one of them does
 * not count it any more: the caller does so (claim_drop_message()) when nothing reserved
 * is left.
 */
void move_commit(struct move *move);

/* Reserves and commits a move, as one group of the log, or undoes it. */
enum status move_execute(struct move *move, struct move_seals *seals);

/* Encrypts the messages that move_reserve() asked for. Without locks. */
void move_make_seals(struct move_seals *seals, const struct core *core);

/* Frees encrypted copies that were not moved. Without locks. */
void move_seals_fini(struct move_seals *seals, const struct core *core);

/*
 * A transaction on a queue and the target of a move. find() is called under the lock of
 * the queue, and sets the target's name in `where`, which is the address of the queue
 * else.
 */
struct move_pair {
    struct txn from;
    struct shard *target;     /* locked; may be from.shard; NULL: there is no target */
    struct store_queue where; /* the target; its name may be a text of from.queue */
    uint64_t hash;            /* of where */
    bool (*find)(struct move_pair *pair); /* false: there is no target */
};

/* Begins: locks both shards, and expires what is due in the source. ST_AGAIN: as
 * txn_begin(). */
enum status move_pair_begin(struct move_pair *pair, struct store *s, struct store_op *op,
                            const struct store_queue *where);
void move_pair_end(struct move_pair *pair);

/* The details of m after a worker gave it back with a reason (absent: none). */
struct store_details details_with_reason(const struct message *m, struct bytes reason,
                                         struct bytes client, int64_t now_ms);

#endif
