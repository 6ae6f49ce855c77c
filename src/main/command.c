#include "main/command.h"

#include "claimd/api/limits.h"
#include "claimd/base/clock.h"
#include "claimd/engine/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct disk *
command_open_dir(const char *path, bool make)
{
    struct disk *d = NULL;
    int error = disk_open(path, make, &d);
    char text[ERRNO_TEXT_CAP];

    if (error == 0)
        return d;
    (void)command_fails(COMMAND_FAILED, "%s cannot be opened: %s", path,
                        disk_error_text(error, text));
    return NULL;
}

bool
command_journal_open(struct command_journal *j, const char *path, const char *advice)
{
    int error;

    *j = (struct command_journal){.path = path, .disk = command_open_dir(path, false)};
    if (j->disk == NULL)
        return false;
    error = journal_lock(j->disk, &j->lock);
    j->in_use = error == EWOULDBLOCK;
    if (advice == NULL) {
        disk_close(j->disk, j->lock);
        j->lock = NULL;
    }
    if (j->in_use && advice != NULL)
        (void)command_fails(COMMAND_FAILED, "another process uses %s. %s", path, advice);
    else if (error != 0 && !j->in_use)
        (void)command_fails(COMMAND_FAILED, "%s cannot be locked: %s", path,
                            strerror(error));
    else
        return true;
    return false;
}

void
command_journal_close(struct command_journal *j)
{
    if (j->disk != NULL)
        disk_close(j->disk, j->lock);
    disk_shut(j->disk);
}

static void
count_name(void *arg, const char *name)
{
    (void)name;
    ++*(size_t *)arg;
}

struct disk *
command_open_empty_dir(const char *path)
{
    struct disk *d = command_open_dir(path, true);
    size_t names = 0;
    int error = d == NULL ? 0 : disk_list(d, count_name, &names);

    if (error == 0 && names == 0)
        return d;
    if (error != 0)
        (void)command_fails(COMMAND_FAILED, "%s cannot be opened: %s", path,
                            strerror(error));
    else
        (void)command_fails(COMMAND_FAILED,
                            "%s is not empty. Give a new or an empty directory", path);
    disk_shut(d);
    return NULL;
}

int
command_replay_open(struct command_replay *r, struct disk *d, const char *path,
                    const struct journal_callbacks *callbacks)
{
    const struct api_limits *limits = &api_limits_default;
    struct engine_config config = {.shards = 1, .backlog_memory = UINT64_MAX};
    char error[JOURNAL_ERROR_CAP];
    struct clock clock;
    enum status st = ST_NO_MEMORY;

    clock_init_system(&clock);
    *r = (struct command_replay){.mem = mem_new(0), .now_ms = clock_now_ms(&clock)};
    r->found.now_ms = r->now_ms;
    config.mem = r->mem;
    config.now_ms = r->now_ms;
    config.message_ttl_s = limits->default_message_ttl;
    config.message_delay_s = limits->default_message_delay;
    config.claim_ttl_s = limits->default_claim_ttl;
    config.claim_grace_s = limits->default_claim_grace;
    config.max_message_ttl_s = limits->max_message_ttl;
    config.dead_letter_ttl_s = limits->dead_letter_ttl;
    config.key_window_ms = limits->idempotency_window * 1000;
    if (r->mem != NULL)
        st = journal_bodies_open(d, &r->bodies);
    if (st == ST_OK) {
        config.runs = journal_bodies_runs(r->bodies);
        st = engine_open(&config, &r->store);
    }
    if (st != ST_OK)
        return command_fails(COMMAND_FAILED, "%s", status_text(st));
    st = journal_verify(r->bodies, r->store, callbacks, &r->found, error);
    if (st == ST_OK)
        return COMMAND_GOOD;
    return command_fails(st == ST_CONFLICT ? COMMAND_DAMAGED : COMMAND_FAILED, "%s: %s",
                         path, error);
}

void
command_replay_close(struct command_replay *r)
{
    journal_bodies_close(r->bodies);
    store_close(r->store);
    mem_destroy(r->mem);
}

bool
command_client_open(struct command_client *c, const char *url, struct mem *mem)
{
    struct reason why;

    *c = (struct command_client){.web = {.curl = &c->curl, .mem = mem, .url = url}};
    reason_init(&why);
    if (curl_library_load(&c->curl, &why) == ST_OK)
        return true;
    (void)command_fails(COMMAND_FAILED, "%s", why.text);
    return false;
}

void
command_client_close(struct command_client *c)
{
    web_client_close(&c->web);
}
