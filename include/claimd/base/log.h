/*
 * log: one line an event, key=value text or JSON, written whole.
 *
 * Only the edges log (main, http, notify): libraries return a status.
 *
 * By itself a log writes with one write(2) a line, and waits where that waits. A server
 * gives it a writer (log_writer.h), and nobody who logs waits any more.
 *
 *   Threads  any; lines never mix
 */
#ifndef CLAIMD_BASE_LOG_H
#define CLAIMD_BASE_LOG_H

#include "claimd/base/bytes.h"
#include "claimd/base/clock.h"

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

#define LOG_S(k, v)                                                                      \
    {                                                                                    \
        .key = (k), .text = bytes_str(v)                                                 \
    }
#define LOG_B(k, v)                                                                      \
    {                                                                                    \
        .key = (k), .text = (v)                                                          \
    }
#define LOG_I(k, v)                                                                      \
    {                                                                                    \
        .key = (k), .number = (int64_t)(v)                                               \
    }

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

#endif
