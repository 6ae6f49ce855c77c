#include "notify/figures.h"

static const struct bucket_bounds bounds_us = {11,
                                               {1000, 5000, 10000, 25000, 50000, 100000,
                                                250000, 500000, 1000000, 2500000,
                                                10000000}};

void
figures_count(struct figures *f, enum verdict_kind kind, int64_t took_ns)
{
    counter_add(&f->tries[kind], 1);
    if (took_ns >= 0)
        buckets_add(&f->took_us, &bounds_us, (uint64_t)took_ns / 1000);
}

static void
write_tries(const struct figures *f, struct exposition *x)
{
    static const struct family tries = {"claimd_notification_tries", FAMILY_COUNTER, NULL,
                                        "Number of notification attempts, by result."};
    static const char *const kinds[VERDICT_KINDS] = {
        [VERDICT_DELIVERED] = "delivered", [VERDICT_FAILED] = "failed",
        [VERDICT_REFUSED] = "refused",     [VERDICT_GIVEN_UP] = "given_up",
        [VERDICT_GONE] = "gone",
    };

    exposition_family(x, &tries);
    for (size_t i = 0; i < VERDICT_KINDS; i++) {
        const struct label result = {"result", bytes_str(kinds[i])};

        exposition_sample(x, &result, 1, counter_read(&f->tries[i]));
    }
}

void
figures_write(const struct figures *f, uint64_t slow_hosts, struct exposition *x)
{
    static const struct family put_off = {
        "claimd_notifications_put_off", FAMILY_COUNTER, NULL,
        "Number of due notifications that claimd postponed for lack of capacity."};
    static const struct family kept_out = {
        "claimd_notifications_kept_out", FAMILY_COUNTER, NULL,
        "Number of notification attempts that failed because notify_allow does not allow "
        "the address."};
    static const struct family in_flight = {"claimd_notifications_in_flight",
                                            FAMILY_GAUGE, NULL,
                                            "Number of notifications in progress."};
    static const struct family waiting = {"claimd_notifications_waiting", FAMILY_GAUGE,
                                          NULL,
                                          "Number of notifications that wait for the "
                                          "journal or for capacity at their host."};
    static const struct family slow = {
        "claimd_notification_slow_hosts", FAMILY_GAUGE, NULL,
        "Number of subscriber hosts with a slow or missing last response."};
    static const struct family took = {
        "claimd_notification_seconds", FAMILY_HISTOGRAM, "seconds",
        "Duration of the notification attempts, in seconds."};

    write_tries(f, x);
    exposition_single(x, &put_off, counter_read(&f->put_off));
    exposition_single(x, &kept_out, counter_read(&f->kept_out));
    exposition_single(x, &in_flight, counter_read(&f->in_flight));
    exposition_single(x, &waiting, counter_read(&f->waiting));
    exposition_single(x, &slow, slow_hosts);
    exposition_family(x, &took);
    exposition_buckets(x, NULL, 0, &f->took_us, &bounds_us, 6);
}
