/*
 * work_line: the lines that a kept command (`claimd work --keep`) writes, one for each
 * message. Pure functions.
 *
 *     {"id": "...", "result": "delete" | "release" | "dead_letter",
 *      "delay": 30, "reason": "..."}
 *
 * `delay` and `reason` may be left out, or be null. Other members are ignored.
 *
 *   Cost     O(length)
 *   Threads  one
 */
#ifndef CLIENT_WORK_LINE_H
#define CLIENT_WORK_LINE_H

#include "client/work_outcome.h"

/* Longest line without its line feed. */
enum { LINE_MOST = 65536 };

struct work_line {
    const char *fault; /* why the line is no valid response. NULL: it is one */
    struct bytes id;   /* as written. Absent: the line has none that can be read */
    /* The rest is only set in a valid response. */
    enum outcome_kind kind; /* DELETE, RETRY or DEAD_LETTER */
    int64_t delay_s;        /* -1: none */
    struct bytes reason;    /* as written, between the quotes. Absent: none */
};

/* Reads a line, from which *l borrows. */
void line_read(struct work_line *l, struct bytes line);

/*
 * The outcome of a message from its line, which may be invalid. line: for the reason of
 * an invalid one.
 */
void outcome_of_line(struct job_outcome *o, const struct job_attempt *a,
                     const struct work_line *l, struct bytes line);

/* Writes "invalid response" with the fault. */
void line_describe(char what[WHAT_MOST + 1], const char *fault);

/* The beginning of a line, for a reason. */
struct bytes line_sample(struct bytes line);

#endif
