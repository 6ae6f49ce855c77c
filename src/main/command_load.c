/* claimd load: what claimd dump has written, into a server. */
#include "claimd/api/dump.h"
#include "main/command.h"
#include "main/web_client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { URL, TOKEN_FILE, EXISTING };

/* A batch: lines of one queue, so that it is loaded as a whole or not at all. */
enum { BATCH_BYTES = 256 * 1024, BATCH_LINES = 2000, TRIES = 60 };

struct loading {
    struct web_client *client;
    const char *target;
    struct buf batch, answer;
    char *address; /* what the lines of the batch begin with; owned */
    size_t address_len, address_cap;
    uint64_t lines;       /* read so far */
    uint64_t first, held; /* of the batch: its first line, how many it has */
    uint64_t queues, messages, subscriptions;
    struct dump_check check;
};

/* What a line begins with up to what it has: whose it is. 0: it is another kind of line. */
static size_t
address_of(const char *line)
{
    static const char *const members[] = {
        ",\"metadata\":", ",\"message\":", ",\"subscription\":"};
    size_t least = 0;

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const char *found = strstr(line, members[i]);

        if (found != NULL && (least == 0 || (size_t)(found - line) < least))
            least = (size_t)(found - line);
    }
    return least;
}

/* ------------------------------------------------------------------ sending */

/* {"queues":1,"messages":2,"subscriptions":3} */
static void
add_counts(struct loading *l)
{
    uint64_t queues, messages, subscriptions;

    buf_byte(&l->answer, '\0');
    if (l->answer.failed || sscanf(l->answer.data,
                                   "{\"queues\":%" SCNu64 ",\"messages\":%" SCNu64
                                   ",\"subscriptions\":%" SCNu64,
                                   &queues, &messages, &subscriptions) != 3)
        return;
    l->queues += queues;
    l->messages += messages;
    l->subscriptions += subscriptions;
}

/* Sends the batch; again for a while, if the server cannot take it now. */
static int
send_batch(struct loading *l)
{
    const struct timespec second = {.tv_sec = 1};
    int code = 503;

    if (l->held == 0)
        return COMMAND_GOOD;
    for (int i = 0; code == 503 && i < TRIES; i++) {
        int status;

        if (i > 0)
            (void)nanosleep(&second, NULL);
        status =
            web_client_ask(l->client, l->target, buf_view(&l->batch), &code, &l->answer);
        if (status != COMMAND_GOOD)
            return status;
    }
    if (code != 200)
        return command_fails(COMMAND_FAILED,
                             "the server refused lines %" PRIu64 " to %" PRIu64
                             " with status %d. %.*s",
                             l->first, l->first + l->held - 1, code,
                             l->answer.len > 600 ? 600 : (int)l->answer.len,
                             l->answer.len == 0 ? "" : l->answer.data);
    add_counts(l);
    l->held = 0;
    buf_reset(&l->batch, SIZE_MAX);
    return COMMAND_GOOD;
}

/* ------------------------------------------------------------------ reading */

static bool
remember_address(struct loading *l, const char *line, size_t len)
{
    if (len > l->address_cap) {
        char *grown = realloc(l->address, len);

        if (grown == NULL)
            return false;
        l->address = grown;
        l->address_cap = len;
    }
    if (len > 0)
        memcpy(l->address, line, len);
    l->address_len = len;
    return true;
}

static int
take_line(struct loading *l, const char *line, size_t len)
{
    static const char head[] = "{\"claimd\":";
    size_t address = address_of(line);
    enum dump_record record = DUMP_CONTENT;
    int status = COMMAND_GOOD;
    uint64_t announced = 0;
    struct reason why;

    l->lines++;
    if (bytes_trim(bytes_of(line, len)).len == 0)
        return COMMAND_GOOD;
    if (address == 0 && sscanf(line, "{\"end\":%" SCNu64 "}", &announced) == 1)
        record = DUMP_END;
    if (dump_check_record(&l->check, record, announced, &why) != ST_OK)
        return command_fails(COMMAND_FAILED, "line %" PRIu64 ": %s", l->lines, why.text);
    if (l->held == BATCH_LINES || l->batch.len >= BATCH_BYTES || address == 0 ||
        address != l->address_len || memcmp(line, l->address, address) != 0)
        status = send_batch(l); /* the line cannot join the batch */
    if (status != COMMAND_GOOD || record == DUMP_END)
        return status;
    if (l->held == 0)
        l->first = l->lines;
    l->held++;
    buf_add(&l->batch, line, len);
    if (strncmp(line, head, sizeof(head) - 1) == 0)
        buf_str(&l->batch, "\n{\"end\":1}\n"); /* the server checks the version */
    return remember_address(l, line, address) && !l->batch.failed
               ? COMMAND_GOOD
               : command_fails(COMMAND_FAILED, "%s", status_text(ST_NO_MEMORY));
}

static int
load_lines(struct loading *l)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    int status = COMMAND_GOOD;
    struct reason why;

    l->check.needs_end = true;
    while (status == COMMAND_GOOD && (len = getline(&line, &cap, stdin)) > 0)
        status = take_line(l, line, (size_t)len);
    free(line);
    if (status == COMMAND_GOOD)
        status = send_batch(l);
    if (status != COMMAND_GOOD)
        return status;
    (void)printf("loaded: queues and topics %" PRIu64 ", messages %" PRIu64
                 ", subscriptions %" PRIu64 "\n",
                 l->queues, l->messages, l->subscriptions);
    if (dump_check_complete(&l->check, &why) != ST_OK)
        return command_fails(COMMAND_FAILED, "%s", why.text);
    return COMMAND_GOOD;
}

/* ------------------------------------------------------------------ the whole */

static int
run_load(const struct command_words *words)
{
    const char *existing = words->values[EXISTING];
    bool replace = existing != NULL && strcmp(existing, "replace") == 0;
    struct web_client c;
    struct loading l = {.client = &c,
                        .target = replace ? "/claimd/load?replace=true" : "/claimd/load"};
    int status;

    if (existing != NULL && !replace && strcmp(existing, "refuse") != 0)
        return command_misused(&command_load,
                               "--existing is \"%s\". It must be refuse or replace",
                               existing);
    if (!web_client_open(&c, words->values[URL], words->values[TOKEN_FILE], words->mem))
        return COMMAND_FAILED;
    buf_init(&l.batch, words->mem);
    buf_init(&l.answer, words->mem);
    status = load_lines(&l);
    buf_fini(&l.answer);
    buf_fini(&l.batch);
    free(l.address);
    web_client_close(&c);
    return status;
}

const struct command command_load = {
    .name = "load",
    .call = "load [OPTION]...",
    .summary = "Load a dump into a server.",
    .usages = {"load [--url URL] [--token-file FILE] [--existing refuse|replace]"},
    .about =
        "Reads the lines of `claimd dump` from standard input and loads them into a "
        "server, queue by queue. Ages, remaining TTLs and leases continue from their "
        "values at the time of the dump. The command stops at the first line that the "
        "server refuses. The lines before it are loaded.",
    .options = {{"--url", "URL",
                 "URL of the server: http://HOST:PORT, https://HOST:PORT or unix:PATH. "
                 "Default: http://127.0.0.1:8888"},
                {"--token-file", "FILE",
                 "File with a token of an operator or admin for all projects."},
                {"--existing", "refuse|replace",
                 "How to treat a queue that already exists. Default: refuse"}},
    .example = "claimd load --url http://127.0.0.1:8888 < claimd.dump",
    .ends = {"Everything is loaded.",
             "The server refused a line, or the dump is incomplete.",
             "The arguments are wrong."},
    .run = run_load};
