#include "main/manual/roff.h"

#include <ctype.h>
#include <string.h>

static void
put(char c)
{
    if (c == '-')
        (void)fputs("\\-", stdout);
    else if (c == '\\')
        (void)fputs("\\e", stdout);
    else if (c == '\'')
        (void)fputs("\\(aq", stdout);
    else
        (void)fputc(c, stdout);
}

static void
put_all(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        put(text[i]);
}

void
roff_text(const char *text)
{
    bool bold = false;

    if (*text == '.') /* no request, wherever a line begins with it */
        (void)fputs("\\&", stdout);
    for (; *text != '\0'; text++) {
        if (*text != '`') {
            put(*text);
            continue;
        }
        bold = !bold;
        (void)fputs(bold ? "\\fB" : "\\fP", stdout);
    }
}

void
roff_entry(const char *name, const char *what)
{
    (void)fputs(".TP\n\\fB", stdout);
    roff_text(name);
    (void)fputs("\\fP\n", stdout);
    roff_text(what);
    (void)fputs(what[strlen(what) - 1] == '.' ? "\n" : ".\n", stdout);
}

void
roff_option(const char *before, const char *name, const char *between, const char *value,
            const char *behind)
{
    (void)fputs(".TP\n\\fB", stdout);
    roff_text(before);
    roff_text(name);
    (void)fputs("\\fP", stdout);
    roff_text(between);
    (void)fputs("\\fI", stdout);
    roff_text(value);
    (void)fputs("\\fP", stdout);
    roff_text(behind);
    (void)fputc('\n', stdout);
}

void
roff_paragraphs(const char *text)
{
    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");
        size_t len = end == NULL ? strlen(text) : (size_t)(end - text);
        char paragraph[2048];

        (void)snprintf(paragraph, sizeof(paragraph), "%.*s", (int)len, text);
        roff_text(paragraph);
        (void)fputs(end == NULL ? "\n" : "\n.PP\n", stdout);
        text += len + (end == NULL ? 0 : 2);
    }
}

/* The letters of a word between brackets and commas. */
static void
put_word(const char *word, size_t len)
{
    size_t from = word[0] == '[' ? 1 : 0, till = len;

    while (till > from && strchr("].", word[till - 1]) != NULL)
        till--;
    put_all(word, from);
    (void)fputs(isupper((unsigned char)word[from]) ? "\\fI" : "\\fB", stdout);
    put_all(word + from, till - from);
    (void)fputs("\\fP", stdout);
    put_all(word + till, len - till);
}

void
roff_usage(const char *usage)
{
    (void)fputs(".HP\n\\fBclaimd\\fP", stdout);
    while (*usage != '\0') {
        size_t len = strcspn(usage, " ");

        (void)fputc(' ', stdout);
        put_word(usage, len);
        usage += len + (usage[len] == ' ' ? 1 : 0);
    }
    (void)fputc('\n', stdout);
}
