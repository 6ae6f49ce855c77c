/*
 * claimd check: compares values of queues and of the journal with thresholds, and prints
 * one line and exits as Nagios and programs like it expect.
 *
 * The table is at the end (command.h). The queues come page by page (client.h), the
 * journal from /metrics.
 */
#include "client/command.h"
#include "client/text.h"

#include "claimd/base/plural.h"
#include "claimd/base/utf8.h"
#include "claimd/json/string.h"

#include <stdio.h>

enum { CHECK_WARN, CHECK_CRIT };

/* Exit statuses of such a check. */
enum level { LEVEL_OK, LEVEL_WARNING, LEVEL_CRITICAL, LEVEL_UNKNOWN };

static const char *const level_names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

enum { READY, OLDEST, DEAD, JOURNAL, VALUES };

static const struct {
    const char *name, *words;
    const char *unit; /* for programs */
} values[VALUES] = {[READY] = {"ready", "ready messages", ""},
                    [OLDEST] = {"oldest", "oldest ready message", "s"},
                    [DEAD] = {"dead", "dead letters", ""},
                    [JOURNAL] = {"journal", "journal full", "%"}};

static const char usual_warn[] = "oldest=5m,dead=1,journal=80";
static const char usual_crit[] = "oldest=1h,journal=95";

enum { PROBLEMS_SHOWN = 3, NONE = -1 };

struct check {
    struct client *client;
    const struct command_args *args;
    int64_t limits[LEVEL_UNKNOWN][VALUES]; /* by level; NONE: no limit */
    int64_t worst[VALUES];                 /* largest value of a queue; NONE: unknown */
    int64_t queues, ready, dead, paused;   /* sums; paused: queues */
    bool *found;                           /* the named queues */
    enum level level;
    size_t problems;
    struct buf text; /* of the problems */
};

/* ------------------------------------------------------------------ thresholds */

/* Reads "ready=100,oldest=5m". False after an error message. */
static bool
read_limits(const struct check *k, const char *option, const char *text,
            int64_t limits[VALUES])
{
    struct bytes rest = bytes_str(text);

    for (size_t i = 0; i < VALUES; i++)
        limits[i] = NONE;
    while (rest.len > 0) {
        struct bytes value = bytes_cut(&rest, ','), name = bytes_cut(&value, '=');
        size_t i = 0;

        while (i < VALUES && !bytes_equal_str(name, values[i].name))
            i++;
        if (i < VALUES &&
            (i == OLDEST ? duration_read(value, 0, INT32_MAX, &limits[i])
                         : bytes_to_i64(value, &limits[i]) && limits[i] >= 0))
            continue;
        (void)command_misused(k->args->name,
                              "%s has %.*s. It must have ready=N, oldest=TIME, dead=N or "
                              "journal=PERCENT, with commas in between",
                              option, (int)(name.len & 0xff), name.data);
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------ problems */

static void
write_value(struct buf *out, size_t which, int64_t value)
{
    if (which == OLDEST)
        duration_write(out, value);
    else
        buf_printf(out, "%lld%s", (long long)value, which == JOURNAL ? "%" : "");
}

static enum level
level_of(const struct check *k, size_t which, int64_t value)
{
    for (enum level level = LEVEL_CRITICAL; level > LEVEL_OK; level--)
        if (k->limits[level][which] != NONE && value >= k->limits[level][which])
            return level;
    return LEVEL_OK;
}

/* Starts the text of a problem. False: too many problems are shown. */
static bool
add_problem(struct check *k, enum level level)
{
    if (k->level != LEVEL_CRITICAL && level > k->level) /* that wins over UNKNOWN */
        k->level = level;
    if (level == LEVEL_CRITICAL)
        k->level = level;
    if (k->problems++ >= PROBLEMS_SHOWN)
        return false;
    if (k->text.len > 0)
        buf_str(&k->text, ", ");
    return true;
}

/* Compares a value with its limits. `where`: "jobs: ", or "". */
static void
check_value(struct check *k, size_t which, int64_t value, const char *where)
{
    const enum level level = level_of(k, which, value);

    if (value > k->worst[which])
        k->worst[which] = value;
    if (level == LEVEL_OK || !add_problem(k, level))
        return;
    utf8_escape(&k->text, bytes_str(where));
    buf_printf(&k->text, "%s ", values[which].words);
    write_value(&k->text, which, value);
    buf_str(&k->text, " (limit ");
    write_value(&k->text, which, k->limits[level][which]);
    buf_byte(&k->text, ')');
}

/* ------------------------------------------------------------------ queues */

/* True if the queue was named, or none was. Notes that it exists. */
static bool
is_wanted(struct check *k, const char *name)
{
    bool wanted = k->args->count == 0;

    for (size_t i = 0; i < k->args->count; i++)
        if (strcmp(k->args->words[i], name) == 0)
            wanted = k->found[i] = true;
    return wanted;
}

static bool
check_queue(void *ctx, const json_t *queue, struct bytes text)
{
    struct check *k = ctx;
    const char *name = member_text(queue, "name");
    const char *project = member_text(queue, "project");
    char where[512];
    int64_t dead;
    bool paused;

    (void)text;
    if (name == NULL || !is_wanted(k, name))
        return true;
    (void)snprintf(where, sizeof(where), "%s%s%s: ",
                   k->client->project != NULL || project == NULL ? "" : project,
                   k->client->project != NULL || project == NULL ? "" : "/", name);
    dead = member_number(queue, "dead_letters");
    paused = json_is_true(json_object_get(json_object_get(queue, "paused"), "claims"));
    k->queues++;
    k->ready += member_number(queue, "ready");
    k->dead += dead;
    k->paused += paused;
    if (dead == 0 && !paused) { /* workers have to claim them; as the alerts have it */
        check_value(k, READY, member_number(queue, "ready"), where);
        check_value(k, OLDEST, member_number(queue, "oldest_ready_age"), where);
    }
    check_value(k, DEAD, dead, where);
    return true;
}

/* Returns false after a problem that makes all else unknown. */
static bool
check_queues(struct check *k)
{
    const struct client_request request = {
        .path = "/claimd/queues?limit=1000&sort=oldest_ready"};
    const int status = client_read_pages(k->client, &request, "queues", check_queue, k);

    if (status != COMMAND_GOOD) {
        (void)add_problem(k,
                          status == COMMAND_UNAVAILABLE ? LEVEL_CRITICAL : LEVEL_UNKNOWN);
        buf_reset(&k->text, SIZE_MAX);
        utf8_escape(&k->text, bytes_str(k->client->response.error));
        return false;
    }
    for (size_t i = 0; i < k->args->count; i++)
        if (!k->found[i] && add_problem(k, LEVEL_UNKNOWN)) {
            utf8_escape(&k->text, bytes_str(k->args->words[i]));
            buf_str(&k->text, ": there is no such queue");
            utf8_escape(&k->text,
                        bytes_str(client_queue_hint(k->client, k->args->words[i]).text));
        }
    return true;
}

/* ------------------------------------------------------------------ journal */

/* The value of a metric without labels, NONE if there is none. */
static int64_t
metric_value(struct bytes text, const char *name)
{
    const size_t len = strlen(name);

    while (text.len > 0) {
        struct bytes line = bytes_cut(&text, '\n');
        char number[64];
        double value;

        if (line.len <= len || memcmp(line.data, name, len) != 0 || line.data[len] != ' ')
            continue;
        (void)snprintf(number, sizeof(number), "%.*s", (int)((line.len - len - 1) & 0x1f),
                       line.data + len + 1);
        return sscanf(number, "%lf", &value) == 1 && value >= 0 && value < 9e18
                   ? (int64_t)value
                   : NONE;
    }
    return NONE;
}

static void
check_journal(struct check *k)
{
    const struct client_request request = {.path = "/metrics", .text = true};
    const struct client_response *response = &k->client->response;
    int status;

    if (k->limits[LEVEL_WARNING][JOURNAL] == NONE &&
        k->limits[LEVEL_CRITICAL][JOURNAL] == NONE)
        return;
    status = client_send(k->client, &request);
    if (status == COMMAND_GOOD) {
        const struct bytes text = buf_view(&response->body);
        const int64_t used = metric_value(text, "claimd_journal_bytes");
        const int64_t left = metric_value(text, "claimd_journal_left_bytes");

        if (used >= 0 && left >= 0 && used + left > 0)
            check_value(k, JOURNAL,
                        (int64_t)(100.0 * (double)used / ((double)used + (double)left)),
                        "");
        if (metric_value(text, "claimd_journal_full") > 0 &&
            add_problem(k, LEVEL_CRITICAL))
            buf_str(&k->text, "the journal is full, and the server refuses posts");
    } else if ((k->args->values[CHECK_WARN] != NULL ||
                k->args->values[CHECK_CRIT] != NULL) &&
               add_problem(k, LEVEL_UNKNOWN)) { /* a threshold was given */
        buf_str(&k->text, "journal unknown: ");
        utf8_escape(&k->text, bytes_str(response->error));
    }
}

/* ------------------------------------------------------------------ output */

static void
write_limit(struct buf *out, int64_t limit)
{
    buf_byte(out, ';');
    if (limit != NONE)
        buf_i64(out, limit);
}

/* Appends the values for programs that draw them. */
static void
write_values(const struct check *k, struct buf *out)
{
    const char *before = " | ";

    for (size_t i = 0; i < VALUES; i++) {
        if (k->worst[i] == NONE)
            continue;
        buf_printf(out, "%s%s=%lld%s", before, values[i].name, (long long)k->worst[i],
                   values[i].unit);
        write_limit(out, k->limits[LEVEL_WARNING][i]);
        write_limit(out, k->limits[LEVEL_CRITICAL][i]);
        before = " ";
    }
}

static void
write_summary(const struct check *k, struct buf *out)
{
    buf_printf(out, "%lld queue%s, %lld ready, oldest ", (long long)k->queues,
               plural_s((uint64_t)k->queues), (long long)k->ready);
    duration_write(out, k->worst[OLDEST]);
    buf_printf(out, ", %lld dead letter%s", (long long)k->dead,
               plural_s((uint64_t)k->dead));
    if (k->paused > 0)
        buf_printf(out, ", %lld queue%s paused", (long long)k->paused,
                   plural_s((uint64_t)k->paused));
    if (k->worst[JOURNAL] != NONE)
        buf_printf(out, ", journal %lld%% full", (long long)k->worst[JOURNAL]);
}

static void
write_json(const struct check *k, struct buf *out)
{
    buf_byte(out, '{');
    json_write_text(out, "status", bytes_str(level_names[k->level]));
    json_write_text(out, "problems", buf_view(&k->text));
    json_write_i64(out, "queues", k->queues);
    for (size_t i = 0; i < VALUES; i++)
        if (k->worst[i] != NONE)
            json_write_i64(out, values[i].name, k->worst[i]);
    buf_byte(out, '}');
}

/* Prints the line. Returns the exit status. */
static int
print_check(struct check *k)
{
    struct buf out;
    int status = (int)k->level;

    buf_init(&out, k->client->mem);
    if (k->client->json) {
        write_json(k, &out);
    } else {
        buf_printf(&out, "CLAIMD %s - ", level_names[k->level]);
        if (k->problems == 0)
            write_summary(k, &out);
        buf_bytes(&out, buf_view(&k->text));
        for (size_t i = 0; i < out.len; i++) /* it begins the values */
            out.data[i] = out.data[i] == '|' ? '/' : out.data[i];
        if (k->problems > PROBLEMS_SHOWN)
            buf_printf(&out, ", and %zu more", k->problems - PROBLEMS_SHOWN);
        write_values(k, &out);
    }
    if (out.failed || k->text.failed) {
        (void)puts("CLAIMD UNKNOWN - out of memory");
        status = LEVEL_UNKNOWN;
    } else {
        (void)printf("%.*s\n", (int)out.len, out.data);
    }
    buf_fini(&out);
    return status;
}

static int
run_check(const struct command_args *args)
{
    struct client *c = args->context;
    struct check k = {.client = c, .args = args, .worst = {NONE, NONE, NONE, NONE}};
    const char *warn = args->values[CHECK_WARN], *crit = args->values[CHECK_CRIT];
    int status;

    if (!read_limits(&k, "--warn", warn == NULL ? usual_warn : warn,
                     k.limits[LEVEL_WARNING]) ||
        !read_limits(&k, "--crit", crit == NULL ? usual_crit : crit,
                     k.limits[LEVEL_CRITICAL]))
        return LEVEL_UNKNOWN;
    k.found = mem_calloc(c->mem, args->count + 1, sizeof(*k.found));
    if (k.found == NULL) {
        (void)command_no_memory();
        return LEVEL_UNKNOWN;
    }
    buf_init(&k.text, c->mem);
    if (check_queues(&k)) {
        for (size_t i = READY; i <= DEAD; i++)
            k.worst[i] = k.worst[i] == NONE ? 0 : k.worst[i];
        check_journal(&k);
    }
    status = print_check(&k);
    buf_fini(&k.text);
    mem_free(c->mem, k.found);
    return status;
}

static const struct command_text no_other_statuses[] = {{NULL, NULL}};

const struct command client_check = {
    .about = "Checks the named queues, or all, and prints one line with performance "
             "data, as Nagios and programs like it expect. Without a project it checks "
             "the queues of all projects.\n\n"
             "A threshold is `ready=N` (ready messages of a queue), `oldest=TIME` (age "
             "of the oldest ready message of a queue), `dead=N` (dead letters in a "
             "queue) or `journal=PERCENT` (used space of the journal, which needs access "
             "to /metrics). A value that is as large as the threshold has reached it. "
             "`ready` and `oldest` leave out paused queues and queues with dead letters, "
             "as the alerts for Prometheus do.",
    .options =
        {{"--warn", "LIST",
          "Thresholds for a warning, with commas. Default: oldest=5m,dead=1,journal=80"},
         {"--crit", "LIST",
          "Critical thresholds, with commas. Default: oldest=1h,journal=95"}},
    .example = "claimd check jobs --warn ready=1000,oldest=2m --crit oldest=10m",
    .most = SIZE_MAX,
    .statuses = {[LEVEL_OK] = "OK: no value has reached a threshold.",
                 [LEVEL_WARNING] =
                     "WARNING: a value has reached its threshold of --warn.",
                 [LEVEL_CRITICAL] = "CRITICAL: a value has reached its threshold of "
                                    "--crit, or no server responds.",
                 [LEVEL_UNKNOWN] = "UNKNOWN: the server refused the request, a named "
                                   "queue does not exist, or the arguments are wrong."},
    .other_statuses = no_other_statuses,
    .misuse = LEVEL_UNKNOWN,
    .any_project = true,
    .run = run_check};
