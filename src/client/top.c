/*
 * claimd top: the queues on a full screen, the most urgent one first.
 *
 *     LIST  --Enter-->  QUEUE  --Enter-->  MESSAGE
 *           <--Esc----         <--Esc-----
 *
 * One thread requests what the screen shows once per interval, and handles keys in
 * between. A server that does not respond delays the keys by REQUEST_MS at most.
 * top_view.h has the requests and the look of the views.
 */
#include "claimd/base/plural.h"
#include "client/command.h"
#include "client/table.h"
#include "client/top_view.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { TOP_SORT, TOP_Q, TOP_INTERVAL };

/* A signal that ends the screen; 0: none. */
static volatile sig_atomic_t top_signal;

enum { REQUEST_MS = 2000, KEY_ESCAPE = 27 };

/* ------------------------------------------------------------------ changes */

/* Asks at the bottom. */
static bool
confirm(struct top *t, const char *format, const char *name, int64_t number)
{
    int key;

    top_put_line(t, LINES - 1, A_REVERSE, format, (long long)number, name);
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
        .path = "/v2/queues/%s/purge",
        .parts = {name},
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
    const struct client_request request = {.path = "/claimd/queues/%s/redrive",
                                           .parts = {name},
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
        top_put_line(t, LINES - 1, A_REVERSE, "%lld moved", (long long)moved);
        (void)refresh();
    }
    (void)snprintf(t->notice, sizeof(t->notice), "%lld dead letter%s of %s moved",
                   (long long)moved, plural_s((uint64_t)moved), name);
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
        top_put_line(t, LINES - 1, A_REVERSE, "filter: %s_", text);
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
    t->page[0] = '\0';
}

static void
open_queue(struct top *t)
{
    const struct top_row *row = top_model_selected(&t->model);

    if (row == NULL)
        return;
    top_drop_documents(t);
    (void)snprintf(t->project, sizeof(t->project), "%s", top_row_text(row, "project"));
    (void)snprintf(t->queue, sizeof(t->queue), "%s", top_row_text(row, "name"));
    t->selected = 0;
    t->history_s = top_now_ms() / 1000 - TOP_SAMPLE_S;
    t->view = VIEW_QUEUE;
}

/* Handles a key of the list. Returns true if the server must be asked again. */
static bool
key_of_list(struct top *t, int key)
{
    const long rows = (long)top_list_rows();

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
        if (t->next[0] != '\0') {
            memcpy(t->page, t->next, sizeof(t->page));
            t->model.selected = 0;
        }
        return true;
    case KEY_PPAGE:
    case KEY_HOME:
    case 'g':
        t->page[0] = '\0';
        top_model_move(&t->model, -rows);
        return true;
    case 's':
        t->sort = (t->sort + 1) % TOP_SORTS;
        t->page[0] = '\0';
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
        t->view = top_selected_message(t) == NULL ? VIEW_QUEUE : VIEW_MESSAGE;
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
    int64_t next_ms = top_now_ms() + t->interval_ms;

    while (!t->quits && top_signal == 0) {
        int64_t left_ms = next_ms - top_now_ms();
        int key;

        top_draw(t);
        timeout(left_ms < 0 ? 0 : (int)left_ms);
        key = getch();
        if (key == ERR && left_ms > 0 &&
            top_now_ms() < next_ms - 5) /* no terminal any more, or a signal */
            t->quits = !isatty(STDIN_FILENO);
        if (key != ERR && key != KEY_RESIZE && handle_key(t, key))
            next_ms = top_now_ms();
        if (top_now_ms() >= next_ms) {
            top_request(t);
            next_ms = top_now_ms() + t->interval_ms;
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
    top_request(t);
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
    status = top_run(&t);
    top_drop_documents(&t);
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
