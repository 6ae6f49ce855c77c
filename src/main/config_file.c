#include "main/option.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE_MOST = 1 << 20 };

/* What inih's callbacks know. */
struct reading {
    FILE *file;
    struct config *config;
    const char *path;
    struct config_errors *errors;
    size_t left;      /* bytes that may still be read */
    int line;         /* the one that was read last */
    bool needs_key;   /* it must have a key, or it cannot be understood ... */
    bool has_key;     /* ... and inih has found one */
    int odd_line;     /* the first one that could not be understood; 0: none */
    int section_line; /* of the last [section]; 0: none */
    int told_line;    /* that of the last one that was complained about; -1: none */
};

static void
line_error(struct reading *r, const char *what, const char *why)
{
    config_error(r->errors, "%s:%d: %s%s%s", r->path, r->line, what,
                 why[0] == '\0' ? "" : " ", why);
}

static void
fail_to_understand(struct reading *r)
{
    line_error(r, "this is neither a key with a value nor a [section]", "");
    if (r->odd_line == 0)
        r->odd_line = r->line;
}

/* Reads a line without its end. False at the end of the file; *whole tells if it fits. */
static bool
take_line(struct reading *r, char *out, size_t cap, bool *whole)
{
    size_t len = 0;
    bool any = false;

    *whole = true;
    while (r->left > 0) { /* what is behind more than a file may have is not read */
        const int c = getc(r->file);

        if (c == EOF)
            break;
        r->left--;
        any = true;
        if (c == '\n')
            break;
        if (c == '\0' || len + 1 >= cap)
            *whole = false;
        else
            out[len++] = (char)c;
    }
    out[len] = '\0';
    return any;
}

/* Gives inih a line. One that does not fit is complained about and becomes a blank one. */
static char *
read_line(char *out, int cap, void *ctx)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* with which some editors begin */
    struct reading *r = ctx;
    bool whole;
    char start;

    /* Of the lines that it does not understand inih reports only the first. */
    if (r->needs_key && !r->has_key)
        fail_to_understand(r);
    r->needs_key = r->has_key = false;
    if (!take_line(r, out, (size_t)cap, &whole))
        return NULL;
    r->line++;
    if (r->line == 1 && strncmp(out, mark, sizeof(mark) - 1) == 0)
        memmove(out, out + sizeof(mark) - 1, strlen(out) - sizeof(mark) + 2);
    if (!whole) {
        line_error(r, "the line is too long, or no text", "");
        out[0] = '\0';
    }
    /* All but blank lines, comments and sections must have a key with a value. */
    start = out[strspn(out, " \t\r\v\f")];
    if (start == '[' && strchr(out, ']') != NULL)
        r->section_line = r->line;
    else
        r->needs_key = start != '\0' && start != ';' && start != '#';
    return out;
}

static int
take_key(void *ctx, const char *section, const char *name, const char *value)
{
    struct reading *r = ctx;
    const int line = r->line;
    const struct option *option = option_find(bytes_str(name));
    struct config_origin *origin;
    char why[CONFIG_ERROR_CAP];

    r->has_key = true;
    /* Keys stand before all sections or in ours. Of another the keys are checked all the same. */
    if (section[0] != '\0' && strcmp(section, "claimd") != 0 &&
        r->told_line != r->section_line) {
        r->line = r->told_line = r->section_line;
        line_error(r, section, "is not a section. The only section is claimd");
        r->line = line;
    }
    if (option == NULL) {
        line_error(r, name, "is not an option. See claimd --help all");
        return 1;
    }
    origin = &r->config->origins[option - options];
    if (origin->source == CONFIG_FILE) {
        (void)snprintf(why, sizeof(why), "is set a second time, first in line %d",
                       origin->line);
        line_error(r, name, why);
        return 1;
    }
    *origin = (struct config_origin){.source = CONFIG_FILE, .line = r->line};
    if (option_set(option, r->config, bytes_str(value), why) != ST_OK) {
        if (strstr(value, " #") != NULL)
            (void)strncat(why, ". A comment after a value must begin with ;",
                          sizeof(why) - strlen(why) - 1);
        line_error(r, name, why);
        origin->refused = true;
    }
    return 1;
}

/*
 * Opens the file without waiting: a pipe may have no writer, and a device no end. NULL after a
 * complaint.
 */
static FILE *
open_file(const char *path, struct config_errors *errors)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const char *why = NULL;
    FILE *file = NULL;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0)
        why = S_ISDIR(st.st_mode)    ? "is a directory"
              : S_ISFIFO(st.st_mode) ? "is a pipe"
              : S_ISREG(st.st_mode)  ? NULL
                                     : "is a device or a socket";
    if (fd >= 0 && why == NULL)
        file = fdopen(fd, "r");
    if (file != NULL)
        return file;
    if (why == NULL)
        config_error(errors, "%s: %s", path[0] == '\0' ? "CLAIMD_CONFIG" : path,
                     strerror(errno));
    else
        config_error(errors, "%s: %s. --config takes a regular file", path, why);
    if (fd >= 0)
        (void)close(fd); /* nothing was written */
    return NULL;
}

bool
config_file_apply(struct config *config, const char *path, struct config_errors *errors)
{
    struct reading r = {.file = open_file(path, errors),
                        .left = SIZE_MOST + 1,
                        .config = config,
                        .path = path,
                        .told_line = -1,
                        .errors = errors};
    bool readable;
    int failed;

    if (r.file == NULL)
        return false;
    failed = ini_parse_stream(read_line, &r, take_key, &r);
    if (failed > 0 && failed != r.odd_line) {
        r.line = failed; /* we thought that we understood it */
        fail_to_understand(&r);
    }
    readable = failed >= 0 && !ferror(r.file) && r.left > 0;
    if (r.left == 0)
        config_error(errors, "%s is larger than %d bytes, the maximum", path, SIZE_MOST);
    else if (!readable)
        config_error(errors, "%s cannot be read", path);
    (void)fclose(r.file); /* nothing was written */
    return readable;
}
