#include "support/journalled.h"

#include "support/patient.h"
#include "support/store_fixture.h"

#include <stdlib.h>

static void
load_all(void *journal)
{
    while (journal_load_run(journal))
        continue;
}

static void
open_store(struct journalled *p)
{
    struct engine_config config;
    struct store *engine;

    p->mem = mem_new(0);
    ck_assert_ptr_nonnull(p->mem);
    config = fixture_config(p->mem);
    config.require_confirmation = p->require_confirmation;
    config.seed = p->seed;
    config.log = journal_log(p->journal);
    config.runs = journal_runs(p->journal);
    config.unload_all = p->unload || getenv("CLAIMD_TEST_UNLOAD") != NULL;
    config.backlog_memory = p->backlog_memory > 0 ? p->backlog_memory : UINT64_MAX;
    if (config.unload_all)
        config.backlog_memory = 0;
    ck_assert_status(engine_open(&config, &engine), ST_OK);
    p->store = patient_open(engine);
    patient_between(p->store, load_all, p->journal);
}

void
journalled_start(struct journalled *p, int64_t now_ms)
{
    struct journal_config config = {.disk = sim_disk_open(p->disk),
                                    .segment_bytes = p->segment_bytes,
                                    .max_bytes = p->max_bytes,
                                    .clock = p->clock,
                                    .boot_id = p->boot_id,
                                    .seeded = true,
                                    .seed = ++p->seed};
    char error[JOURNAL_ERROR_CAP] = "";

    p->seen = config.disk;
    ck_assert_msg(journal_open(&config, &p->journal, error) == ST_OK, "%s", error);
    open_store(p);
    p->recovery = (struct journal_recovery){
        .now_ms = now_ms, .stopwatch_ns = p->stopwatch_ns, .accept_clock = true};
    ck_assert_msg(journal_recover(p->journal, patient_inside(p->store), &p->recovery,
                                  error) == ST_OK,
                  "%s", error);
}

void
journalled_commit(struct journalled *p)
{
    while (journal_write_runs(p->journal))
        continue;
    while (journal_step(p->journal))
        continue;
}

void
journalled_stop(struct journalled *p)
{
    journal_close(p->journal);
    store_close(p->store);
    ck_assert_uint_eq(mem_used(p->mem), 0);
    mem_destroy(p->mem);
}
