#include "client/text.h"

#include "claimd/base/command.h"
#include "claimd/base/utf8.h"

#include <stdio.h>
#include <wchar.h>

/* Columns of the character at the begin, and its length in bytes. */
static size_t
char_columns(struct bytes text, size_t *len)
{
    uint32_t point = 0;
    int columns;

    *len = utf8_next(text, &point);
    if (*len == 0)
        *len = 1;
    columns = wcwidth((wchar_t)point);
    return columns < 0 ? 1 : (size_t)columns;
}

size_t
text_width(struct bytes text)
{
    size_t width = 0, len;

    for (; text.len > 0; text = bytes_of(text.data + len, text.len - len))
        width += char_columns(text, &len);
    return width;
}

static void
add_spaces(struct buf *out, size_t count)
{
    while (count-- > 0)
        buf_byte(out, ' ');
}

void
text_fit(struct buf *out, struct bytes text, size_t width, bool right)
{
    const size_t needs = text_width(text);
    size_t used = 0, len, columns;

    if (needs <= width) {
        if (right)
            add_spaces(out, width - needs);
        buf_bytes(out, text);
        if (!right)
            add_spaces(out, width - needs);
        return;
    }
    if (width == 0)
        return;
    for (; text.len > 0; text = bytes_of(text.data + len, text.len - len)) {
        columns = char_columns(text, &len);
        if (used + columns > width - 1)
            break;
        buf_add(out, text.data, len);
        used += columns;
    }
    buf_str(out, "…");
    add_spaces(out, width - 1 - used);
}

void
sparkline_write(struct buf *out, const int64_t *values, size_t count)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int64_t most = 0;

    for (size_t i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    for (size_t i = 0; i < count; i++) {
        const double part = most == 0 ? 0 : (double)values[i] / (double)most;

        buf_str(out, blocks[values[i] <= 0 ? 0 : 1 + (size_t)(part * 7)]);
    }
}

void
fact_write(struct buf *out, const char *label, const char *text)
{
    if (text == NULL)
        return;
    buf_printf(out, "%-13s ", label);
    utf8_escape(out, bytes_str(text));
    buf_byte(out, '\n');
}

/* ------------------------------------------------------------------ output */

int
print_text(struct buf *text)
{
    const struct bytes all = buf_view(text);
    const bool failed = text->failed;

    if (!failed)
        (void)fwrite(all.data, 1, all.len, stdout); /* command_run() checks it */
    buf_fini(text);
    return failed ? command_no_memory() : COMMAND_GOOD;
}

int
print_json(struct buf *document)
{
    struct buf line;

    buf_init(&line, document->mem);
    utf8_escape_json(&line, bytes_trim(buf_view(document)));
    buf_byte(&line, '\n');
    line.failed |= document->failed;
    buf_fini(document);
    return print_text(&line);
}

/* ------------------------------------------------------------------ times */

void
duration_write(struct buf *out, int64_t seconds)
{
    const int64_t s = seconds < 0 ? 0 : seconds;

    if (s < 60)
        buf_printf(out, "%llds", (long long)s);
    else if (s < 3600)
        buf_printf(out, "%lldm%02llds", (long long)(s / 60), (long long)(s % 60));
    else if (s < 86400)
        buf_printf(out, "%lldh%02lldm", (long long)(s / 3600),
                   (long long)(s % 3600 / 60));
    else
        buf_printf(out, "%lldd%02lldh", (long long)(s / 86400),
                   (long long)(s % 86400 / 3600));
}

bool
duration_read(struct bytes text, int64_t least, int64_t most, int64_t *seconds)
{
    static const struct {
        char name;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    int64_t unit = 1, value;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && text.len > 1; i++)
        if (text.data[text.len - 1] == units[i].name) {
            unit = units[i].seconds;
            text.len--;
            break;
        }
    if (!bytes_to_i64(text, &value) || value < 0 || value > INT64_MAX / unit ||
        value * unit < least || value * unit > most)
        return false;
    *seconds = value * unit;
    return true;
}
