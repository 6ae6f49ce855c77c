#include "main/daemon_private.h"
#include "main/option.h"

#include <inttypes.h>

void
daemon_signal_ignored(const struct daemon *d, const char *name)
{
    log_event(&d->log, LOG_WARN, "signal_ignored", LOG_S("signal", name));
}

/* Reads the files that it names; what is changed last cannot fail. */
static enum status
reload_files(struct daemon *d, const struct config *config, struct config_errors *errors)
{
    struct tls_pair *pair = NULL;
    struct signer *signer = NULL, *webhooks = NULL;
    struct seal *seal = NULL;
    enum status st =
        signing_open("signing_keys", config->signing_keys, d->mem, &signer, errors);

    if (st == ST_OK)
        st =
            signing_open("webhook_keys", config->webhook_keys, d->mem, &webhooks, errors);
    if (st == ST_OK)
        st = sealing_open(config, d->mem, NULL, &seal, errors);
    if (st == ST_OK && d->named.tls != NULL)
        st = certificate_read(config, d->mem, &pair, errors);
    if (st == ST_OK && d->named.admission.access != NULL)
        st = admission_reload(&d->named.admission, config, errors);
    if (st != ST_OK)
        tls_pair_drop(pair);
    else if (pair != NULL)
        tls_replace(d->named.tls, pair);
    if (st == ST_OK) {
        signer_swap(d->named.signer, signer);
        signer_swap(d->named.webhooks, webhooks);
        seal_swap(d->named.seal, seal);
    }
    signer_free(signer);
    signer_free(webhooks);
    seal_free(seal);
    return st;
}

/* The options that are read again and again. */
static void
put_in_force(struct daemon *d)
{
    const struct engine_limits stored = daemon_stored_limits(&d->config);

    atomic_store_explicit(&d->log.level, (enum log_level)d->config.log_level,
                          memory_order_relaxed);
    server_log_requests(d->server, daemon_logged_requests(&d->config));
    if (d->redis.store == NULL)
        engine_limit(d->store, &stored);
    api_limit(d->api, &d->config.project_limits);
    atomic_store(&d->drain_ms, d->config.drain_seconds * 1000);
}

static void
reload_and_log(struct daemon *d, struct config_errors *errors)
{
    struct access *access = d->named.admission.access;
    struct reload r;
    enum status st = reload_read(&r, &d->config, errors);

    if (st == ST_OK)
        st = reload_files(d, &r.next, errors);
    process_metrics_reloaded(&d->process, st == ST_OK, clock_now_ms(d->clock));
    if (st != ST_OK) {
        log_event(&d->log, LOG_ERROR, "reload_failed",
                  LOG_S("error", errors->count > 0 ? errors->first : status_text(st)),
                  LOG_I("further_errors", errors->count > 1 ? errors->count - 1 : 0));
        return;
    }
    reload_take(&r, &d->config);
    put_in_force(d);
    for (size_t i = 0; i < r.kept_count; i++)
        log_event(&d->log, LOG_WARN, "restart_needed", LOG_S("option", r.kept[i]->name));
    log_event(&d->log, LOG_INFO, "reloaded",
              LOG_I("tokens", access == NULL ? 0 : access_count(access)),
              LOG_I("options_changed", r.changed), LOG_I("options_kept", r.kept_count));
    if (d->named.tls != NULL)
        certificate_log(d->named.tls, &d->log, clock_now_ms(d->clock));
    sealing_log(d->named.seal, &d->log);
}

void
daemon_reload(struct daemon *d)
{
    struct config_errors errors = {.to = NULL};
    bool told = !atomic_load(&d->condition.draining); /* else it is STOPPING, for good */
    char assignments[64];

    if (told) {
        (void)snprintf(assignments, sizeof(assignments),
                       "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
                       clock_stopwatch_ns() / 1000);
        (void)supervisor_tell(&d->supervisor, assignments, "reloading");
    }
    reload_and_log(d, &errors);
    if (told && errors.count > 0)
        (void)supervisor_tell(&d->supervisor, "READY=1", "not reloaded: %s",
                              errors.first);
    else if (told)
        (void)daemon_tell_state(d, "READY=1");
}

void
daemon_pause(struct daemon *d)
{
    bool closed = !atomic_load(&d->condition.closed); /* only this thread changes it */

    atomic_store(&d->condition.closed, closed);
    log_event(&d->log, LOG_INFO, "maintenance",
              LOG_S("posts", closed ? "refused" : "taken"));
    (void)daemon_tell_state(d, NULL);
}

static void
ask_round(void *ctx)
{
    server_ask_round(ctx);
}

static bool
went_round(void *ctx)
{
    return server_went_round(ctx);
}

int64_t
daemon_look(struct daemon *d)
{
    const struct watchdog_rounds rounds = {
        .ask = ask_round, .all_went = went_round, .ctx = d->server};

    return watchdog_look(&d->watchdog, &d->supervisor, &rounds);
}
