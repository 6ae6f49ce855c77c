/*
 * log: one line per event, as key=value text or JSON.
 *
 * Only main, http and notify log. Libraries return a status.
 *
 * Without a writer a log writes each line with one write(2), and may wait there. A server
 * gives its log a writer, a thread that waits instead:
 *
 *     log_write() --> [ whole lines, at most LOG_WRITER_CAPACITY bytes ] --> thread -->
 *     write(2)
 *
 * The descriptor may block: it is often shared with other processes, so the log does not
 * change its mode, and only the thread waits. If a reader falls behind by more than the
 * buffer, the log drops lines, until the lines in the buffer are written. Lines that
 * cannot be written (no reader, disk full) are lost, too. In the place of missing lines
 * the log writes "log_lines_dropped count=N" as soon as it can.
 *
 *   Order    that of log_write(). A line is never torn: one write(2) has at most PIPE_BUF
 *            bytes, so lines of several processes do not mix
 *   Cost     with a writer: a copy under a lock. The thread sleeps while there is nothing
 *            to write. The first line wakes it. When it has written all lines, it naps
 *            before it reads the buffer again, and sleeps without a time-out if that is
 *            empty. A line is late by at most LOG_WRITER_NAP_MS
 *   Memory   of a writer: from malloc, touched only as far as lines have ever waited. No
 *            account counts it: clients cannot increase it, and it may outlive the
 *            account
 *   Threads  any may log. The log's owner starts and ends the writer
 */
#ifndef CLAIMD_BASE_LOG_H
#define CLAIMD_BASE_LOG_H

#include "claimd/base/bytes.h"
#include "claimd/base/clock.h"
#include "claimd/base/status.h"

#include <stdatomic.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

struct log_writer;

struct log {
    int fd;                       /* borrowed */
    _Atomic enum log_level level; /* lines above it are dropped; may be set at any time */
    enum log_format format;
    bool priorities; /* each line begins with its level as journald reads it: <4> */
    const struct clock *clock; /* borrowed */
    struct log_writer *writer; /* owned; NULL: log_write() writes */
};

struct log_field {
    const char *key;
    struct bytes text; /* used if present, else number */
    int64_t number;
};

#define LOG_S(k, v) ((struct log_field){.key = (k), .text = bytes_str(v)})
#define LOG_B(k, v) ((struct log_field){.key = (k), .text = (v)})
#define LOG_I(k, v) ((struct log_field){.key = (k), .number = (int64_t)(v)})

/*
 * Writes time, level, event and the fields. Texts are escaped, and cut at 512 bytes each.
 * A field that would make the line longer than 4096 bytes is left out. A line that cannot
 * be written is lost.
 */
void log_write(const struct log *log, enum log_level level, const char *event,
               const struct log_field *fields, size_t count);

/* log_event(log, LOG_INFO, "listening", LOG_S("address", text), LOG_I("port", 8888)) */
#define log_event(log, level, event, ...)                                                \
    log_write((log), (level), (event), (const struct log_field[]){__VA_ARGS__},          \
              sizeof((const struct log_field[]){__VA_ARGS__}) /                          \
                  sizeof(struct log_field))

static inline bool
log_wants(const struct log *log, enum log_level level)
{
    return log != NULL &&
           level <= atomic_load_explicit(&log->level, memory_order_relaxed);
}

enum { LOG_WRITER_CAPACITY = 1024 * 1024, LOG_WRITER_NAP_MS = 10 };

/* Starts a writer. On failure log_write() writes, and may wait. ST_NO_MEMORY; ST_IO
 * without descriptors; ST_UNAVAILABLE without a thread. */
enum status log_writer_start(struct log *log);

/* Number of lines dropped so far. Any thread. */
uint64_t log_dropped(const struct log *log);

/*
 * Ends the writer when no thread logs any more: waits until the lines are written, but at
 * most at_most_ms. True if they are. Otherwise the thread continues with the descriptor,
 * which must stay open, and the log writes nothing from then on.
 */
bool log_writer_end(struct log *log, int at_most_ms);

#endif
