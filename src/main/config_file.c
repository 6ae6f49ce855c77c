#include "main/config_file.h"

#include "main/option.h"

#include <errno.h>
#include <ini.h>

/* What inih's callbacks know. */
struct reading {
    FILE *file;
    struct config *config;
    const char *path;
    char *error;
    int line; /* the one that was read last */
    enum status st;
};

static int
fail(struct reading *r, const char *what, const char *why)
{
    /* A text that is too long is cut. */
    if (r->st == ST_OK && snprintf(r->error, CONFIG_ERROR_CAP, "%s:%d: %s%s%s", r->path,
                                   r->line, what, why[0] == '\0' ? "" : " ", why) < 0)
        r->error[0] = '\0';
    r->st = ST_BAD_VALUE;
    return 0;
}

/* fgets() that counts: inih does not tell its handler where it is. */
static char *
read_line(char *out, int cap, void *ctx)
{
    struct reading *r = ctx;
    char *line = r->st == ST_OK ? fgets(out, cap, r->file) : NULL;

    if (line == NULL)
        return NULL;
    r->line++;
    if (strchr(line, '\n') == NULL && !feof(r->file)) {
        (void)fail(r, "the line is too long", "");
        return NULL;
    }
    return line;
}

static int
take_key(void *ctx, const char *section, const char *name, const char *value)
{
    struct reading *r = ctx;
    const struct option *option = option_find(bytes_str(name));
    struct config_origin *origin;
    char why[CONFIG_ERROR_CAP];

    if (section[0] != '\0' && strcmp(section, "claimd") != 0)
        return fail(r, section, "is not a section; the only one is claimd");
    if (option == NULL)
        return fail(r, name, "is not an option");
    origin = &r->config->origins[option - options];
    if (origin->source == CONFIG_FILE)
        return fail(r, name, "is set a second time");
    if (option_set(option, r->config, bytes_str(value), why) != ST_OK)
        return fail(r, name, why);
    *origin = (struct config_origin){CONFIG_FILE, r->line};
    return 1;
}

enum status
config_file_apply(struct config *config, const char *path, char error[CONFIG_ERROR_CAP])
{
    struct reading r = {.file = fopen(path, "re"),
                        .config = config,
                        .path = path,
                        .error = error,
                        .st = ST_OK};
    int failed;

    if (r.file == NULL) {
        (void)snprintf(error, CONFIG_ERROR_CAP, "%s: %s", path, strerror(errno));
        return ST_BAD_VALUE;
    }
    failed = ini_parse_stream(read_line, &r, take_key, &r);
    if (failed > 0 && r.st == ST_OK) {
        r.line = failed;
        (void)fail(&r, "this is neither a key with a value nor a [section]", "");
    } else if ((failed < 0 || ferror(r.file)) && r.st == ST_OK) {
        (void)snprintf(error, CONFIG_ERROR_CAP, "%s: cannot be read", path);
        r.st = ST_BAD_VALUE;
    }
    (void)fclose(r.file); /* nothing was written */
    return r.st;
}
