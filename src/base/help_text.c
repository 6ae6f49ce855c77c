#include "claimd/base/help_text.h"

#include <stdbool.h>
#include <string.h>

static const char indent[HELP_INDENT + 1] = "        ";

void
help_print_filled(const char *text, size_t at, const char *before, FILE *to)
{
    bool first = true;

    while (*text != '\0') {
        size_t len = strcspn(text, " \n");
        bool ends = strncmp(text + len, "\n\n", 2) == 0;

        if (!first && at + 1 + len > HELP_COLUMNS) {
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
help_print_below(const char *label, const char *text, FILE *to)
{
    (void)fprintf(to, "%s%s", indent, label);
    help_print_filled(text, HELP_INDENT + strlen(label), indent, to);
}

void
help_print_entry(const char *name, const char *text, FILE *to)
{
    (void)fprintf(to, "  %s\n", name);
    help_print_below("", text, to);
}

void
help_print_record(const char *const *texts, size_t count, FILE *to)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = texts[i] == NULL ? "" : texts[i];

        for (; *at != '\0'; at++)
            if (*at == '\n')
                (void)fputs("\\n", to);
            else
                (void)fputc(*at, to);
        (void)fputc(i + 1 < count ? '\t' : '\n', to);
    }
}
