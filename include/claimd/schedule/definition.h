/*
 * definition: a schedule as the store keeps it, and what is due for it.
 *
 * A schedule is a message in the queue of schedules of its project (STORE_SCHEDULES). Its
 * key is "QUEUE/NAME", its body the definition, and its last reason the progress, both as
 * JSON that claimd alone reads. It is delayed until its next due time.
 *
 * All times here are milliseconds since 1970 of the wall clock.
 *
 *   Threads  any: no state
 */
#ifndef CLAIMD_SCHEDULE_DEFINITION_H
#define CLAIMD_SCHEDULE_DEFINITION_H

#include "claimd/base/buf.h"
#include "claimd/schedule/recurrence.h"
#include "claimd/store/types.h"

#define SCHEDULES_NAME "schedules" /* of the queue of schedules of each project */
#define SCHEDULE_KEYS  "schedule/" /* begins each key of schedule_message_key() */

/* The TTL of a schedule: it stays until it is deleted. Seconds, a hundred years. */
#define SCHEDULE_TTL_S (INT64_C(36525) * SECONDS_OF_DAY)

enum {
    SCHEDULE_NAME_MOST = 40,
    SCHEDULE_QUEUE_MOST = 64,
    SCHEDULE_KEY_CAP = 128, /* of schedule_key() and schedule_message_key(), with a NUL */
    SCHEDULE_ERROR_MOST = 200,
    SCHEDULE_MISSED_MOST = 1000,  /* due times that are counted, or posted one by one */
    SCHEDULE_LATE_MS = 60 * 1000, /* see SCHEDULE_MISSED_NONE */
    SCHEDULE_AHEAD_MS = 3 * 3600 * 1000 /* see schedule_plan() */
};

/* Due times that passed while the server was down or could not post. */
enum schedule_missed {
    SCHEDULE_MISSED_LAST, /* post for the latest one */
    SCHEDULE_MISSED_ALL, /* for each, or the latest one of SCHEDULE_MISSED_MOST or more */
    SCHEDULE_MISSED_NONE /* for none that is later than SCHEDULE_LATE_MS */
};

/* A due time while a message of the schedule is still in the queue. */
enum schedule_overlap {
    SCHEDULE_OVERLAP_POST, /* post another one */
    SCHEDULE_OVERLAP_SKIP
};

extern const char *const schedule_missed_names[SCHEDULE_MISSED_NONE + 1];
extern const char *const schedule_overlap_names[SCHEDULE_OVERLAP_SKIP + 1];

/* Texts are borrowed. */
struct schedule {
    struct bytes queue, name;
    struct bytes cron; /* as it was given; absent: by interval */
    struct recurrence recurrence;
    enum schedule_missed missed;
    enum schedule_overlap overlap;
    bool paused;
    int64_t from_ms;        /* due times are later */
    int64_t ttl_s, delay_s; /* of its messages; STORE_UNSET: the defaults */
    struct bytes body;      /* of its messages, JSON */
};

/* The progress of a schedule since it was made. */
struct schedule_progress {
    int64_t last_ms;    /* the latest due time that is done; 0: none */
    int64_t posted_ms;  /* when the latest message was posted; 0: none was */
    int64_t message_ms; /* its due time */
    uint64_t posted, missed, skipped, refused;
    int64_t failing_ms; /* a due time that cannot be posted now; 0: none */
    uint64_t tries;     /* for it */
    char error[SCHEDULE_ERROR_MOST + 1]; /* why; a NUL ends it */
};

/* Appends the definition. */
void schedule_write(struct buf *out, const struct schedule *s);

/* Reads it. Texts point into `text`. ST_BAD_VALUE: also texts that are too long. */
enum status schedule_read(struct bytes text, struct schedule *out);

/* Writes the progress, at most STORE_REASON_MAX bytes. ST_NO_MEMORY. */
enum status schedule_progress_write(struct buf *out, const struct schedule_progress *p);

/* Reads it; absent: of a new schedule. ST_BAD_VALUE. */
enum status schedule_progress_read(struct bytes text, struct schedule_progress *out);

/* The key of a schedule. */
struct bytes
schedule_key(char to[SCHEDULE_KEY_CAP], struct bytes queue, struct bytes name);

/* The key of its message for a due time. It is the same for all due times if the schedule
 * skips overlaps. */
struct bytes
schedule_message_key(char to[SCHEDULE_KEY_CAP], const struct schedule *s, int64_t due_ms);

/* The work for a schedule at some time. */
struct schedule_plan {
    int64_t due_ms;  /* post a message for this due time; 0: do not */
    int64_t last_ms; /* the progress's last_ms afterwards */
    uint64_t missed; /* due times that are missed by this */
    int64_t next_ms; /* the next due time, perhaps already due; RECURRENCE_NEVER: none */
};

/*
 * Plans for a schedule that is not paused. Due times are those after the last one that is
 * done, or after from_ms. But if that is later than now_ms by more than
 * SCHEDULE_AHEAD_MS, the wall clock was corrected, and they are those after now_ms.
 *
 *   Cost     that of recurrence_latest()
 */
void schedule_plan(const struct schedule *s, const struct schedule_progress *p,
                   const struct zone *zone, int64_t now_ms, struct schedule_plan *out);

/* The first due time that is not done; RECURRENCE_NEVER: none. */
int64_t schedule_next_ms(const struct schedule *s, const struct schedule_progress *p,
                         const struct zone *zone, int64_t now_ms);

#endif
