/* claimd dump: all that a server, or a journal that no process uses, has, as lines of JSON. */
#include "claimd/api/dump.h"
#include "claimd/engine/engine.h"
#include "main/command.h"
#include "main/web_client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { URL, JOURNAL, PROJECT, TOKEN_FILE };

/* Bytes of lines that are written at once from a journal. */
enum { PAGE = 256 * 1024 };

/* Writes lines; false: standard output does not take them. */
static bool
print_lines(struct bytes lines, uint64_t *count)
{
    for (size_t i = 0; i < lines.len; i++)
        *count += lines.data[i] == '\n';
    return fwrite(lines.data, 1, lines.len, stdout) == lines.len;
}

/* So that a loader knows that it is whole. */
static int
print_end(uint64_t count)
{
    if (printf("{\"end\":%" PRIu64 "}\n", count) < 0 || fflush(stdout) != 0)
        return command_fails(COMMAND_FAILED, "cannot write to standard output: %s",
                             strerror(errno));
    return COMMAND_GOOD;
}

/* ------------------------------------------------------------------ from a server */

static void
write_parameter(struct buf *out, const char *name, struct bytes value)
{
    buf_printf(out, "%s=", name);
    for (size_t i = 0; i < value.len; i++)
        buf_printf(out, "%%%02x", (unsigned char)value.data[i]);
}

/* Takes the last line off a page: {"next":"MARKER"} or {"end":true}. False: it is another. */
static bool
take_last_line(struct bytes *page, struct bytes *marker)
{
    static const char next[] = "{\"next\":\"", end[] = "{\"end\":";
    size_t at = page->len > 0 ? page->len - 1 : 0;
    struct bytes line;

    while (at > 0 && page->data[at - 1] != '\n')
        at--;
    line = bytes_trim(bytes_of(page->data + at, page->len - at));
    page->len = at;
    *marker = BYTES_NONE;
    if (line.len > sizeof(end) && memcmp(line.data, end, sizeof(end) - 1) == 0)
        return true;
    if (line.len < sizeof(next) + 2 || memcmp(line.data, next, sizeof(next) - 1) != 0)
        return false;
    *marker = bytes_of(line.data + sizeof(next) - 1, line.len - sizeof(next) - 1);
    return true;
}

/* Prints a page, and leaves the target of the next one; empty: there is none. */
static int
print_page(const char *project, struct buf *page, struct buf *target, uint64_t *count)
{
    struct bytes lines = buf_view(page), marker;

    if (!take_last_line(&lines, &marker))
        return command_fails(COMMAND_FAILED, "the response is not a dump. Check the URL");
    if (!print_lines(lines, count))
        return command_fails(COMMAND_FAILED, "cannot write to standard output: %s",
                             strerror(errno));
    buf_reset(target, SIZE_MAX);
    if (!bytes_present(marker))
        return COMMAND_GOOD;
    buf_str(target, "/claimd/dump?");
    write_parameter(target, "marker", marker);
    if (project != NULL) {
        buf_byte(target, '&');
        write_parameter(target, "project", bytes_str(project));
    }
    return COMMAND_GOOD;
}

static int
dump_pages(struct web_client *c, const char *project, struct buf *page,
           struct buf *target)
{
    uint64_t count = 0;
    int status = COMMAND_GOOD, code = 0;

    buf_str(target, "/claimd/dump");
    if (project != NULL)
        write_parameter(target, "?project", bytes_str(project));
    while (status == COMMAND_GOOD && target->len > 0) {
        buf_byte(target, '\0');
        if (target->failed)
            return command_fails(COMMAND_FAILED, "%s", status_text(ST_NO_MEMORY));
        status = web_client_ask(c, target->data, BYTES_NONE, &code, page);
        if (status == COMMAND_GOOD && code != 200)
            return command_fails(COMMAND_FAILED, "%s responded with status %d. %.*s",
                                 c->url, code, page->len > 300 ? 300 : (int)page->len,
                                 page->len == 0 ? "" : page->data);
        if (status == COMMAND_GOOD)
            status = print_page(project, page, target, &count);
    }
    return status == COMMAND_GOOD ? print_end(count) : status;
}

static int
dump_server(const struct command_words *words)
{
    struct buf page, target;
    struct web_client c;
    int status;

    if (!web_client_open(&c, words->values[URL], words->values[TOKEN_FILE], words->mem))
        return COMMAND_FAILED;
    buf_init(&page, words->mem);
    buf_init(&target, words->mem);
    status = dump_pages(&c, words->values[PROJECT], &page, &target);
    buf_fini(&target);
    buf_fini(&page);
    web_client_close(&c);
    return status;
}

/* ------------------------------------------------------------------ from a journal */

static int
print_store(struct store *store, int64_t now_ms, const char *project, struct buf *out)
{
    struct store_visit visit = {.now_ms = now_ms};
    struct dump dump = {.begun = false};
    uint64_t count = 0;

    while (!dump.done) {
        enum status st =
            dump_lines(store, &visit, project == NULL ? BYTES_NONE : bytes_str(project),
                       PAGE, &dump, out);

        if (st != ST_OK && st != ST_AGAIN)
            return command_fails(COMMAND_FAILED, "%s", status_text(st));
        if (!print_lines(buf_view(out), &count))
            return command_fails(COMMAND_FAILED, "cannot write to standard output: %s",
                                 strerror(errno));
        buf_reset(out, SIZE_MAX);
    }
    return print_end(count);
}

/* A journal of a clock that is ahead (ci) is dumped at the time that it has come to. */
static int
dump_replayed(struct disk *d, const char *path, const char *project)
{
    const struct journal_eyes eyes = {.damage = NULL};
    struct command_replay r;
    struct buf out;
    int status = command_replay_open(&r, d, path, &eyes);
    const int64_t now_ms =
        r.found.now_ms < r.found.last_ms ? r.found.last_ms : r.found.now_ms;

    buf_init(&out, r.mem);
    if (status == COMMAND_GOOD && r.found.damages > 0)
        status = command_fails(
            COMMAND_DAMAGED,
            "%s is damaged. Run claimd verify DIR --salvage OUT, then dump OUT", path);
    else if (status == COMMAND_GOOD && (!r.found.replayed || r.found.segments == 0))
        status = command_fails(COMMAND_FAILED, "%s has no journal", path);
    else if (status == COMMAND_GOOD)
        status = print_store(r.store, now_ms, project, &out);
    buf_fini(&out);
    command_replay_close(&r);
    return status;
}

static int
dump_journal(const char *path, const char *project)
{
    struct command_journal j;
    int status = COMMAND_FAILED;

    if (command_journal_open(&j, path,
                             "Dump from that process with --url, or dump a copy made by "
                             "claimd backup"))
        status = dump_replayed(j.disk, path, project);
    command_journal_close(&j);
    return status;
}

/* ------------------------------------------------------------------ the whole */

static int
run_dump(const struct command_words *words)
{
    const char *journal = words->values[JOURNAL];

    if (fcntl(STDOUT_FILENO, F_GETFD) < 0) /* what is opened next would take its place */
        return command_fails(COMMAND_FAILED, "standard output is closed");
    if (journal != NULL &&
        (words->values[URL] != NULL || words->values[TOKEN_FILE] != NULL))
        return command_misused(&command_dump,
                               "--journal cannot be used with --url or --token-file");
    return journal == NULL ? dump_server(words)
                           : dump_journal(journal, words->values[PROJECT]);
}

const struct command command_dump = {
    .name = "dump",
    .call = "dump [OPTION]...",
    .summary = "Write everything a server has as lines of JSON.",
    .usages = {"dump [--url URL] [--token-file FILE] [--project P]",
               "dump --journal DIR [--project P]"},
    .about =
        "Writes all queues and topics with their messages, claims and subscriptions "
        "to standard output, one line of JSON each. `claimd load` reads them. The server "
        "continues to work, so each piece shows the moment at which it was written. If "
        "you "
        "dump a journal, no process may use it. The command does not change the journal.",
    .options = {{"--url", "URL",
                 "URL of the server: http://HOST:PORT, https://HOST:PORT or unix:PATH. "
                 "Default: http://127.0.0.1:8888"},
                {"--journal", "DIR", "Read this journal instead of a server."},
                {"--project", "P", "Write only the data of this project."},
                {"--token-file", "FILE",
                 "File with a token of an operator or admin for all projects."}},
    .example = "claimd dump --url http://127.0.0.1:8888 > claimd.dump",
    .ends =
        {"The dump is complete. Its last line contains the number of lines before it.",
         "The dump could not be read or written completely.", "The arguments are wrong.",
         "The journal is damaged."},
    .run = run_dump};
