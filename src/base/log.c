#include "base/log_private.h"

#include <stdio.h>
#include <unistd.h>

enum { TEXT_CAP = 512 };

/* What closes a line stands always: "}" and a line feed. */
enum { LINE_END = 2 };

struct line {
    char *text; /* LOG_LINE_CAP bytes */
    size_t len;
    bool full; /* something was cut off */
};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

/* Those of syslog(3), as sd-daemon(3) writes them. */
static const char *const priorities[] = {"<3>", "<4>", "<6>", "<7>"};

static void
put(struct line *line, const char *text, size_t len)
{
    size_t room = LOG_LINE_CAP - LINE_END - line->len;

    if (len > room) {
        len = room;
        line->full = true;
    }
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

static void
put_str(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

static void
put_quoted(struct line *line, struct bytes text)
{
    size_t len = text.len < TEXT_CAP ? text.len : TEXT_CAP;

    put_str(line, "\"");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        char escape[8];

        if (c == '"' || c == '\\')
            (void)snprintf(escape, sizeof(escape), "\\%c", c);
        else if (c < 0x20 ||
                 c >= 0x7f) /* other than ASCII: the text may be cut anywhere */
            (void)snprintf(escape, sizeof(escape), "\\u%04x", c);
        else
            (void)snprintf(escape, sizeof(escape), "%c", c);
        put_str(line, escape);
    }
    put_str(line, "\"");
}

/* Adds a field whole, or not at all if the line has no room for it. */
static void
put_field(struct line *line, const struct log *log, const struct log_field *field)
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
    } else if (plain) { /* no quotation marks behind key= */
        put(line, field->text.data, field->text.len);
    } else {
        put_quoted(line, field->text);
    }
    if (line->full)
        line->len = before;
    line->full = false;
}

size_t
log_format(const struct log *log, enum log_level level, const char *event,
           const struct log_field *fields, size_t count, char out[LOG_LINE_CAP])
{
    struct line line = {.text = out};
    char when[CLOCK_TEXT_CAP];

    if (log->priorities)
        put_str(&line, priorities[level]);
    clock_text(clock_now_ms(log->clock), when);
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

void
log_write(const struct log *log, enum log_level level, const char *event,
          const struct log_field *fields, size_t count)
{
    char line[LOG_LINE_CAP];
    size_t len;

    if (!log_wants(log, level))
        return;
    len = log_format(log, level, event, fields, count, line);
    if (log->writer != NULL)
        log_writer_add(log->writer, line, len);
    else if (write(log->fd, line, len) < 0)
        return; /* a lost line is all that happens */
}
