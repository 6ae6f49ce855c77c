#include "claimd/base/invariant.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of this thread; no state of the process. */
static _Thread_local const char *context;

const char *
invariant_context(const char *id)
{
    const char *before = context;

    context = id;
    return before;
}

/* The line is built by hand, since printf() may allocate, and locks a stream. */
enum { TEXT_CAP = 200 };

struct failure_line {
    char text[1024];
    size_t len;
};

/* Appends a text, but leaves space for the rest of the line. */
static void
put(struct failure_line *line, const char *text)
{
    size_t len = strnlen(text, TEXT_CAP);

    if (len > sizeof(line->text) - line->len)
        len = sizeof(line->text) - line->len;
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

static void
put_number(struct failure_line *line, int64_t number)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

    digits[at] = '\0';
    do
        digits[--at] = (char)('0' + left % 10);
    while ((left /= 10) != 0);
    if (number < 0)
        digits[--at] = '-';
    put(line, digits + at);
}

/* Writes the line with one write(), so that lines of other processes do not mix with
 * it. */
static _Noreturn void
put_place_and_abort(struct failure_line *line, const char *file, int number,
                    const char *function)
{
    const char *id = context;

    put(line, ", at ");
    put(line, file);
    put(line, ":");
    put_number(line, number);
    put(line, " in ");
    put(line, function);
    put(line, "()");
    if (id != NULL) {
        put(line, ", request ");
        put(line, id);
    }
    put(line, "\n");
    if (write(STDERR_FILENO, line->text, line->len) < 0)
        abort(); /* if stderr is closed, the core has it */
    abort();
}

void
invariant_broken(const char *expected, const char *file, int line, const char *function)
{
    struct failure_line text = {.len = 0};

    put(&text, "claimd: broken invariant: ");
    put(&text, expected);
    put_place_and_abort(&text, file, line, function);
}

void
invariant_unequal(int64_t a, int64_t b, const char *expected, const char *file, int line,
                  const char *function)
{
    struct failure_line text = {.len = 0};

    put(&text, "claimd: broken invariant: ");
    put(&text, expected);
    put(&text, " (");
    put_number(&text, a);
    put(&text, ", ");
    put_number(&text, b);
    put(&text, ")");
    put_place_and_abort(&text, file, line, function);
}
