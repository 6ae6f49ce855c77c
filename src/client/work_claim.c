#include "client/work_claim.h"

#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ------------------------------------------------------------------ the response */

/*
 * Reads "/v2/queues/QUEUE/claims/ID". A proxy may have put a prefix or its address in
 * front.
 */
static bool
path_read(struct work_claim *c, const char *location)
{
    static const struct bytes head = BYTES_LIT("/v2/queues/"),
                              middle = BYTES_LIT("claims");
    const char *begin = strstr(location, head.data);
    struct bytes rest;

    if (begin == NULL || strlen(begin) >= sizeof(c->path))
        return false;
    rest = bytes_str(begin);
    memcpy(c->path, rest.data, rest.len + 1);
    rest = bytes_of(c->path + head.len, rest.len - head.len);
    c->queue = bytes_cut(&rest, '/');
    if (c->queue.len == 0 || !bytes_equal(bytes_cut(&rest, '/'), middle))
        return false;
    c->id = rest;
    return rest.len > 0 && memchr(rest.data, '/', rest.len) == NULL;
}

/* Reads one message. False: it is none. */
static bool
job_read(struct work_job *j, struct bytes message)
{
    static const char *const names[] = {"id", "body", "details"};
    struct json_scan_value values[3], count;

    if (json_members_read(message, names, 3, values, NULL) != ST_OK ||
        values[0].kind != SCAN_STRING || values[1].kind == SCAN_NONE)
        return false;
    j->id = json_scan_inside(&values[0]);
    j->body = values[1].text;
    j->attempt = 1;
    if (values[2].kind == SCAN_OBJECT) {
        j->details = values[2].text;
        count = json_member(j->details, "delivery_count");
        if (count.kind == SCAN_INTEGER)
            j->attempt = json_scan_to_i64(&count);
    }
    /* It becomes a part of requests and a variable of the environment. */
    return j->id.len > 0 && memchr(j->id.data, '\\', j->id.len) == NULL;
}

/*
 * Number of messages of a list. Reads them into `jobs`, unless that is NULL. 0: the text
 * is something else.
 */
static size_t
messages_read(struct bytes list, struct work_job *jobs)
{
    struct json_scan_value item;
    struct json_scan s;
    size_t count = 0;
    bool good = true;

    json_scan_begin(&s, list);
    if (!json_scan_enter(&s, SCAN_ARRAY))
        return 0;
    while (json_scan_item(&s) && json_scan_value(&s, &item)) {
        if (jobs != NULL)
            good = good && job_read(&jobs[count], item.text);
        count++;
    }
    return good && json_scan_end(&s) == ST_OK ? count : 0;
}

struct work_claim *
work_claim_read(struct mem *mem, struct work_transfer *response, size_t limit,
                int64_t lease_ms, const char **why)
{
    const struct bytes list = json_member(buf_view(&response->body), "messages").text;
    const size_t count = messages_read(list, NULL);
    struct work_claim *c;

    *why = "the response to a claim is not understood";
    if (count == 0 || count > limit || response->cut)
        return NULL;
    c = mem_calloc(mem, 1, sizeof(*c) + count * sizeof(c->jobs[0]));
    if (c == NULL) {
        *why = "out of memory";
        return NULL;
    }
    c->count = c->open = count;
    if (!path_read(c, response->location) || response->claim_number[0] == '\0' ||
        messages_read(list, c->jobs) != count) {
        mem_free(mem, c);
        return NULL;
    }
    (void)snprintf(c->number, sizeof(c->number), "%s", response->claim_number);
    lease_begin(&c->lease, lease_ms, response->sent_ms);
    c->document = response->body; /* the jobs borrow from it */
    buf_init(&response->body, mem);
    transfer_init(&c->renewal, mem, TRANSFER_RENEWAL, c);
    transfer_init(&c->finish, mem, TRANSFER_FINISH, c);
    for (size_t i = 0; i < count; i++) {
        struct work_job *j = &c->jobs[i];

        j->claim = c;
        j->timeout_ms = INT64_MAX;
        j->process = PROCESS_NONE;
        transfer_init(&j->service, mem, TRANSFER_SERVICE, j);
    }
    return c;
}

void
work_claim_free(struct mem *mem, struct work_claim *c)
{
    buf_fini(&c->document);
    mem_free(mem, c);
}

/* ------------------------------------------------------------------ for the command */

void
job_metadata_write(struct buf *out, const struct work_job *j, int64_t deadline_s)
{
    const struct work_claim *c = j->claim;

    buf_byte(out, '{');
    json_write_text(out, "queue", c->queue);
    json_write_text(out, "message_id", j->id);
    json_write_text(out, "claim_id", c->id);
    json_write_text(out, "claim_number", bytes_str(c->number));
    json_write_i64(out, "delivery_count", j->attempt);
    if (deadline_s != 0)
        json_write_i64(out, "deadline", deadline_s);
    if (bytes_present(j->details))
        json_write_raw(out, "details", j->details);
    buf_str(out, "}\n");
}

void
job_line_write(struct buf *out, const struct work_job *j, int64_t deadline_s)
{
    const struct work_claim *c = j->claim;
    const size_t begin = out->len;
    char *at, *end;

    buf_byte(out, '{');
    json_write_text(out, "id", j->id);
    json_write_text(out, "queue", c->queue);
    json_write_raw(out, "body", j->body);
    json_write_i64(out, "delivery_count", j->attempt);
    json_write_text(out, "claim_number", bytes_str(c->number));
    if (deadline_s != 0)
        json_write_i64(out, "deadline", deadline_s);
    if (bytes_present(j->details))
        json_write_raw(out, "details", j->details);
    buf_byte(out, '}');
    if (out->failed)
        return;
    /* A body may have line breaks between its values, but never inside a string. */
    end = out->data + out->len;
    for (at = out->data + begin; at < end; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    buf_byte(out, '\n');
}

/*
 * Variables that the command must not inherit: those of a job, which are set anew, and
 * those of a supervisor of this process.
 */
static bool
is_own_variable(const char *variable)
{
    static const char *const names[] = {"CLAIMD_QUEUE",
                                        "CLAIMD_MESSAGE_ID",
                                        "CLAIMD_CLAIM_ID",
                                        "CLAIMD_CLAIM_NUMBER",
                                        "CLAIMD_DELIVERY_COUNT",
                                        "CLAIMD_DEADLINE",
                                        "NOTIFY_SOCKET",
                                        "WATCHDOG_USEC",
                                        "WATCHDOG_PID",
                                        "LISTEN_PID",
                                        "LISTEN_FDS",
                                        "LISTEN_FDNAMES"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const size_t len = strlen(names[i]);

        if (strncmp(variable, names[i], len) == 0 && variable[len] == '=')
            return true;
    }
    return false;
}

char **
work_environment(struct mem *mem)
{
    size_t count = 0, kept = 0;
    char **all;

    while (environ[count] != NULL)
        count++;
    all = mem_alloc(mem, (count + 1) * sizeof(*all));
    if (all == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_own_variable(environ[i]))
            all[kept++] = environ[i];
    all[kept] = NULL;
    return all;
}

void
job_variables_write(struct buf *out, const struct work_job *j, int64_t deadline_s)
{
    const struct work_claim *c = j->claim;

    buf_printf(out, "CLAIMD_QUEUE=%.*s", (int)c->queue.len, c->queue.data);
    buf_byte(out, '\0');
    buf_printf(out, "CLAIMD_MESSAGE_ID=%.*s", (int)j->id.len, j->id.data);
    buf_byte(out, '\0');
    buf_printf(out, "CLAIMD_CLAIM_ID=%.*s", (int)c->id.len, c->id.data);
    buf_byte(out, '\0');
    buf_printf(out, "CLAIMD_CLAIM_NUMBER=%s", c->number);
    buf_byte(out, '\0');
    buf_printf(out, "CLAIMD_DELIVERY_COUNT=%lld", (long long)j->attempt);
    buf_byte(out, '\0');
    if (deadline_s != 0) {
        buf_printf(out, "CLAIMD_DEADLINE=%lld", (long long)deadline_s);
        buf_byte(out, '\0');
    }
}

struct bytes
job_input(const struct work_job *j, bool raw, struct buf *space)
{
    struct bytes inside;

    if (!raw || j->body.len < 2 || j->body.data[0] != '"')
        return j->body;
    inside = bytes_of(j->body.data + 1, j->body.len - 2);
    while (inside.len > 0) {
        char character[4];
        unsigned len = utf8_write(json_string_next(&inside), character);

        buf_add(space, character, len);
    }
    return buf_view(space);
}
