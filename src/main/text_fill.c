#include "main/text_fill.h"

#include <stdbool.h>
#include <string.h>

const char text_indent[TEXT_INDENT + 1] = "        ";

void
text_fill(const char *text, size_t at, const char *before, FILE *to)
{
    bool first = true;

    while (*text != '\0') {
        size_t len = strcspn(text, " \n");
        bool ends = strncmp(text + len, "\n\n", 2) == 0;

        if (!first && at + 1 + len > TEXT_COLUMNS) {
            (void)fprintf(to, "\n%s", before);
            at = strlen(before);
            first = true;
        }
        (void)fprintf(to, "%s%.*s", first ? "" : " ", (int)len, text);
        at += len + (first ? 0 : 1);
        first = ends;
        text += len + (text[len] == '\0' ? 0 : ends ? 2 : 1);
        if (ends) {
            (void)fprintf(to, "\n\n%s", before);
            at = strlen(before);
        }
    }
    (void)fputc('\n', to);
}

void
text_entry(const char *name, const char *what, FILE *to)
{
    (void)fprintf(to, "  %s\n%s", name, text_indent);
    text_fill(what, TEXT_INDENT, text_indent, to);
}
