#include "claimd/base/log.h"

#include "claimd/base/counter.h"
#include "claimd/base/invariant.h"
#include "claimd/base/lock.h"
#include "claimd/base/thread.h"
#include "claimd/base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LINE_CAP = 4096 /* including the line feed */, TEXT_CAP = 512 };

/* ------------------------------------------------------------------ lines */

/* The end of each line: "}" and a line feed. */
enum { LINE_END = 2 };

struct log_line {
    char *text; /* LINE_CAP bytes */
    size_t len;
    bool full; /* the line was cut */
};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* Priorities of syslog(3), as sd-daemon(3) writes them. */
static const char *const priorities[] = {"<3>", "<4>", "<6>", "<7>"};

static void
put(struct log_line *line, const char *text, size_t len)
{
    size_t space = LINE_CAP - LINE_END - line->len;

    if (len > space) {
        len = space;
        line->full = true;
    }
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

static void
put_str(struct log_line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* Adds the first character of a text, or an escape for it. Returns its length in
 * bytes. */
static size_t
put_char(struct log_line *line, struct bytes text, bool json)
{
    uint32_t point = 0;
    const size_t len = utf8_next(text, &point);
    char escape[8];

    if (len == 0) /* not UTF-8. JSON has no escape for a byte, so the text gets one */
        (void)snprintf(escape, sizeof(escape), "%s\\x%02x", json ? "\\" : "",
                       (unsigned char)text.data[0]);
    else if (point == '"' || point == '\\')
        (void)snprintf(escape, sizeof(escape), "\\%c", (char)point);
    else if (utf8_is_control(point))
        (void)snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)point);
    else
        escape[0] = '\0';
    if (escape[0] == '\0')
        put(line, text.data, len);
    else
        put_str(line, escape);
    return len == 0 ? 1 : len;
}

/* Cuts a text to TEXT_CAP bytes, between two characters. */
static struct bytes
cut_text(struct bytes text)
{
    size_t len = TEXT_CAP;

    if (text.len <= TEXT_CAP)
        return text;
    while (len > TEXT_CAP - 3 && utf8_is_tail((unsigned char)text.data[len]))
        len--;
    return bytes_of(text.data, len);
}

static void
put_quoted(struct log_line *line, struct bytes text, bool json)
{
    put_str(line, "\"");
    text = cut_text(text);
    while (text.len > 0) {
        const size_t len = put_char(line, text, json);

        text = bytes_of(text.data + len, text.len - len);
    }
    put_str(line, "\"");
}

/* Adds a whole field, or nothing if the line has no space for it. */
static void
put_field(struct log_line *line, const struct log *log, const struct log_field *field)
{
    size_t before = line->len;
    bool plain =
        log->format == LOG_TEXT && field->text.len > 0 && field->text.len <= TEXT_CAP;
    char number[24];

    for (size_t i = 0; plain && i < field->text.len; i++)
        plain = (unsigned char)field->text.data[i] > ' ' &&
                (unsigned char)field->text.data[i] < 0x7f &&
                strchr("\"\\=", field->text.data[i]) == NULL;

    put_str(line, log->format == LOG_JSON ? ", \"" : " ");
    put_str(line, field->key);
    put_str(line, log->format == LOG_JSON ? "\": " : "=");
    if (!bytes_present(field->text)) {
        (void)snprintf(number, sizeof(number), "%lld", (long long)field->number);
        put_str(line, number);
    } else if (plain) { /* key=value without quotation marks */
        put(line, field->text.data, field->text.len);
    } else {
        put_quoted(line, field->text, log->format == LOG_JSON);
    }
    if (line->full)
        line->len = before;
    line->full = false;
}

/* Formats a line as log_write() describes it, of any level. Returns its length. */
static size_t
format_line(const struct log *log, enum log_level level, const char *event,
            const struct log_field *fields, size_t count, char out[LINE_CAP])
{
    struct log_line line = {.text = out};
    char when[CLOCK_TEXT_CAP];

    if (log->priorities)
        put_str(&line, priorities[level]);
    clock_text(clock_wall_ms(log->clock), when);
    put_str(&line, log->format == LOG_JSON ? "{\"time\": \"" : "");
    put_str(&line, when);
    put_str(&line, log->format == LOG_JSON ? "\", \"level\": \"" : " ");
    put_str(&line, level_names[level]);
    put_str(&line, log->format == LOG_JSON ? "\", \"event\": \"" : " ");
    put_str(&line, event);
    put_str(&line, log->format == LOG_JSON ? "\"" : "");
    for (size_t i = 0; i < count; i++)
        put_field(&line, log, &fields[i]);
    if (log->format == LOG_JSON)
        line.text[line.len++] = '}';
    line.text[line.len++] = '\n';
    return line.len;
}

/* ------------------------------------------------------------------ the writer */

/*
 * The buffer holds whole lines. A line that does not fit at the end begins at the start
 * again. Then the upper lines end at `end`:
 *
 *          tail        head                   head      tail       end
 *     [     |== lines ==|     ]      [== lines ==|       |== lines ==|  ]
 *
 * An empty buffer begins at the start again, so a log that keeps up uses a page or two of
 * it.
 */
enum state {
    AWAKE,   /* it will read the buffer before it sleeps */
    NAPPING, /* it will read soon; woken only if the buffer fills up */
    ASLEEP   /* it has to be woken */
};

struct log_writer {
    struct log log;   /* the destination; a copy, without a writer */
    struct lock lock; /* guards what follows; never held while writing */
    size_t head, tail, end;
    bool wrapped;           /* head is behind tail */
    size_t taken;           /* bytes at tail that the thread is writing */
    uint64_t missed;        /* lines dropped behind those in the buffer */
    struct counter dropped; /* since the start; written with the lock */
    enum state state;       /* of the thread; a waker sets AWAKE */
    bool ending;            /* no more lines will come */
    bool gone;              /* the thread has ended: log_writer_end() frees this */
    bool abandoned;         /* log_writer_end() has ended: the thread frees this */

    /* Private to the thread: */
    uint64_t lost;          /* lines lost before the next ones */
    bool torn;              /* the last write ended within a line */
    char gap[1 + LINE_CAP]; /* a line feed, and the line about the lost ones */
    size_t gap_len;         /* length of that line */

    int wake_fd, done_fd; /* owned */
    pthread_t thread;
    char space[LOG_WRITER_CAPACITY];
};

/* Bytes in the buffer, also those that are being written. */
static size_t
waiting(const struct log_writer *w)
{
    return w->wrapped ? w->end - w->tail + w->head : w->head - w->tail;
}

/* The whole lines that one write(2) takes without mixing with other processes' lines. */
static struct bytes
first_lines(const struct log_writer *w)
{
    const char *first = w->space + w->tail;
    size_t len = (w->wrapped ? w->end : w->head) - w->tail;
    const char *last;

    if (len <= PIPE_BUF)
        return bytes_of(first, len);
    last = memrchr(first, '\n', PIPE_BUF);
    ENSURE(last != NULL); /* no line exceeds PIPE_BUF */
    return bytes_of(first, (size_t)(last + 1 - first));
}

/* Releases the lock, and wakes the thread if it is asleep. */
static void
release_and_wake(struct log_writer *w, enum state deepest)
{
    bool wake = w->state >= deepest;

    if (wake)
        w->state = AWAKE;
    lock_release(&w->lock);
    if (wake)
        (void)eventfd_write(w->wake_fd, 1); /* the counter is far from its limit */
}

/* Adds a copy of a line to the buffer, or drops and counts it. Never waits for I/O. */
static void
writer_add(struct log_writer *w, const char *line, size_t len)
{
    lock_acquire(&w->lock);
    if (w->missed == 0 && !w->wrapped && sizeof(w->space) - w->head < len &&
        w->tail >= len) {
        w->end = w->head;
        w->head = 0;
        w->wrapped = true;
    }
    if (w->missed == 0 && (w->wrapped ? w->tail : sizeof(w->space)) - w->head >= len) {
        memcpy(w->space + w->head, line, len);
        w->head += len;
    } else {
        w->missed++;
        counter_add(&w->dropped, 1);
    }
    release_and_wake(w, waiting(w) > LOG_WRITER_CAPACITY / 2 ? NAPPING : ASLEEP);
}

void
log_write(const struct log *log, enum log_level level, const char *event,
          const struct log_field *fields, size_t count)
{
    char line[LINE_CAP];
    size_t len;

    if (!log_wants(log, level))
        return;
    len = format_line(log, level, event, fields, count, line);
    if (log->writer != NULL)
        writer_add(log->writer, line, len);
    else if (write(log->fd, line, len) < 0)
        return; /* the only effect is a lost line */
}

uint64_t
log_dropped(const struct log *log)
{
    return log->writer == NULL ? 0 : counter_read(&log->writer->dropped);
}

/* True if there is nothing to do yet, and the writer has not ended. */
static bool
idle(const struct log_writer *w)
{
    return waiting(w) == 0 && w->missed == 0 && !w->ending;
}

/* Sleeps for at most timeout ms, -1: until it is woken. Called, and returns, with the
 * lock held. */
static void
rest(struct log_writer *w, enum state state, int at_most_ms)
{
    struct pollfd woken = {.fd = w->wake_fd, .events = POLLIN};
    eventfd_t count;

    w->state = state;
    lock_release(&w->lock);
    (void)poll(&woken, 1, at_most_ms);
    (void)eventfd_read(w->wake_fd, &count); /* fails after a time-out */
    lock_acquire(&w->lock);
    w->state = AWAKE;
}

/* Frees the written lines and takes the next ones; none if only the message about lost
 * lines is left. False: there will be no more, or the writer was abandoned. */
static bool
next_lines(struct log_writer *w, struct bytes *lines)
{
    bool more = true;

    lock_acquire(&w->lock);
    w->tail += w->taken;
    w->taken = 0;
    if (w->wrapped && w->tail == w->end) {
        w->tail = 0;
        w->wrapped = false;
    }
    if (!w->wrapped && w->tail == w->head)
        w->tail = w->head = 0;
    if (idle(w))
        rest(w, NAPPING, LOG_WRITER_NAP_MS);
    while (idle(w))
        rest(w, ASLEEP, -1);
    *lines = first_lines(w);
    w->taken = lines->len;
    if (lines->len == 0) {
        more = w->missed > 0;
        w->lost += w->missed; /* all lines before the gap are written */
        w->missed = 0;
    }
    if (w->abandoned)
        more = false;
    /* Under the lock: the log's clock may be gone once the writer is abandoned. */
    if (more && w->lost > 0)
        w->gap_len = format_line(&w->log, LOG_WARN, "log_lines_dropped",
                                 (const struct log_field[]){LOG_I("count", w->lost)}, 1,
                                 w->gap + 1);
    lock_release(&w->lock);
    return more;
}

/* Writes lines, and waits as long as it takes. Returns the lines that cannot be
 * written. */
static struct bytes
write_out(struct log_writer *w, struct bytes text)
{
    struct pollfd writable = {.fd = w->log.fd, .events = POLLOUT};
    struct bytes rest = text;

    while (rest.len > 0) {
        ssize_t n = write(w->log.fd, rest.data, rest.len);

        if (n > 0)
            rest = bytes_of(rest.data + n, rest.len - (size_t)n);
        else if (n < 0 && errno == EAGAIN)
            (void)poll(&writable, 1, -1); /* another process made it non-blocking */
        else if (n == 0 || errno != EINTR)
            break;
    }
    if (rest.len < text.len)
        w->torn = rest.data[-1] != '\n';
    return rest;
}

static void
writer_free(struct log_writer *w)
{
    if (w->wake_fd >= 0)
        (void)close(w->wake_fd);
    if (w->done_fd >= 0)
        (void)close(w->done_fd);
    lock_fini(&w->lock);
    free(w);
}

static void *
write_lines(void *arg)
{
    struct log_writer *w = arg;
    struct bytes lines;
    bool abandoned;

    while (next_lines(w, &lines)) {
        uint64_t count = 0;

        /* The rest of a partly written line becomes a line of its own. */
        if (w->lost > 0 &&
            write_out(w, bytes_of(w->gap + !w->torn, w->gap_len + w->torn)).len == 0)
            w->lost = 0;
        if (w->lost == 0)
            lines = write_out(w, lines);
        for (size_t i = 0; i < lines.len;
             i++) /* count the lines that could not be written */
            count += lines.data[i] == '\n';
        w->lost += count;
        lock_acquire(&w->lock);
        counter_add(&w->dropped, count);
        lock_release(&w->lock);
    }
    lock_acquire(&w->lock);
    w->gone = true;
    abandoned = w->abandoned;
    lock_release(&w->lock);
    if (abandoned)
        writer_free(w);
    else
        (void)eventfd_write(w->done_fd, 1); /* the counter was 0 */
    return NULL;
}

enum status
log_writer_start(struct log *log)
{
    struct log_writer *w = malloc(sizeof(*w));
    enum status st = ST_IO;

    if (w == NULL)
        return ST_NO_MEMORY;
    memset(w, 0, offsetof(struct log_writer, space)); /* not yet touched */
    w->gap[0] = '\n';
    lock_init(&w->lock);
    w->log = *log;
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->done_fd = eventfd(0, EFD_CLOEXEC);
    if (w->wake_fd < 0 || w->done_fd < 0)
        goto fail;
    st = thread_start(&w->thread, write_lines, w);
    if (st != ST_OK)
        goto fail;
    log->writer = w;
    return ST_OK;

fail:
    writer_free(w);
    return st;
}

bool
log_writer_end(struct log *log, int at_most_ms)
{
    struct log_writer *w = log->writer;
    struct pollfd done;
    pthread_t thread;
    bool gone;

    if (w == NULL)
        return true;
    done = (struct pollfd){.fd = w->done_fd, .events = POLLIN};
    thread = w->thread;
    log->writer = NULL;
    lock_acquire(&w->lock);
    w->ending = true;
    release_and_wake(w, NAPPING);
    (void)poll(&done, 1, at_most_ms);
    lock_acquire(&w->lock);
    gone = w->gone;
    w->abandoned = !gone;
    lock_release(&w->lock);
    if (!gone) {
        log->fd = -1;
        (void)pthread_detach(thread); /* w may belong to the thread from now on */
        return false;
    }
    (void)pthread_join(thread, NULL);
    writer_free(w);
    return true;
}
