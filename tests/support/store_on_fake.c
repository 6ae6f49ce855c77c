#include "support/store_on_fake.h"

#include "claimd/base/invariant.h"
#include "support/store_fixture.h"

#include <stdio.h>

void
store_on_fake_open(struct store_on_fake *f, int replicas)
{
    static const char facts[] = "redis_version:7.2.4\r\nvalkey_version:9.1.2\r\n"
                                "role:master\r\nconnected_slaves:1\r\naof_enabled:1\r\n";
    char url[96], info[sizeof(facts) + 16];
    const struct fake_response handshake[] = {
        {"CLUSTER SLOTS", "-ERR This instance has cluster support disabled\r\n"},
        {"INFO", info},
        {"FUNCTION LOAD", "$6\r\nclaimd\r\n"},
        {"FCALL", "*1\r\n:2\r\n"}, /* there is no such queue */
        {NULL, NULL}};
    struct engine_config config;

    fake_redis_start(&f->redis);
    snprintf(info, sizeof(info), "$%zu\r\n%s\r\n", sizeof(facts) - 1, facts);
    snprintf(url, sizeof(url),
             "redis://127.0.0.1:%u?replicas=%d&restarts=held&patience_ms=0",
             f->redis.port, replicas);
    fake_redis_play(&f->redis, handshake);
    f->mem = mem_new(0);
    ENSURE(f->mem != NULL); /* fuzz targets have no Check */
    config = fixture_config(f->mem);
    ENSURE(fixture_redis(&config, url, &f->store) == ST_OK);
    f->queue = (struct store_queue){.project = bytes_str("p"), .name = bytes_str("q")};
}

void
store_on_fake_close(struct store_on_fake *f)
{
    store_close(f->store);
    fake_redis_stop(&f->redis);
    mem_destroy(f->mem);
}
