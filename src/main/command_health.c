/* claimd health: is a server ready? For containers without curl. */
#include "claimd/base/clock.h"
#include "claimd/http/listen.h"
#include "main/ask.h"
#include "main/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int
run(const struct command_words *words)
{
    struct listen_list list;
    const char *address = words->places[0];
    const int64_t until_ns = clock_stopwatch_ns() + INT64_C(1000000000) * PATIENCE_S;
    int fd, status;

    if (address == NULL)
        address = own_address(&list);
    fd = ask_dial(address, until_ns);
    if (fd < 0)
        return command_fails(COMMAND_FAILED, "%s does not respond: %s", address,
                             strerror(errno));
    status = ask_get(fd, "/readyz", until_ns, NULL);
    (void)close(fd);
    if (status == 0)
        return command_fails(COMMAND_FAILED, "%s does not respond", address);
    if (status < 200 || status >= 300)
        return command_fails(COMMAND_FAILED, "%s is not ready. Its status is %d", address,
                             status);
    (void)printf("%s is ready\n", address);
    return COMMAND_GOOD;
}

const struct command command_health = {
    .name = "health",
    .call = "health [ADDRESS]",
    .summary = "Check whether a server is ready.",
    .usages = {"health [ADDRESS]"},
    .about =
        "Requests /readyz of the claimd at ADDRESS, which is HOST:PORT, [IPv6]:PORT or "
        "unix:PATH. The default is the first address of CLAIMD_LISTEN without TLS, else "
        "127.0.0.1:8888. The time limit is 5 seconds. Use it in containers without curl.",
    .example = "claimd health 127.0.0.1:8888",
    .ends = {"The server is ready.", "The server is not ready, or it does not respond.",
             "The arguments are wrong."},
    .places = 1,
    .needs = "an address",
    .run = run};
