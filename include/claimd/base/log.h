/*
 * log: one line an event, key=value text or JSON, written whole.
 *
 * Only the edges log (main, http, notify): libraries return a status.
 *
 * By itself a log writes with one write(2) a line, and waits where that waits. A server
 * gives it a writer, a thread that waits for the reader instead:
 *
 *     log_write() --> [ whole lines, at most LOG_WRITER_ROOM bytes ] --> thread --> write(2)
 *
 * The descriptor may block: it is often shared with other processes, so the log leaves it as
 * it is, and only the thread waits. If a reader falls behind by more than the buffer, the log
 * drops lines: from the first that finds no room, all until those in the buffer are written.
 * Lines that cannot be written (nobody has the other end open, the disk is full) are lost too.
 * Where lines are missing stands "log_lines_dropped count=N", as soon as something can be
 * written there.
 *
 *   Order    that of log_write(); a line is never torn, and written within one write(2) of
 *            at most PIPE_BUF bytes, so that lines of several processes do not mix
 *   Cost     with a writer a copy under a lock. The thread sleeps while there is nothing to
 *            write. The first line wakes it, but not each of many: when it has written what
 *            there is, it naps before it looks for more, and sleeps without a time-out if
 *            there is none. A line is written LOG_WRITER_NAP_MS late at most
 *   Memory   of a writer, from malloc, and touched only as far as lines have ever waited. No
 *            account pays for it: no client can cause more of it, and it may outlive the account
 *   Threads  any may log; lines never mix. Start and end of a writer belong to the log's owner
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
    struct log_writer *writer; /* owned; NULL: whoever logs writes */
};

struct log_field {
    const char *key;
    struct bytes text; /* shown when present, else number */
    int64_t number;
};

#define LOG_S(k, v) ((struct log_field){.key = (k), .text = bytes_str(v)})
#define LOG_B(k, v) ((struct log_field){.key = (k), .text = (v)})
#define LOG_I(k, v) ((struct log_field){.key = (k), .number = (int64_t)(v)})

/*
 * Writes time, level, event and the fields. Texts are escaped, and cut at 512 bytes each;
 * a field that would make the line longer than 4096 bytes is left out.
 * A line that cannot be written is lost: logging never stops the server.
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

enum { LOG_WRITER_ROOM = 1024 * 1024, LOG_WRITER_NAP_MS = 10 };

/*
 * Gives the log a writer. On failure it stays without: whoever logs writes, and may wait.
 * ST_NO_MEMORY; ST_IO without descriptors; ST_UNAVAILABLE without a thread.
 */
enum status log_writer_start(struct log *log);

/* How many lines were dropped so far. Any thread. */
uint64_t log_dropped(const struct log *log);

/*
 * Takes the writer away again, when nobody logs any more: waits until the lines left are
 * written, but for no longer than at_most_ms. True if they are. Otherwise the thread is
 * left to the process's end, or to the reader's, with the descriptor, which has to stay
 * open; and the log writes nothing from then on.
 */
bool log_writer_end(struct log *log, int at_most_ms);

#endif
