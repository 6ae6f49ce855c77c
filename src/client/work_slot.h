/*
 * work_slot: a process of a kept command (`claimd work --keep`), and the jobs that it
 * has. It writes and reads lines, and knows no requests. work_keep.c decides.
 *
 *             start                   input closed, or told to end
 *     EMPTY ----------> RUNS ----------------------------------------> ENDS
 *       ^                 |                                              |
 *       +-----------------+----------------- the process is over --------+
 *
 * The first `sent` of its jobs have a line on the way to the process, in the order of
 * `jobs`. The others wait, also for the next process.
 *
 *   Memory   the lines of at most SLOT_AHEAD bytes, and one more, wait for the pipe
 *   Times    milliseconds of now_ms()
 *   Threads  one. SIGPIPE must be blocked or ignored
 */
#ifndef CLIENT_WORK_SLOT_H
#define CLIENT_WORK_SLOT_H

#include "client/work_claim.h"
#include "client/work_line.h"

/* Most jobs of a slot; responses whose repetition is recognised. */
enum { SLOT_JOBS_MOST = 100, SLOT_ANSWERED = 128 };

enum { SLOT_AHEAD = 32768 };

enum slot_state { SLOT_EMPTY, SLOT_RUNS, SLOT_ENDS };

struct work_slot {
    enum slot_state state;
    struct work_process process;
    struct work_job *jobs[SLOT_JOBS_MOST]; /* borrowed; `count` */
    size_t count, sent;
    struct buf lines;         /* for the process, from `lines_at` on */
    size_t lines_at;          /* the pipe has taken what is before */
    uint64_t written;         /* bytes of all lines for this process */
    size_t read_len;          /* bytes of `read` */
    int64_t responses;        /* valid ones of this process */
    bool blameless;           /* the runner ends it, not for a fault of its own */
    int64_t start_ms;         /* EMPTY: no start before */
    int64_t pause_ms;         /* before the last start; 0: none */
    int64_t end_ms;           /* it is told to end then. INT64_MAX: not, or it was */
    int64_t closed_ms;        /* it has closed standard input or output. INT64_MAX: not */
    int64_t term_ms, kill_ms; /* as its guard knows them */
    unsigned polled;          /* files of it in the last poll, as bits */
    size_t answered_at;
    uint64_t answered[SLOT_ANSWERED]; /* hashes of ids; a ring */
    char fault[WHAT_MOST + 1];        /* "": none */
    size_t sample_len;
    char sample[PROCESS_TAIL]; /* more about the fault */
    char read[LINE_MOST + 1];  /* output of the process, from the start of a line */
};

/* Makes an EMPTY slot. */
void slot_init(struct work_slot *s, struct mem *mem);

/* Closes the files of the process, and forgets its lines and its jobs. */
void slot_fini(struct work_slot *s);

/* Adds a job behind the others. There must be space for it. */
void slot_add(struct work_slot *s, struct work_job *j);

/* Removes a job. */
void slot_remove(struct work_slot *s, struct work_job *j);

/* The job with this id that was sent; NULL: there is none. */
struct work_job *slot_find(const struct work_slot *s, struct bytes id);

/* Remembers that the process has responded for this id. */
void slot_remember(struct work_slot *s, struct bytes id);

/* True if the process has responded for this id, and few others since. */
bool slot_has_answered(const struct work_slot *s, struct bytes id);

/*
 * Writes the line of the next job that waits, without sending it. deadline_s: Unix time
 * of --timeout, 0 without. False without memory: then the process must end.
 */
bool slot_write(struct work_slot *s, int64_t deadline_s);

/* True if there is a job that waits, and its line may be written now. */
bool slot_has_next(const struct work_slot *s);

/* Sends what the pipe takes. False: the process has closed its standard input. */
bool slot_send(struct work_slot *s);

/*
 * Reads what the process wrote, once. Returns 1; 0: there is nothing now, or no space
 * before a line was taken; -1: the process has closed its standard output.
 */
int slot_read(struct work_slot *s);

/*
 * Takes the next line that was read, without its line feed. *taken: 0 at first. Pass its
 * last value to slot_drop().
 */
bool slot_next_line(const struct work_slot *s, size_t *taken, struct bytes *line);

/* Forgets bytes that were taken. False: the line behind them is longer than LINE_MOST. */
bool slot_drop(struct work_slot *s, size_t taken);

/* The process is over, and no job of it is sent any more: the slot is EMPTY. */
void slot_clear(struct work_slot *s);

/*
 * Jobs whose lines the process has not begun to read become jobs that wait, unless the
 * runner has told them to end.
 */
void slot_take_back(struct work_slot *s);

#endif
