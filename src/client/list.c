#include "client/list.h"

#include "claimd/json/string.h"
#include "client/command.h"
#include "client/text.h"

/* Adds an item of a page. False: no more are wanted. */
static bool
list_add(void *ctx, const json_t *item, struct bytes text)
{
    struct list_output *l = ctx;
    const char *state = member_text(json_object_get(item, "details"), "state");

    if (l->state != NULL && (state == NULL || strcmp(state, l->state) != 0))
        return true;
    if (l->client->json) {
        json_write_comma(&l->document);
        buf_bytes(&l->document, text);
    } else if (l->add_row != NULL) {
        l->add_row(&l->table, item);
    } else {
        table_row(&l->table, item, BYTES_NONE);
    }
    return --l->left > 0;
}

int
list_print(struct list_output *l, const struct client_request *request)
{
    const int64_t most = l->left;
    struct client *c = l->client;
    int status;

    table_init(&l->table, c->mem, l->columns, l->column_count);
    buf_init(&l->document, c->mem);
    buf_printf(&l->document, "{\"%s\":[", l->name);
    status = client_read_pages(c, request, l->name, list_add, l);
    buf_str(&l->document, "]}");
    if (status != COMMAND_GOOD)
        (void)client_fails(c, request->parts[0], status);
    else if (l->left == most && l->may_be_gone)
        status = client_check_queue(c, request->parts[0]);
    if (status == COMMAND_GOOD)
        status = c->json ? print_json(&l->document) : table_print(&l->table);
    buf_fini(&l->document);
    table_fini(&l->table);
    return status;
}
