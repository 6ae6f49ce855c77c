#include "main/config_file.h"

#include "main/option.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>

/* What inih's callbacks know. */
struct reading {
    FILE *file;
    struct config *config;
    const char *path;
    struct complaints *complaints;
    int line;         /* the one that was read last */
    bool needs_key;   /* it must have a key, or it cannot be understood ... */
    bool has_key;     /* ... and inih has found one */
    int odd_line;     /* the first one that could not be understood; 0: none */
    char section[64]; /* the last one that was complained about, or its beginning */
};

static void
fail(struct reading *r, const char *what, const char *why)
{
    complain(r->complaints, "%s:%d: %s%s%s", r->path, r->line, what,
             why[0] == '\0' ? "" : " ", why);
}

static void
fail_to_understand(struct reading *r)
{
    fail(r, "this is neither a key with a value nor a [section]", "");
    if (r->odd_line == 0)
        r->odd_line = r->line;
}

/* True if a line must have a key with a value: all but blank ones, comments, sections. */
static bool
is_meant_as_key(const char *line)
{
    while (isspace((unsigned char)*line))
        line++;
    if (*line == '[')
        return strchr(line, ']') == NULL;
    return *line != '\0' && *line != ';' && *line != '#';
}

/*
 * Complains about the last line if it had to have a key and inih has found none: of the
 * lines that it does not understand it tells only the first.
 */
static void
settle(struct reading *r)
{
    if (r->needs_key && !r->has_key)
        fail_to_understand(r);
    r->needs_key = r->has_key = false;
}

/* Reads a line without its end. False at the end of the file; *whole tells if it fits. */
static bool
take_line(FILE *file, char *out, size_t cap, bool *whole)
{
    size_t len = 0;
    int c = getc(file);

    *whole = true;
    if (c == EOF)
        return false;
    for (; c != EOF && c != '\n'; c = getc(file)) {
        if (c == '\0' || len + 1 >= cap)
            *whole = false;
        else
            out[len++] = (char)c;
    }
    out[len] = '\0';
    return true;
}

/* Gives inih a line. One that does not fit is complained about and becomes a blank one. */
static char *
read_line(char *out, int cap, void *ctx)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* with which some editors begin */
    struct reading *r = ctx;
    bool whole;

    settle(r);
    if (!take_line(r->file, out, (size_t)cap, &whole))
        return NULL;
    r->line++;
    if (r->line == 1 && strncmp(out, mark, sizeof(mark) - 1) == 0)
        memmove(out, out + sizeof(mark) - 1, strlen(out) - sizeof(mark) + 2);
    if (!whole) {
        fail(r, "the line is too long, or no text", "");
        out[0] = '\0';
    }
    r->needs_key = is_meant_as_key(out);
    return out;
}

/* True for keys before all sections and in ours; others are told of once a section. */
static bool
is_our_section(struct reading *r, const char *section)
{
    if (section[0] == '\0' || strcmp(section, "claimd") == 0)
        return true;
    if (strncmp(r->section, section, sizeof(r->section) - 1) != 0) {
        fail(r, section, "is not a section; the only one is claimd");
        (void)snprintf(r->section, sizeof(r->section), "%s", section);
    }
    return false;
}

static int
take_key(void *ctx, const char *section, const char *name, const char *value)
{
    struct reading *r = ctx;
    const struct option *option = option_find(bytes_str(name));
    struct config_origin *origin;
    char why[CONFIG_ERROR_CAP];

    r->has_key = true;
    if (!is_our_section(r, section))
        return 1;
    if (option == NULL) {
        fail(r, name, "is not an option");
        return 1;
    }
    origin = &r->config->origins[option - options];
    if (origin->source == CONFIG_FILE) {
        fail(r, name, "is set a second time");
        return 1;
    }
    *origin = (struct config_origin){.source = CONFIG_FILE, .line = r->line};
    if (option_set(option, r->config, bytes_str(value), why) != ST_OK) {
        fail(r, name, why);
        origin->refused = true;
    }
    return 1;
}

bool
config_file_apply(struct config *config, const char *path, struct complaints *complaints)
{
    struct reading r = {.file = fopen(path, "re"),
                        .config = config,
                        .path = path,
                        .complaints = complaints};
    bool readable;
    int failed;

    if (r.file == NULL) {
        complain(complaints, "%s: %s", path[0] == '\0' ? "CLAIMD_CONFIG" : path,
                 strerror(errno));
        return false;
    }
    failed = ini_parse_stream(read_line, &r, take_key, &r);
    if (failed > 0 && failed != r.odd_line) {
        r.line = failed; /* we thought that we understood it */
        fail_to_understand(&r);
    }
    readable = failed >= 0 && !ferror(r.file);
    if (!readable)
        complain(complaints, "%s: cannot be read", path);
    (void)fclose(r.file); /* nothing was written */
    return readable;
}
