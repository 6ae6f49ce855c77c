#include "api/wire/warning.h"
#include "claimd/json/reason.h"

#include <stdarg.h>
#include <stdio.h>

/* "Claimd-Warning: " and the end of the line. */
enum { HEADER_FRAME = 18 };

/* Copies a text in which nothing ends a line of a head. */
static const char *
copy_escaped(struct arena *arena, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    char *copy = arena_alloc(arena, WARNING_MOST + 1);
    size_t len = 0;

    for (; copy != NULL && *text != '\0' && len + 4 <= WARNING_MOST; text++) {
        const unsigned char byte = (unsigned char)*text;

        if (byte >= ' ' && byte < 0x7f) {
            copy[len++] = *text;
            continue;
        }
        copy[len++] = '\\';
        copy[len++] = 'x';
        copy[len++] = digits[byte >> 4];
        copy[len++] = digits[byte & 15];
    }
    if (copy != NULL)
        copy[len] = '\0';
    return copy;
}

void
warning_add(struct warnings *w, struct arena *arena, const char *format, ...)
{
    char text[WARNING_MOST + 1];
    const char *copy;
    va_list args;

    if (w->count == WARNINGS_MAX)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    copy = copy_escaped(arena, text);
    if (copy != NULL)
        w->texts[w->count++] = copy;
}

void
warning_add_unknown(struct warnings *w, struct arena *arena, const char *kind,
                    struct bytes name, const char *const *known, size_t count)
{
    const char *found = nearest_of(name, known, count);

    warning_add(w, arena, "the %s \"%s\" has no effect here%s%s%s", kind,
                received(name).text, found == NULL ? "" : ". Did you mean \"",
                found == NULL ? "" : found, found == NULL ? "" : "\"?");
}

size_t
warnings_size(const struct warnings *w)
{
    size_t size = 0;

    for (size_t i = 0; i < w->count; i++)
        size += strlen(w->texts[i]) + HEADER_FRAME;
    return size;
}

void
unknown_add(struct unknown_names *names, struct bytes name)
{
    for (size_t i = 0; i < names->count; i++)
        if (bytes_equal(names->all[i], name))
            return;
    if (names->count < WARNINGS_MAX)
        names->all[names->count++] = name;
}
