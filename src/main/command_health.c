/* claimd health: is a server ready? For containers without curl. */
#include "claimd/base/clock.h"
#include "claimd/http/listen.h"
#include "claimd/json/scan.h"
#include "main/command.h"
#include "main/http_get.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_S = 5 };

/* The first address of CLAIMD_LISTEN without TLS, or what the server has without it. */
static const char *
own_address(struct listen_list *list)
{
    const char *listen = getenv("CLAIMD_LISTEN");
    char unheard[256];

    if (listen == NULL)
        return "127.0.0.1:8888";
    if (!listen_read(listen, list, unheard, sizeof(unheard)))
        return listen;
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].kind != LISTEN_TLS)
            return list->entries[i].address;
    return list->entries[0].address;
}

/* The description of an error document, as it is written there; absent: there is none. */
static struct bytes
find_description(struct bytes document)
{
    struct json_scan_value value = {.kind = SCAN_NONE};
    struct json_scan_name name;
    struct json_scan s;

    json_scan_begin(&s, document);
    if (json_scan_enter(&s, SCAN_OBJECT))
        while (json_scan_member(&s, &name))
            if (json_scan_value(&s, &value) && value.kind == SCAN_STRING &&
                json_scan_name_is(&name, "description"))
                return json_scan_inside(&value);
    return BYTES_NONE;
}

static int
run_health(const struct command_words *words)
{
    const int64_t until_ns = clock_stopwatch_ns() + INT64_C(1000000000) * PATIENCE_S;
    const char *address = words->places[0];
    struct listen_list list;
    struct bytes why;
    struct buf body;
    int code, status = COMMAND_GOOD;

    if (address == NULL)
        address = own_address(&list);
    buf_init(&body, words->mem);
    code = http_get(address, "/readyz", until_ns, &body);
    why = find_description(buf_view(&body));
    if (code < 0)
        status = command_fails(COMMAND_FAILED, "%s does not respond: %s", address,
                               strerror(errno));
    else if (code == 0)
        status = command_fails(COMMAND_FAILED,
                               "%s does not respond to plain HTTP. If it is a TLS "
                               "address, name one without TLS",
                               address);
    else if (code < 200 || code >= 300)
        status = command_fails(COMMAND_FAILED, "%s is not ready. Its status is %d%s%.*s",
                               address, code, bytes_present(why) ? ": " : "",
                               (int)why.len, bytes_present(why) ? why.data : "");
    else
        (void)printf("%s is ready\n", address);
    buf_fini(&body);
    return status;
}

const struct command command_health = {
    .name = "health",
    .call = "health [ADDRESS]",
    .summary = "Check whether a server is ready.",
    .usages = {"health [ADDRESS]"},
    .about =
        "Requests /readyz of the claimd at ADDRESS, which is HOST:PORT, [IPv6]:PORT or "
        "unix:PATH. The default is the first address of CLAIMD_LISTEN without TLS, else "
        "127.0.0.1:8888. The command speaks plain HTTP, not TLS. "
        "The time limit is 5 seconds. Use it in containers without curl.",
    .example = "claimd health 127.0.0.1:8888",
    .ends = {"The server is ready.", "The server is not ready, or it does not respond.",
             "The arguments are wrong."},
    .places = 1,
    .needs = "an address",
    .run = run_health};
