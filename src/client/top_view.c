/*
 * The requests and the look of each view of `claimd top`. top_view.h declares them, and
 * top.c has the keys and the loop.
 */
#include "client/top_view.h"

#include "client/command.h"
#include "client/table.h"
#include "client/text.h"

#include "claimd/base/clock.h"
#include "claimd/base/plural.h"
#include "claimd/base/utf8.h"

#include <stdio.h>

enum { HEAD_LINES = 3, FOOT_LINES = 1, ROWS_MOST = 500 };

/* A row that a table does not have. */
#define NONE_SELECTED (SIZE_MAX - 1)

int64_t
top_now_ms(void)
{
    return clock_stopwatch_ns() / 1000000;
}

/* ------------------------------------------------------------------ requests */

bool
top_send(struct top *t, const struct client_request *request)
{
    const int status = client_send(t->client, request);

    if (status != COMMAND_GOOD)
        (void)snprintf(t->notice, sizeof(t->notice), "%s", t->client->response.error);
    return status == COMMAND_GOOD;
}

/*
 * Requests a document about the queue (id: NULL), or about a message, into *out. The old
 * one stays if there is no response.
 */
static void
request_document(struct top *t, const char *path, const char *id, const char *member,
                 json_t **out)
{
    const struct client_request request = {.path = path,
                                           .parts = {t->queue, id},
                                           .member = member,
                                           .details = true,
                                           .project =
                                               t->project[0] == '\0' ? NULL : t->project};

    if (top_send(t, &request)) {
        json_decref(*out);
        *out = json_incref(t->client->response.document);
    } else if (t->client->response.status == 404) {
        json_decref(*out);
        *out = NULL;
    }
}

size_t
top_list_rows(void)
{
    const int rows = LINES - HEAD_LINES - FOOT_LINES;

    return rows < 1 ? 1 : rows > ROWS_MOST ? ROWS_MOST : (size_t)rows;
}

/*
 * Requests the history of one queue of the list, if one has none yet. The server keeps
 * none of many queues, which is no error.
 */
static void
request_row_history(struct top *t)
{
    struct client_request request = {.path = "/claimd/queues/%s/history",
                                     .member = "samples"};
    struct top_row *row = NULL;

    for (size_t i = 0; i < t->model.count && row == NULL; i++)
        if (!t->model.rows[i].asked_history)
            row = &t->model.rows[i];
    if (row == NULL)
        return;
    row->asked_history = true;
    request.parts[0] = top_row_text(row, "name");
    request.project = top_row_text(row, "project");
    if (client_send(t->client, &request) == COMMAND_GOOD)
        top_row_add_history(row, t->client->response.document);
}

static void
request_list(struct top *t)
{
    char limit[24];
    const char *filter = t->filter[0] == '\0' ? NULL : t->filter, *next;
    const struct client_request first_page = {
        .path = "/claimd/queues",
        .query = {{"limit", limit}, {"sort", top_sort_name(t->sort)}, {"q", filter}},
        .member = "queues"};
    const struct client_request later_page = {.path = t->page, .member = "queues"};

    (void)snprintf(limit, sizeof(limit), "%zu", top_list_rows());
    if (!top_send(t, t->page[0] == '\0' ? &first_page : &later_page))
        return;
    if (!top_model_update(&t->model, t->client->response.document, top_now_ms() / 1000))
        (void)snprintf(t->notice, sizeof(t->notice), "out of memory");
    next = client_next_page(t->client);
    t->next[0] = '\0';
    if (next != NULL && strlen(next) < sizeof(t->next))
        (void)snprintf(t->next, sizeof(t->next), "%s", next);
    if (t->notice[0] == '\0')
        request_row_history(t);
}

const char *
top_selected_message(const struct top *t)
{
    const json_t *list = json_object_get(t->messages, "messages");

    return member_text(json_array_get(list, t->selected), "id");
}

static void
request_queue(struct top *t)
{
    const int64_t now_s = top_now_ms() / 1000;

    request_document(t, "/claimd/queues/%s/claims?limit=100", NULL, "claims", &t->claims);
    if (t->notice[0] == '\0')
        request_document(t,
                         "/v2/queues/%s/messages?echo=true&include_claimed=true"
                         "&include_delayed=true&limit=20",
                         NULL, "messages", &t->messages);
    if (t->notice[0] != '\0' || now_s - t->history_s < TOP_SAMPLE_S)
        return;
    t->history_s = now_s;
    request_document(t, "/claimd/queues/%s/history", NULL, "samples", &t->history);
    if (t->history == NULL) /* the server shows others */
        t->notice[0] = '\0';
}

static void
request_message(struct top *t)
{
    const char *id = top_selected_message(t);

    if (id != NULL)
        request_document(t, "/claimd/queues/%s/messages/%s", id, "id", &t->message);
}

void
top_drop_documents(struct top *t)
{
    json_decref(t->claims);
    json_decref(t->messages);
    json_decref(t->history);
    json_decref(t->message);
    t->claims = t->messages = t->history = t->message = NULL;
}

/* ------------------------------------------------------------------ lines */

static void
put_bytes(struct top *t, int row, struct bytes text, attr_t attributes)
{
    struct buf line;

    if (row < 0 || row >= LINES)
        return;
    buf_init(&line, t->client->mem);
    text_fit(&line, text, (size_t)COLS, false);
    (void)attrset((int)attributes);
    if (!line.failed)
        (void)mvaddnstr(row, 0, line.data, (int)line.len);
    (void)attrset(A_NORMAL);
    buf_fini(&line);
}

void
top_put_line(struct top *t, int row, attr_t attributes, const char *format, ...)
{
    char text[2048];
    struct buf escaped;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_init(&escaped, t->client->mem);
    utf8_escape(&escaped, bytes_str(text));
    put_bytes(t, row, buf_view(&escaped), attributes);
    buf_fini(&escaped);
}

/*
 * Puts the lines of a text at most till a row; the first one is a head, and `selected`
 * (from 0 on, behind the head) is marked. Returns the row behind.
 */
static int
put_lines(struct top *t, int row, int till, struct bytes text, size_t selected)
{
    for (size_t i = 0; text.len > 0 && row < till; i++, row++) {
        const struct bytes line = bytes_cut(&text, '\n');

        put_bytes(t, row, line,
                  i == 0              ? A_BOLD | A_UNDERLINE
                  : i == selected + 1 ? A_REVERSE
                                      : A_NORMAL);
    }
    return row;
}

static void
put_head(struct top *t, const char *what)
{
    (void)erase();
    top_put_line(t, 0, A_BOLD, "%s  %s%s%s", what, t->client->web.url,
                 t->client->project == NULL ? "" : "  project ",
                 t->client->project == NULL ? "" : t->client->project);
    if (t->notice[0] != '\0')
        top_put_line(t, 1, A_REVERSE, "%s", t->notice);
}

/* ------------------------------------------------------------------ views */

static void
draw_list(struct top *t)
{
    struct buf text;

    put_head(t, "claimd top");
    if (t->notice[0] == '\0')
        top_put_line(t, 1, A_NORMAL, "%lld queue%s  sort: %s%s%s%s",
                     (long long)t->model.total, plural_s((uint64_t)t->model.total),
                     top_sort_name(t->sort),
                     t->filter[0] == '\0' ? "" : "  filter: ", t->filter,
                     t->page[0] == '\0' ? "" : "  (Home: first page)");
    buf_init(&text, t->client->mem);
    if (top_model_write(&t->model, t->client->project == NULL, (size_t)COLS, &text))
        (void)put_lines(t, HEAD_LINES - 1, LINES - FOOT_LINES, buf_view(&text),
                        t->model.selected);
    else
        top_put_line(t, HEAD_LINES - 1, A_NORMAL, "too narrow");
    buf_fini(&text);
    top_put_line(
        t, LINES - 1, A_DIM,
        "q quit  Enter details  s sort  / filter  p purge  r redrive  PgDn next page");
}

/* Puts one line of the history: a name, its last value, and a sparkline. */
static void
put_history(struct top *t, int row, const char *name, bool is_rate)
{
    const json_t *samples = json_object_get(t->history, "samples");
    const size_t count = json_array_size(samples);
    int64_t values[720];
    size_t columns = COLS > 24 ? (size_t)COLS - 24 : 0, show;
    int64_t last;
    struct buf line;

    columns = columns < COUNT_OF(values) ? columns : COUNT_OF(values);
    show = count < columns ? count : columns;
    for (size_t i = 0; i < show; i++)
        values[i] = member_number(json_array_get(samples, count - show + i), name);
    last = member_number(json_array_get(samples, count - 1),
                         name); /* NULL without samples */
    buf_init(&line, t->client->mem);
    if (is_rate)
        buf_printf(&line, "%-8s %7.1f/s  ", name, (double)last / (double)TOP_SAMPLE_S);
    else
        buf_printf(&line, "%-8s %7lld    ", name, (long long)last);
    sparkline_write(&line, values, show);
    put_bytes(t, row, buf_view(&line), A_NORMAL);
    buf_fini(&line);
}

static const struct table_column claim_columns[] = {
    {"claim", false, true, false, TABLE_MEMBER, "id"},
    {"client", false, true, true, TABLE_MEMBER, "client"},
    {"messages", true, false, true, TABLE_MEMBER, "messages"},
    {"age", true, false, true, TABLE_TIME, "age"},
    {"ends in", true, false, true, TABLE_TIME, "ttl_left"}};

static const struct table_column message_columns[] = {
    {"message", false, true, false, TABLE_MEMBER, "id"},
    {"state", false, false, true, TABLE_MEMBER, "details.state"},
    {"age", true, false, true, TABLE_TIME, "age"},
    {"deliveries", true, false, true, TABLE_MEMBER, "details.delivery_count"},
    {"body", false, true, true, TABLE_JSON, "body"},
    {"last reason", false, true, true, TABLE_MEMBER, "details.last_reason"}};

/* Puts a table of objects at most till a row. Returns the row behind. */
static int
put_table(struct top *t, int row, int till, const struct table_column *columns,
          size_t count, const json_t *objects, size_t selected)
{
    struct table table;
    struct buf text;

    buf_init(&text, t->client->mem);
    table_init(&table, t->client->mem, columns, count);
    table_rows(&table, objects);
    (void)table_write(&table, (size_t)COLS, &text);
    table_fini(&table);
    row = put_lines(t, row, till, buf_view(&text), selected);
    buf_fini(&text);
    return row;
}

static void
draw_queue(struct top *t)
{
    const int space = LINES - FOOT_LINES;
    int row = HEAD_LINES - 1;

    put_head(t, t->queue);
    if (t->notice[0] == '\0' && t->client->project == NULL)
        top_put_line(t, 1, A_NORMAL, "project %s", t->project);
    if (t->history != NULL) {
        put_history(t, row, "ready", false);
        put_history(t, row + 1, "posted", true);
        put_history(t, row + 2, "deleted", true);
        row += 3;
    }
    row = put_table(t, row, row + (space - row) / 3 + 1, claim_columns,
                    COUNT_OF(claim_columns), json_object_get(t->claims, "claims"),
                    NONE_SELECTED);
    (void)put_table(t, row + 1, space, message_columns, COUNT_OF(message_columns),
                    json_object_get(t->messages, "messages"), t->selected);
    top_put_line(t, LINES - 1, A_DIM,
                 "q quit  Esc back  Enter explain message  p purge  r redrive");
}

static void
draw_message(struct top *t)
{
    int row = HEAD_LINES - 1;
    struct buf text;

    put_head(t, t->queue);
    buf_init(&text, t->client->mem);
    why_write(&text, t->message);
    for (struct bytes rest = buf_view(&text); rest.len > 0 && row < LINES - FOOT_LINES;
         row++)
        put_bytes(t, row, bytes_cut(&rest, '\n'), A_NORMAL);
    buf_fini(&text);
    top_put_line(t, LINES - 1, A_DIM, "q quit  Esc back");
}

/* ------------------------------------------------------------------ both */

static const struct {
    void (*request)(struct top *t);
    void (*draw)(struct top *t);
} views[] = {[VIEW_LIST] = {request_list, draw_list},
             [VIEW_QUEUE] = {request_queue, draw_queue},
             [VIEW_MESSAGE] = {request_message, draw_message}};

void
top_request(struct top *t)
{
    t->notice[0] = '\0';
    views[t->view].request(t);
}

void
top_draw(struct top *t)
{
    views[t->view].draw(t);
    (void)refresh();
}
