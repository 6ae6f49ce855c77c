/*
 * claimd top: the queues on a full screen, the most urgent one first.
 *
 *     LIST  --Enter-->  QUEUE  --Enter-->  MESSAGE
 *           <--Esc----         <--Esc-----
 *
 * One thread requests what the screen shows once per interval, and handles keys in
 * between. A server that does not respond delays the keys by REQUEST_MS at most.
 */
#include "client/command.h"
#include "client/table.h"
#include "client/text.h"
#include "client/top_model.h"

#include "claimd/base/clock.h"
#include "claimd/base/utf8.h"
#include "claimd/json/string.h"

#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { TOP_SORT, TOP_Q, TOP_INTERVAL };

/* A signal that ends the screen; 0: none. */
static volatile sig_atomic_t top_signal;

enum {
    REQUEST_MS = 2000,
    HISTORY_S = 5,
    HEAD_LINES = 3,
    FOOT_LINES = 1,
    KEY_ESCAPE = 27
};
enum { ROWS_MOST = 500, CLAIMS_MOST = 100, MESSAGES_MOST = 20, TEXT_CAP = 256 };

enum top_view { VIEW_LIST, VIEW_QUEUE, VIEW_MESSAGE };

struct top {
    struct client *client;
    struct top_model model;
    enum top_view view;
    enum top_sort sort;
    char filter[65]; /* "": none */
    struct buf next; /* path of the next page, with a NUL; empty: there is none */
    bool paging;     /* the page is not the first one; `page` is its path */
    struct buf page;
    char notice[CLIENT_ERROR_CAP]; /* an error, or a result; "": none */
    int64_t interval_ms;
    bool quits;

    /* The queue that QUEUE and MESSAGE show. Documents are owned; NULL: none. */
    char project[TEXT_CAP], queue[TEXT_CAP];
    json_t *claims, *messages, *history, *message;
    size_t selected;   /* message */
    int64_t history_s; /* time of the last request for the history */
};

static int64_t
now_ms(void)
{
    return clock_stopwatch_ns() / 1000000;
}

/* ------------------------------------------------------------------ requests */

/* Sends a request. Keeps the error as the notice. Returns true for a success. */
static bool
top_send(struct top *t, const struct client_request *request)
{
    const int status = client_send(t->client, request);

    if (status != COMMAND_GOOD)
        (void)snprintf(t->notice, sizeof(t->notice), "%s", t->client->response.error);
    return status == COMMAND_GOOD;
}

/*
 * Requests a document about the queue with this member into *out. The old one stays if
 * there is no response.
 */
static void
request_document(struct top *t, const char *root, const char *below, const char *member,
                 json_t **out)
{
    const struct client_request request = {.path = root,
                                           .queue = t->queue,
                                           .below = below,
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

static size_t
rows_of_list(void)
{
    const int rows = LINES - HEAD_LINES - FOOT_LINES;

    return rows < 1 ? 1 : rows > ROWS_MOST ? ROWS_MOST : (size_t)rows;
}

/* Notes the path of the next page. */
static void
note_next(struct top *t)
{
    const char *href = client_next_page(t->client);

    buf_reset(&t->next, SIZE_MAX);
    if (href != NULL) {
        buf_str(&t->next, href);
        buf_byte(&t->next, '\0');
    }
}

static void
request_list(struct top *t)
{
    char limit[24];
    const char *filter = t->filter[0] == '\0' ? NULL : t->filter;
    const struct client_request first = {
        .path = "/claimd/queues",
        .query = {{"limit", limit}, {"sort", top_sort_name(t->sort)}, {"q", filter}},
        .member = "queues"};
    const struct client_request next = {.path = t->page.data, .member = "queues"};

    (void)snprintf(limit, sizeof(limit), "%zu", rows_of_list());
    if (!top_send(t, t->paging ? &next : &first))
        return;
    if (!top_model_update(&t->model, t->client->response.document, now_ms() / 1000))
        (void)snprintf(t->notice, sizeof(t->notice), "out of memory");
    note_next(t);
}

/*
 * Requests the history of one queue of the list, if one has none yet. The server keeps
 * none of many queues, which is no error.
 */
static void
request_row_history(struct top *t)
{
    struct client_request request = {
        .path = "/claimd", .below = "/history", .member = "samples"};
    struct top_row *row = NULL;

    for (size_t i = 0; i < t->model.count && row == NULL; i++)
        if (!t->model.rows[i].asked_history)
            row = &t->model.rows[i];
    if (row == NULL)
        return;
    row->asked_history = true;
    request.queue = top_row_text(row, "name");
    request.project = top_row_text(row, "project");
    if (client_send(t->client, &request) == COMMAND_GOOD)
        top_row_add_history(row, t->client->response.document);
}

static const char *
selected_message(const struct top *t)
{
    const json_t *list = json_object_get(t->messages, "messages");

    return member_text(json_array_get(list, t->selected), "id");
}

static void
request_message(struct top *t)
{
    const char *id = selected_message(t);
    char behind[TEXT_CAP];

    if (id == NULL)
        return;
    (void)snprintf(behind, sizeof(behind), "/messages/%.64s", id);
    request_document(t, "/claimd", behind, "id", &t->message);
}

/* Requests what the screen shows. */
static void
request_view(struct top *t)
{
    t->notice[0] = '\0';
    if (t->view == VIEW_MESSAGE)
        request_message(t);
    if (t->view == VIEW_LIST) {
        request_list(t);
        if (t->notice[0] == '\0')
            request_row_history(t);
    }
    if (t->view != VIEW_QUEUE)
        return;
    request_document(t, "/claimd", "/claims?limit=100", "claims", &t->claims);
    if (t->notice[0] == '\0')
        request_document(
            t, "/v2",
            "/messages?echo=true&include_claimed=true&include_delayed=true&limit=20",
            "messages", &t->messages);
    if (t->notice[0] == '\0' && now_ms() / 1000 - t->history_s >= HISTORY_S) {
        t->history_s = now_ms() / 1000;
        request_document(t, "/claimd", "/history", "samples", &t->history);
        if (t->history == NULL) /* the server shows others */
            t->notice[0] = '\0';
    }
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

static void __attribute__((format(printf, 4, 5)))
put_line(struct top *t, int row, attr_t attributes, const char *format, ...)
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
    put_line(t, 0, A_BOLD, "%s  %s%s%s", what, t->client->web.url,
             t->client->project == NULL ? "" : "  project ",
             t->client->project == NULL ? "" : t->client->project);
    if (t->notice[0] != '\0')
        put_line(t, 1, A_REVERSE, "%s", t->notice);
}

/* ------------------------------------------------------------------ views */

static void
draw_list(struct top *t)
{
    struct buf text;

    put_head(t, "claimd top");
    if (t->notice[0] == '\0')
        put_line(t, 1, A_NORMAL, "%lld queue%s  sort: %s%s%s%s",
                 (long long)t->model.total, t->model.total == 1 ? "" : "s",
                 top_sort_name(t->sort),
                 t->filter[0] == '\0' ? "" : "  filter: ", t->filter,
                 t->paging ? "  (Home: first page)" : "");
    buf_init(&text, t->client->mem);
    if (top_model_write(&t->model, t->client->project == NULL, (size_t)COLS, &text))
        (void)put_lines(t, HEAD_LINES - 1, LINES - FOOT_LINES, buf_view(&text),
                        t->model.selected);
    else
        put_line(t, HEAD_LINES - 1, A_NORMAL, "too narrow");
    buf_fini(&text);
    put_line(
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

static void
write_claims(const struct top *t, struct buf *out)
{
    static const struct table_column columns[] = {
        {"claim", false, true, false, TABLE_MEMBER, "id"},
        {"client", false, true, true, TABLE_MEMBER, "client"},
        {"messages", true, false, true, TABLE_MEMBER, "messages"},
        {"age", true, false, true, TABLE_TIME, "age"},
        {"ends in", true, false, true, TABLE_TIME, "ttl_left"}};
    const json_t *claims = json_object_get(t->claims, "claims"), *claim;
    struct table table;
    size_t i;

    table_init(&table, t->client->mem, columns, COUNT_OF(columns));
    json_array_foreach(claims, i, claim)
    {
        table_row(&table, claim, BYTES_NONE);
    }
    (void)table_write(&table, (size_t)COLS, out);
    table_fini(&table);
}

static void
write_messages(const struct top *t, struct buf *out)
{
    static const struct table_column columns[] = {
        {"message", false, true, false, TABLE_MEMBER, "id"},
        {"state", false, false, true, TABLE_MEMBER, "details.state"},
        {"age", true, false, true, TABLE_TIME, "age"},
        {"deliveries", true, false, true, TABLE_MEMBER, "details.delivery_count"},
        {"body", false, true, true, TABLE_JSON, "body"},
        {"last reason", false, true, true, TABLE_MEMBER, "details.last_reason"}};
    const json_t *messages = json_object_get(t->messages, "messages"), *message;
    struct table table;
    size_t i;

    table_init(&table, t->client->mem, columns, COUNT_OF(columns));
    json_array_foreach(messages, i, message)
    {
        table_row(&table, message, BYTES_NONE);
    }
    (void)table_write(&table, (size_t)COLS, out);
    table_fini(&table);
}

static void
draw_queue(struct top *t)
{
    const int space = LINES - FOOT_LINES;
    int row = HEAD_LINES - 1;
    struct buf text;

    put_head(t, t->queue);
    if (t->notice[0] == '\0' && t->client->project == NULL)
        put_line(t, 1, A_NORMAL, "project %s", t->project);
    if (t->history != NULL) {
        put_history(t, row, "ready", false);
        put_history(t, row + 1, "posted", true);
        put_history(t, row + 2, "deleted", true);
        row += 3;
    }
    buf_init(&text, t->client->mem);
    write_claims(t, &text);
    row =
        put_lines(t, row, row + (space - row) / 3 + 1, buf_view(&text), SIZE_MAX - 1) + 1;
    buf_reset(&text, SIZE_MAX);
    write_messages(t, &text);
    (void)put_lines(t, row, space, buf_view(&text), t->selected);
    buf_fini(&text);
    put_line(t, LINES - 1, A_DIM,
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
    put_line(t, LINES - 1, A_DIM, "q quit  Esc back");
}

static void
draw(struct top *t)
{
    if (t->view == VIEW_LIST)
        draw_list(t);
    else if (t->view == VIEW_QUEUE)
        draw_queue(t);
    else
        draw_message(t);
    (void)refresh();
}

/* ------------------------------------------------------------------ changes */

/* Asks at the bottom. */
static bool
confirm(struct top *t, const char *format, const char *name, int64_t number)
{
    int key;

    put_line(t, LINES - 1, A_REVERSE, format, (long long)number, name);
    (void)refresh();
    timeout(-1);
    key = getch();
    return key == 'y' || key == 'Y';
}

static void
purge_queue(struct top *t, const struct top_row *row)
{
    const char *name = top_row_text(row, "name");
    const int64_t total = member_number(row->queue, "ready") +
                          member_number(row->queue, "delayed") +
                          member_number(row->queue, "claimed");
    const struct client_request request = {
        .path = "/v2",
        .queue = name,
        .below = "/purge",
        .body = bytes_str("{\"resource_types\": [\"messages\"]}"),
        .project = top_row_text(row, "project")};

    if (!confirm(t,
                 total == 1 ? "Delete %lld message of %s? [y/N]"
                            : "Delete all %lld messages of %s? [y/N]",
                 name, total))
        return;
    if (top_send(t, &request))
        (void)snprintf(t->notice, sizeof(t->notice), "%s is purged", name);
}

/* Moves the dead letters of the queue, or of its dead-letter queue, slice by slice. */
static void
redrive_queue(struct top *t, const struct top_row *row)
{
    const int64_t count = member_number(row->queue, "dead_letters");
    const bool own = count > 0;
    const char *name = top_row_text(row, own ? "name" : "dead_letter_queue");
    const struct client_request request = {.path = "/claimd",
                                           .queue = name,
                                           .below = "/redrive",
                                           .body = bytes_str("{}"),
                                           .member = "moved",
                                           .project = top_row_text(row, "project")};
    int64_t moved = 0, last = 1;

    if (name[0] == '\0') {
        (void)snprintf(t->notice, sizeof(t->notice), "%s has no dead letters",
                       top_row_text(row, "name"));
        return;
    }
    if (!confirm(t,
                 count == 1 ? "Move the %lld dead letter of %s back? [y/N]"
                 : own      ? "Move the %lld dead letters of %s back? [y/N]"
                            : "Move the dead letters (%lld here) of %s back? [y/N]",
                 name, count))
        return;
    while (last > 0 && top_signal == 0) {
        if (!top_send(t, &request))
            return;
        last = member_number(t->client->response.document, "moved");
        moved += last;
        put_line(t, LINES - 1, A_REVERSE, "%lld moved", (long long)moved);
        (void)refresh();
    }
    (void)snprintf(t->notice, sizeof(t->notice), "%lld dead letter%s of %s moved",
                   (long long)moved, moved == 1 ? "" : "s", name);
}

/* ------------------------------------------------------------------ keys */

/* Reads a text at the bottom. Escape keeps the old one. */
static void
edit_filter(struct top *t)
{
    char text[sizeof(t->filter)];
    size_t len = strlen(t->filter);
    int key = 0;

    memcpy(text, t->filter, sizeof(text));
    timeout(-1);
    while (key != '\n' && key != KEY_ENTER) {
        put_line(t, LINES - 1, A_REVERSE, "filter: %s_", text);
        (void)refresh();
        key = getch();
        if (key == KEY_ESCAPE || key == ERR)
            return;
        if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && len > 0)
            text[--len] = '\0';
        else if (key > ' ' && key < 127 && len + 1 < sizeof(text))
            text[len++] = (char)key;
        text[len] = '\0';
    }
    memcpy(t->filter, text, sizeof(text));
    t->paging = false;
}

static void
drop_documents(struct top *t)
{
    json_decref(t->claims);
    json_decref(t->messages);
    json_decref(t->history);
    json_decref(t->message);
    t->claims = t->messages = t->history = t->message = NULL;
}

static void
open_queue(struct top *t)
{
    const struct top_row *row = top_model_selected(&t->model);

    if (row == NULL)
        return;
    drop_documents(t);
    (void)snprintf(t->project, sizeof(t->project), "%s", top_row_text(row, "project"));
    (void)snprintf(t->queue, sizeof(t->queue), "%s", top_row_text(row, "name"));
    t->selected = 0;
    t->history_s = now_ms() / 1000 - HISTORY_S;
    t->view = VIEW_QUEUE;
}

static void
turn_page(struct top *t)
{
    if (t->next.len == 0)
        return;
    buf_reset(&t->page, SIZE_MAX);
    buf_bytes(&t->page, buf_view(&t->next));
    t->paging = !t->page.failed;
    t->model.selected = 0;
}

/* Handles a key of the list. Returns true if the server must be asked again. */
static bool
key_of_list(struct top *t, int key)
{
    const long rows = (long)rows_of_list();

    switch (key) {
    case KEY_UP:
    case 'k':
        top_model_move(&t->model, -1);
        return false;
    case KEY_DOWN:
    case 'j':
        top_model_move(&t->model, 1);
        return false;
    case KEY_END:
    case 'G':
        top_model_move(&t->model, rows);
        return false;
    case KEY_NPAGE:
        turn_page(t);
        return true;
    case KEY_PPAGE:
    case KEY_HOME:
    case 'g':
        t->paging = false;
        top_model_move(&t->model, -rows);
        return true;
    case 's':
        t->sort = (t->sort + 1) % TOP_SORTS;
        t->paging = false;
        return true;
    case '/':
        edit_filter(t);
        return true;
    case '\n':
    case KEY_ENTER:
    case KEY_RIGHT:
        open_queue(t);
        return true;
    default:
        return false;
    }
}

static bool
key_of_queue(struct top *t, int key)
{
    const size_t count = json_array_size(json_object_get(t->messages, "messages"));

    switch (key) {
    case KEY_UP:
    case 'k':
        t->selected -= t->selected > 0 ? 1 : 0;
        return false;
    case KEY_DOWN:
    case 'j':
        t->selected += t->selected + 1 < count ? 1 : 0;
        return false;
    case '\n':
    case KEY_ENTER:
    case KEY_RIGHT:
        t->view = selected_message(t) == NULL ? VIEW_QUEUE : VIEW_MESSAGE;
        return true;
    default:
        return false;
    }
}

/* Handles a key. Returns true if the server must be asked again. */
static bool
handle_key(struct top *t, int key)
{
    const struct top_row *row = top_model_selected(&t->model);

    if (key == 'q' || key == 'Q') {
        t->quits = true;
        return false;
    }
    if (t->view != VIEW_LIST &&
        (key == KEY_ESCAPE || key == KEY_LEFT || key == KEY_BACKSPACE || key == 127)) {
        t->view = t->view == VIEW_MESSAGE ? VIEW_QUEUE : VIEW_LIST;
        return true;
    }
    if (row != NULL && t->view != VIEW_MESSAGE && (key == 'p' || key == 'r')) {
        if (key == 'p')
            purge_queue(t, row);
        else
            redrive_queue(t, row);
        return false; /* the notice stays until the next interval */
    }
    return t->view == VIEW_LIST    ? key_of_list(t, key)
           : t->view == VIEW_QUEUE ? key_of_queue(t, key)
                                   : false;
}

/* ------------------------------------------------------------------ loop */

static void
top_loop(struct top *t)
{
    int64_t next_ms = now_ms() + t->interval_ms;

    while (!t->quits && top_signal == 0) {
        int64_t left_ms = next_ms - now_ms();
        int key;

        draw(t);
        timeout(left_ms < 0 ? 0 : (int)left_ms);
        key = getch();
        if (key == ERR && left_ms > 0 &&
            now_ms() < next_ms - 5) /* no terminal any more, or a signal */
            t->quits = !isatty(STDIN_FILENO);
        if (key != ERR && key != KEY_RESIZE && handle_key(t, key))
            next_ms = now_ms();
        if (now_ms() >= next_ms) {
            request_view(t);
            next_ms = now_ms() + t->interval_ms;
        }
    }
}

static void
note_signal(int number)
{
    top_signal = number;
}

/*
 * Runs the screen. Returns an exit status. Signals end it when the terminal is as before.
 */
static int
top_run(struct top *t)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    const struct sigaction noted = {.sa_handler = note_signal};
    SCREEN *screen;

    for (size_t i = 0; i < COUNT_OF(signals); i++)
        (void)sigaction(signals[i], &noted, NULL); /* curses leaves them alone then */
    screen = newterm(NULL, stdout, stdin);
    if (screen == NULL)
        return command_fails(COMMAND_FAILED,
                             "the type of the terminal is unknown. Set TERM");
    (void)set_escdelay(25);
    (void)cbreak();
    (void)noecho();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    request_view(t);
    top_loop(t);
    (void)endwin();
    delscreen(screen);
    if (top_signal != 0) {
        (void)signal(top_signal, SIG_DFL);
        (void)raise(top_signal);
    }
    return COMMAND_GOOD;
}

/* Reads the order. False after an error message. */
static bool
read_sort(const struct command_args *args, enum top_sort *sort)
{
    const char *text = args->values[TOP_SORT];

    for (enum top_sort one = 0; text != NULL && one < TOP_SORTS; one++)
        if (strcmp(text, top_sort_name(one)) == 0) {
            *sort = one;
            return true;
        }
    if (text == NULL)
        return true;
    (void)command_misused(
        args->name, "--sort is %.64s. It must be oldest_ready, ready, claimed or name",
        text);
    return false;
}

static int
run_top(const struct command_args *args)
{
    struct client *c = args->context;
    const struct client_request first = {.path = "/claimd/queues?limit=1",
                                         .member = "queues"};
    const char *filter = args->values[TOP_Q];
    struct top t = {.client = c, .sort = TOP_OLDEST};
    int64_t interval_s = 1;
    int status;

    if (!read_sort(args, &t.sort) ||
        !args_duration(args, TOP_INTERVAL, 1, 3600, &interval_s))
        return COMMAND_USAGE;
    c->quiet = true;
    if (c->json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return command_misused(
            args->name, "top needs a terminal. Use claimd queues for other output");
    if (filter != NULL)
        (void)snprintf(t.filter, sizeof(t.filter), "%s", filter);
    if (c->timeout_ms > REQUEST_MS)
        c->timeout_ms = REQUEST_MS;
    status = client_call(c, &first); /* an error now ends the command */
    if (status != COMMAND_GOOD)
        return status;
    t.interval_ms = interval_s * 1000;
    top_model_init(&t.model, c->mem);
    buf_init(&t.next, c->mem);
    buf_init(&t.page, c->mem);
    status = top_run(&t);
    drop_documents(&t);
    buf_fini(&t.page);
    buf_fini(&t.next);
    top_model_fini(&t.model);
    return status;
}

const struct command client_top = {
    .about = "Shows queues on a full screen, the most urgent one first, and refreshes it "
             "every second. Enter shows the claims, the messages and the history of a "
             "queue, and for a message what happens next. Without a project it shows the "
             "queues of all projects.\n\n"
             "Keys: arrows or `j` and `k` select, `Enter` opens, `Esc` goes back, `s` "
             "changes the order, `/` filters by name, `p` purges the selected queue and "
             "`r` redrives its dead letters, both after a question, `PgDn` shows the "
             "next page, `Home` the first one, and `q` quits.",
    .options = {{"--sort", "ORDER",
                 "oldest_ready, ready, claimed or name. Default: oldest_ready"},
                {"--q", "TEXT", "Only queues with this text in their names."},
                {"--interval", "TIME", "Time between two requests. Default: 1s"}},
    .example = "claimd top --project demo",
    .most = 0,
    .any_project = true,
    .run = run_top};
