#include "client/ask.h"

#include "claimd/base/command.h"
#include "client/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

enum { BAR_MOST = 40, NUMBERS = 32 };

/* Reads a line, and drops what does not fit. False at the end of the input. */
static bool
read_reply(char *out, int cap)
{
    const bool good = fgets(out, cap, stdin) != NULL;
    int c = good && strchr(out, '\n') == NULL ? 0 : '\n';

    while (c != '\n' && c != EOF)
        c = getchar();
    if (good)
        out[strcspn(out, "\r\n")] = '\0';
    return good;
}

int
ask(const struct command_args *args, bool yes, const char *format, ...)
{
    char text[512], reply[16];
    va_list given;

    if (yes)
        return COMMAND_GOOD;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return command_misused(args->name, "there is no terminal to ask on. Use --yes, "
                                           "or --dry-run to see what would happen");
    va_start(given, format);
    (void)vsnprintf(text, sizeof(text), format, given);
    va_end(given);
    (void)fflush(stdout);
    (void)fprintf(stderr, "%s [y/N] ", text);
    (void)fflush(stderr);
    if (read_reply(reply, sizeof(reply)) &&
        (strcasecmp(reply, "y") == 0 || strcasecmp(reply, "yes") == 0))
        return COMMAND_GOOD;
    return command_fails(COMMAND_FAILED, "nothing was changed");
}

void
progress_show(int64_t done, int64_t total)
{
    const size_t width = terminal_width(stderr);
    char bar[BAR_MOST + 1], numbers[NUMBERS * 2];
    size_t columns, full;
    int len;

    if (width == 0 || total <= 0)
        return;
    len = snprintf(numbers, sizeof(numbers), "%lld of %lld", (long long)done,
                   (long long)total);
    columns = width > (size_t)len + 5 ? width - (size_t)len - 5 : 0;
    columns = columns > BAR_MOST ? BAR_MOST : columns;
    full = done < total ? columns * (size_t)done / (size_t)total : columns;
    for (size_t i = 0; i < columns; i++)
        bar[i] = i < full ? '#' : '.';
    bar[columns] = '\0';
    (void)fprintf(stderr, "\r\033[K");
    if (columns > 0)
        (void)fprintf(stderr, "[%s] ", bar);
    (void)fprintf(stderr, "%.*s", (int)width - 1, numbers);
    (void)fflush(stderr);
}

void
progress_end(void)
{
    if (terminal_width(stderr) > 0)
        (void)fprintf(stderr, "\r\033[K");
}
