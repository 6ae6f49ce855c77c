/*
 * record: a change of the store as bytes, and back (docs/journal.md, "Records").
 *
 * One table per type lists its fields, for both directions. Everything is little-endian and packed.
 * Zeros pad a record to a multiple of 8. Reading trusts nothing: a record is read whole before
 * anything of it is used.
 */
#ifndef JOURNAL_RECORD_H
#define JOURNAL_RECORD_H

#include "claimd/store/record.h"

/* On disk: never renumbered, never reused. */
enum record_type {
    RECORD_QUEUE = 1,
    RECORD_META = 2,
    RECORD_QUEUE_GONE = 3,
    RECORD_PURGE = 4,
    RECORD_POST = 5,
    RECORD_DELETE = 6,
    RECORD_CLAIM = 7,
    RECORD_RENEW = 8,
    RECORD_RELEASE = 9,
    RECORD_MOVE = 10,
    RECORD_SUBSCRIPTION = 11,
    RECORD_SUBSCRIPTION_GONE = 12,
    RECORD_UNSUBSCRIBED = 13,
    RECORD_CURSOR = 14,
    RECORD_STATE = 15,
    RECORD_FEED = 16,
    RECORD_MARK = 17,
    RECORD_TYPES
};

/* What a MARK says. */
enum record_mark {
    MARK_OPENED = 1,           /* a server starts; the numbers that were used up before */
    MARK_CHECKPOINT_BEGIN = 2, /* records of a checkpoint follow */
    MARK_CHECKPOINT_END = 3,   /* all of them are there, since the LSN that it names */
    MARK_CLOSED = 4            /* the server ended in peace */
};

enum { RECORD_HEAD_BYTES = 24 };

/* A MARK. */
struct mark {
    enum record_mark what;
    struct store_marks used;
    uint64_t since; /* CHECKPOINT_END: LSN of its CHECKPOINT_BEGIN */
};

/* How many bytes a change takes at most, with so many bytes in its bodies and texts. */
size_t record_bound(size_t messages, size_t bytes);

/* The type of a change; 0: it is not logged, since time did it or its queue is transient. */
enum record_type record_type_of(const struct store_change *change);

/*
 * Writes a change, and moves `change` behind its last message. There must be
 * record_bound() bytes. Returns the record's size; 0: it is not logged.
 */
size_t record_write(uint8_t *to, struct store_change *change);

/* record_bound(0, 0) bytes. */
size_t record_write_mark(uint8_t *to, const struct mark *mark, int64_t now_ms);

/* A record that was read. It borrows the bytes, and is not to be moved. */
struct record {
    enum record_type type;
    struct store_change change; /* of all but MARK */
    struct mark mark;
    const uint8_t *at; /* private: the next message */
    size_t left;
    struct store_metadata metadata;
    struct store_checksum checksum;
    struct store_subscription_record subscription;
};

/*
 * Reads the record that the bytes begin with. ST_BAD_VALUE: it is none, or one of a type
 * that is not known here.
 */
enum status record_read(const uint8_t *from, size_t len, struct record *out);

/* The size of that record, with its padding; 0: there is none. */
size_t record_size(const uint8_t *from, size_t len);

/* "POST", "CLAIM"; NULL for a number that is no type. */
const char *record_type_name(enum record_type type);

#endif
