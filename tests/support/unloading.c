/*
 * unloading: the part of claimd_unloading that differs from claimd. It is a claimd with
 * a journal that unloads each message that it can, and at once. So histories of a few
 * messages use body files. Linked with --wrap=engine_open and --wrap=lock_wait_ms.
 */
#include "claimd/engine/engine.h"
#include "journal/bodies.h" /* BODIES_WAIT_MS */

enum status __real_engine_open(const struct engine_config *config, struct store **out);
enum status __wrap_engine_open(const struct engine_config *config, struct store **out);
bool __real_lock_wait_ms(struct lock *l, pthread_cond_t *signal, int64_t ms);
bool __wrap_lock_wait_ms(struct lock *l, pthread_cond_t *signal, int64_t ms);

enum status
__wrap_engine_open(const struct engine_config *config, struct store **out)
{
    struct engine_config all = *config;

    all.unload_all = config->runs != NULL;
    if (all.unload_all)
        all.backlog_memory = 0;
    return __real_engine_open(&all, out);
}

bool
__wrap_lock_wait_ms(struct lock *l, pthread_cond_t *signal, int64_t ms)
{
    return __real_lock_wait_ms(l, signal, ms == BODIES_WAIT_MS ? 1 : ms);
}
