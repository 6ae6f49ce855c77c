#include "schedule/zone_names.h"

#include "claimd/base/nearest.h"
#include "schedule/small_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LIST_MOST = 1 << 20, /* bytes of tzdata.zi, which has 0.1 MB */
    ENTRIES_MOST = 4096, /* of a walk. tzdata has 600 names */
    DEPTH_MOST = 3       /* America/Argentina/Salta */
};

struct name_search {
    int directory;
    struct bytes name;
    char *near; /* the best name so far, if nearest.found */
    struct nearest nearest;
    unsigned entries; /* seen by a walk */
};

static bool
zone_exists(const struct name_search *s, const char *name)
{
    struct stat file;

    return fstatat(s->directory, name, &file, 0) == 0 && S_ISREG(file.st_mode);
}

static void
keep_name(struct name_search *s, const char *name)
{
    memcpy(s->near, name, strlen(name) + 1);
    s->nearest.found = s->near;
}

/* True if the misspelled name is the last part of this one: berlin, of Europe/Berlin. */
static bool
is_city(const struct name_search *s, const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash != NULL && bytes_equal_nocase(s->name, bytes_str(slash + 1));
}

/* Compares a name. tzdata.zi may have names that other packages have as files. */
static void
offer_name(struct name_search *s, const char *name)
{
    struct nearest nearest = s->nearest;

    if (strlen(name) > ZONE_NAME_MOST)
        return;
    nearest_offer(&nearest, name);
    if (is_city(s, name)) {
        nearest.found = name;
        nearest.distance = 0;
    }
    if (nearest.found != name || !zone_exists(s, name))
        return;
    s->nearest = nearest;
    keep_name(s, name);
}

/* ------------------------------------------------------------------ tzdata.zi */

/* Removes the first word of *line and ends it with NUL. */
static char *
cut_word(char **line)
{
    char *word = *line, *space = strchr(word, ' ');

    if (space == NULL) {
        *line = word + strlen(word);
    } else {
        *space = '\0';
        *line = space + 1;
    }
    return word;
}

/* A line is "Z NAME ...", "L EXISTING NAME", or of no interest. */
static void
offer_line(struct name_search *s, char *line)
{
    const char *kind = cut_word(&line), *name;

    if (strcmp(kind, "Z") == 0)
        offer_name(s, cut_word(&line));
    if (strcmp(kind, "L") != 0)
        return;
    name = cut_word(&line);
    /* A link that is not installed, such as US/Eastern, is best replaced by its zone. */
    if (bytes_equal_str(s->name, line) && strlen(name) <= ZONE_NAME_MOST &&
        zone_exists(s, name)) {
        keep_name(s, name);
        s->nearest.distance = 0;
    } else {
        offer_name(s, line);
    }
}

/* False: there is no list. */
static bool
offer_list(struct mem *mem, struct name_search *s)
{
    const int fd = openat(s->directory, "tzdata.zi", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct bytes text;
    char *line, *end;
    enum status st;
    int error;

    if (fd < 0)
        return false;
    st = small_file_read(mem, fd, LIST_MOST, &text, &error);
    (void)close(fd);
    if (st != ST_OK)
        return false;
    line = (char *)(uintptr_t)text.data; /* small_file_read() made it */
    end = line + text.len;
    while (line < end) {
        char *newline = memchr(line, '\n', (size_t)(end - line));

        if (newline == NULL)
            break;
        *newline = '\0';
        offer_line(s, line);
        line = newline + 1;
    }
    small_file_free(mem, text);
    return true;
}

/* ------------------------------------------------------------------ walk */

static void
offer_folder(struct name_search *s, int folder, const char *prefix, int depth);

/* Copies of all zones, or with leap seconds, and the zone of this machine. */
static bool
is_left_out(const char *name)
{
    return strchr(name, '.') != NULL || strcmp(name, "posix") == 0 ||
           strcmp(name, "right") == 0 || strcmp(name, "localtime") == 0;
}

static void
offer_entry(struct name_search *s, int folder, const char *prefix, const char *entry,
            int depth)
{
    char name[ZONE_NAME_MOST + 1];
    int inner, len;

    len =
        snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix == '\0' ? "" : "/", entry);
    if (len >= (int)sizeof(name) || is_left_out(entry))
        return;
    inner = openat(folder, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        offer_name(s, name);
    else if (depth < DEPTH_MOST)
        offer_folder(s, inner, name, depth + 1);
    else
        (void)close(inner);
}

/* Closes `folder`. */
static void
offer_folder(struct name_search *s, int folder, const char *prefix, int depth)
{
    DIR *entries = fdopendir(folder);
    const struct dirent *entry;

    if (entries == NULL) {
        (void)close(folder);
        return;
    }
    while (s->entries++ < ENTRIES_MOST && (entry = readdir(entries)) != NULL)
        offer_entry(s, folder, prefix, entry->d_name, depth);
    (void)closedir(entries);
}

bool
zone_names_nearest(struct mem *mem, int directory, struct bytes name,
                   char near[ZONE_NAME_MOST + 1])
{
    struct name_search s = {.directory = directory,
                            .name = name,
                            .near = near,
                            .nearest = nearest_begin(name)};
    int folder;

    if (!offer_list(mem, &s)) {
        folder = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder >= 0)
            offer_folder(&s, folder, "", 1);
    }
    return s.nearest.found != NULL;
}
