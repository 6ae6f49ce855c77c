/*
 * record: the encoding of changes of the store (docs/journal.md, "Records").
 *
 * One table per type lists its fields, for both directions. Everything is little-endian
 * and packed. Zeros pad a record to a multiple of 8. Reading trusts nothing: a record is
 * checked completely before any of it is used.
 */
#ifndef JOURNAL_RECORD_H
#define JOURNAL_RECORD_H

#include "claimd/store/record.h"

/* The types of records: an enum store_change_kind, or RECORD_MARK. */
enum { RECORD_MARK = 17, RECORD_TYPES = STORE_CHANGE_LOGGED };

/* The kinds of a MARK. */
enum record_mark {
    MARK_OPENED = 1,           /* a server started; the numbers used before */
    MARK_CHECKPOINT_BEGIN = 2, /* records of a checkpoint follow */
    MARK_CHECKPOINT_END = 3,   /* the checkpoint since LSN `since` is whole */
    MARK_CLOSED = 4,           /* the server stopped cleanly */
    MARK_FILE_GONE = 5         /* the body file `since` has no messages, and is removed */
};

enum { RECORD_HEAD_BYTES = 24 };

/* A MARK. */
struct mark {
    enum record_mark what;
    struct store_marks used;
    uint64_t since; /* CHECKPOINT_END: LSN of its CHECKPOINT_BEGIN; FILE_GONE: number */
};

/* The largest size of a change with so many bytes in its bodies and texts. */
size_t record_bound(size_t messages, size_t bytes);

/* The type of a change; 0: not logged, because it is an expiry or its queue is
 * transient. */
unsigned record_type_of(const struct store_change *change);

/* Writes a change, and iterates over its messages. Needs record_bound() bytes. Returns
 * the size of the record; 0: the change is not logged. */
size_t record_write(uint8_t *to, struct store_change *change);

/* True if records of this type may need a feature of their segment (frame.h); and those
 * that the change needs, iterating over its messages. */
bool record_may_need_features(unsigned type);
unsigned record_features(struct store_change *change);

/* Writes a mark: at most record_bound(0, 0) bytes. Returns its size. */
size_t record_write_mark(uint8_t *to, const struct mark *mark, int64_t now_ms);

/* A record that was read. It borrows the bytes, and must not be moved. */
struct record {
    unsigned type;
    struct store_change change; /* of all types but MARK */
    struct mark mark;
    const uint8_t *at; /* private: the next message */
    size_t left;
    struct store_metadata metadata;
    struct store_checksum checksum;
    struct store_details details;
    struct store_key_record key;
    struct store_run_record run;
    struct store_subscription_record subscription;
};

/* Reads the record at the beginning of the bytes. ST_BAD_VALUE: there is none, or its
 * type is unknown. */
enum status record_read(const uint8_t *from, size_t len, struct record *out);

/* The size of that record with its padding; 0: there is none. */
size_t record_size(const uint8_t *from, size_t len);

/* "POST", "CLAIM"; NULL for a number that is no type. */
const char *record_type_name(unsigned type);

#endif
