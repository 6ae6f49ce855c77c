/*
 * config_file: reads an INI file of options with inih, and reports errors with path and
 * line. Declared in config.h (config_file_apply()). inih ignores lines without a key and
 * cuts long ones. So next_line() reads the lines, and reports those that inih would
 * misread. set_key() gives each value to option_set(). Read config_load.c next.
 */
#include "main/option.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE_MOST = 1 << 20 };

/* State of a file, for the callbacks of inih. */
struct ini_reader {
    FILE *file;
    struct config *config;
    const char *path;
    struct config_errors *errors;
    size_t left;       /* bytes that may still be read */
    int line;          /* number of the last line */
    bool needs_key;    /* the line is neither blank nor a comment nor a section */
    bool has_key;      /* inih has found a key in the line */
    int odd_line;      /* the first line that needs a key and has none; 0: none */
    int section_line;  /* the last [section]; 0: none */
    int reported_line; /* the last reported [section]; -1: none */
};

static void
line_error(struct ini_reader *r, const char *what, const char *why)
{
    config_error(r->errors, "%s:%d: %s%s%s", r->path, r->line, what,
                 why[0] == '\0' ? "" : " ", why);
}

static void
report_odd_line(struct ini_reader *r)
{
    line_error(r, "this is neither a key with a value nor a [section]", "");
    if (r->odd_line == 0)
        r->odd_line = r->line;
}

/* Reads a line without its end. False at the end of the file. *whole: it fits and has no
 * NUL. */
static bool
read_raw_line(struct ini_reader *r, char *out, size_t cap, bool *whole)
{
    size_t len = 0;
    bool any = false;

    *whole = true;
    while (r->left > 0) {
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

/* Gives inih a line. Reports a line that does not fit, and makes it blank. */
static char *
next_line(char *out, int cap, void *ctx)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* byte order mark of some editors */
    struct ini_reader *r = ctx;
    bool whole;
    char start;

    /* inih reports only the first line without a key. */
    if (r->needs_key && !r->has_key)
        report_odd_line(r);
    r->needs_key = r->has_key = false;
    if (!read_raw_line(r, out, (size_t)cap, &whole))
        return NULL;
    r->line++;
    if (r->line == 1 && strncmp(out, mark, sizeof(mark) - 1) == 0)
        memmove(out, out + sizeof(mark) - 1, strlen(out) - sizeof(mark) + 2);
    if (!whole) {
        line_error(r, "the line is too long, or no text", "");
        out[0] = '\0';
    }
    /* Lines except blank lines, comments and sections must have a key with a value. */
    start = out[strspn(out, " \t\r\v\f")];
    if (start == '[' && strchr(out, ']') != NULL)
        r->section_line = r->line;
    else
        r->needs_key = start != '\0' && start != ';' && start != '#';
    return out;
}

static int
set_key(void *ctx, const char *section, const char *name, const char *value)
{
    struct ini_reader *r = ctx;
    const int line = r->line;
    const struct option *option = option_find(bytes_str(name));
    struct config_origin *origin;
    char why[CONFIG_ERROR_CAP];

    r->has_key = true;
    /* Keys are before all sections or in [claimd]. Keys in another section are checked,
     * too. */
    if (section[0] != '\0' && strcmp(section, "claimd") != 0 &&
        r->reported_line != r->section_line) {
        r->line = r->reported_line = r->section_line;
        line_error(r, section, "is not a section. The only section is claimd");
        r->line = line;
    }
    if (option == NULL) {
        option = option_nearest(bytes_str(name));
        (void)snprintf(why, sizeof(why), "is not an option%s%s%s. See claimd --help all",
                       option == NULL ? "" : " (did you mean ",
                       option == NULL ? "" : option->name, option == NULL ? "" : "?)");
        line_error(r, name, why);
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

/* Opens a regular file, and never blocks on a pipe or a device. NULL after an error
 * message. */
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
        (void)close(fd);
    return NULL;
}

bool
config_file_apply(struct config *config, const char *path, struct config_errors *errors)
{
    struct ini_reader r = {.file = open_file(path, errors),
                           .left = SIZE_MOST + 1,
                           .config = config,
                           .path = path,
                           .reported_line = -1,
                           .errors = errors};
    bool readable;
    int failed;

    if (r.file == NULL)
        return false;
    failed = ini_parse_stream(next_line, &r, set_key, &r);
    if (failed > 0 && failed != r.odd_line) {
        r.line = failed; /* inih refuses a line that next_line() accepted */
        report_odd_line(&r);
    }
    readable = failed >= 0 && !ferror(r.file) && r.left > 0;
    if (r.left == 0)
        config_error(errors, "%s is larger than %d bytes, the maximum", path, SIZE_MOST);
    else if (!readable)
        config_error(errors, "%s cannot be read", path);
    (void)fclose(r.file); /* read only */
    return readable;
}
