#include "journal/record_type.h"

struct row {
    const char *name; /* NULL: there is no such type */
    enum store_change_kind kind;
    enum record_form form;
};

static const struct row rows[] = {
    [RECORD_QUEUE] = {"QUEUE", STORE_CHANGE_QUEUE, RECORD_FORM_NONE},
    [RECORD_META] = {"META", STORE_CHANGE_META, RECORD_FORM_NONE},
    [RECORD_QUEUE_GONE] = {"QUEUE_GONE", STORE_CHANGE_QUEUE_GONE, RECORD_FORM_NONE},
    [RECORD_PURGE] = {"PURGE", STORE_CHANGE_PURGE, RECORD_FORM_NONE},
    [RECORD_POST] = {"POST", STORE_CHANGE_POST, RECORD_FORM_LONG},
    [RECORD_DELETE] = {"DELETE", STORE_CHANGE_DELETE, RECORD_FORM_NUMBER},
    [RECORD_CLAIM] = {"CLAIM", STORE_CHANGE_CLAIM, RECORD_FORM_SHORT},
    [RECORD_RENEW] = {"RENEW", STORE_CHANGE_RENEW, RECORD_FORM_SHORT},
    [RECORD_RELEASE] = {"RELEASE", STORE_CHANGE_RELEASE, RECORD_FORM_SHORT},
    [RECORD_MOVE] = {"MOVE", STORE_CHANGE_MOVE, RECORD_FORM_LONG},
    [RECORD_IMAGE_QUEUE] = {"IMAGE_QUEUE", STORE_CHANGE_IMAGE_QUEUE, RECORD_FORM_NONE},
    [RECORD_IMAGE_CLAIM] = {"IMAGE_CLAIM", STORE_CHANGE_IMAGE_CLAIM, RECORD_FORM_SHORT},
    [RECORD_IMAGE] = {"IMAGE", STORE_CHANGE_IMAGE, RECORD_FORM_LONG},
    [RECORD_MARK] = {"MARK", STORE_CHANGE_KINDS, RECORD_FORM_NONE},
    [RECORD_SUBSCRIPTION] = {"SUBSCRIPTION", STORE_CHANGE_SUBSCRIPTION, RECORD_FORM_NONE},
    [RECORD_CURSOR] = {"CURSOR", STORE_CHANGE_CURSOR, RECORD_FORM_NONE},
    [RECORD_RESET] = {"RESET", STORE_CHANGE_KINDS, RECORD_FORM_NONE},
    [RECORD_EXTENSION] = {"EXTENSION", STORE_CHANGE_KINDS, RECORD_FORM_NONE},
    [RECORD_SUBSCRIPTION_GONE] = {"SUBSCRIPTION_GONE", STORE_CHANGE_SUBSCRIPTION_GONE,
                                  RECORD_FORM_NONE},
    [RECORD_UNSUBSCRIBED] = {"UNSUBSCRIBED", STORE_CHANGE_UNSUBSCRIBED, RECORD_FORM_NONE},
    [RECORD_IMAGE_SUBSCRIPTION] = {"IMAGE_SUBSCRIPTION", STORE_CHANGE_IMAGE_SUBSCRIPTION,
                                   RECORD_FORM_NONE},
    [RECORD_IMAGE_FEED] = {"IMAGE_FEED", STORE_CHANGE_IMAGE_FEED, RECORD_FORM_LONG},
};

static const struct row nothing = {NULL, STORE_CHANGE_KINDS, RECORD_FORM_NONE};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const struct row *
row_of(enum record_type type)
{
    size_t i = (size_t)type;

    return i < ROWS && rows[i].name != NULL ? &rows[i] : &nothing;
}

const char *
record_type_name(enum record_type type)
{
    return row_of(type)->name;
}

enum store_change_kind
record_kind_of(enum record_type type)
{
    return row_of(type)->kind;
}

enum record_form
record_form_of(enum record_type type)
{
    return row_of(type)->form;
}

/* A queue and who is subscribed to it are logged also if the messages are not. */
static bool
is_about_the_queue(enum store_change_kind kind)
{
    switch (kind) {
    case STORE_CHANGE_QUEUE:
    case STORE_CHANGE_META:
    case STORE_CHANGE_QUEUE_GONE:
    case STORE_CHANGE_IMAGE_QUEUE:
    case STORE_CHANGE_SUBSCRIPTION:
    case STORE_CHANGE_SUBSCRIPTION_GONE:
    case STORE_CHANGE_UNSUBSCRIBED:
    case STORE_CHANGE_IMAGE_SUBSCRIPTION:
        return true;
    default:
        return false;
    }
}

enum record_type
record_type_of(const struct store_change *change)
{
    /* What is moved out of the log's sight is gone; what comes into it is moved there. */
    if (change->kind == STORE_CHANGE_MOVE && change->target_transient)
        return change->transient ? 0 : RECORD_DELETE;
    if (change->transient && change->kind != STORE_CHANGE_MOVE &&
        !is_about_the_queue(change->kind))
        return 0;
    for (size_t i = RECORD_QUEUE; i < ROWS; i++)
        if (rows[i].name != NULL && rows[i].kind == change->kind)
            return (enum record_type)i;
    return 0;
}
