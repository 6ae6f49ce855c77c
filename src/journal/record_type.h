/*
 * record_type: which changes are logged as what, and in what form.
 */
#ifndef JOURNAL_RECORD_TYPE_H
#define JOURNAL_RECORD_TYPE_H

#include "journal/record.h"

/* How the messages of a type are written. */
enum record_form {
    RECORD_FORM_NONE,  /* it has none */
    RECORD_FORM_LONG,  /* whole */
    RECORD_FORM_SHORT, /* the values that a claim changes */
    RECORD_FORM_NUMBER /* named only */
};

/* The type of a change; 0: it is not logged. */
enum record_type record_type_of(const struct store_change *change);

/* The other way round; STORE_CHANGE_KINDS: it is no change. */
enum store_change_kind record_kind_of(enum record_type type);

enum record_form record_form_of(enum record_type type);

/* Sizes on disk of what can follow a head. */
enum {
    MARKS_BYTES = 24,
    SETTINGS_BYTES = 40,
    DOCUMENT_BYTES =
        8 + SETTINGS_BYTES, /* flags, lengths and settings; the texts follow */
    QUEUE_BYTES = 24 + MARKS_BYTES + 8 + DOCUMENT_BYTES,
    GONE_BYTES = 16 + MARKS_BYTES,
    CLAIM_BYTES = 24 + STORE_ID_CAP,
    MOVE_BYTES = 8,
    SUBSCRIPTION_BYTES = 72 + STORE_ID_CAP, /* the texts follow */
    CURSOR_BYTES = 48,
    SUBSCRIPTION_GONE_BYTES = 8,
    MARK_BYTES = 16 + MARKS_BYTES,
    LONG_BYTES = 56,   /* a message: what all have */
    EXTRAS_BYTES = 64, /* what it may have besides: a delay, a claim, a checksum, an id */
    SHORT_BYTES = 20,
    NUMBER_BYTES = 8
};

/* Flags of a document, of a subscription, and of a message; others are refused, they may mean anything. */
enum {
    DOCUMENT_TRANSIENT = 1,
    DOCUMENT_DEAD_LETTER = 2,
    DOCUMENT_ENCRYPT = 4,
    DOCUMENT_FLAGS = 7
};
enum { SUBSCRIPTION_CONFIRMED = 1, SUBSCRIPTION_ATTACHED = 2, SUBSCRIPTION_FLAGS = 3 };
enum {
    MESSAGE_CHECKSUM = 1,
    MESSAGE_FOREIGN = 2,
    MESSAGE_DELAYED = 4,
    MESSAGE_HELD = 8,
    MESSAGE_FLAGS = 15
};

#endif
