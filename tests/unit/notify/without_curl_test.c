/* Notifications where libcurl is not installed: dlopen() finds nothing
 * (tests/CMakeLists.txt). */
#include "claimd/notify/notify.h"

#include "support/check_main.h"
#include "support/feed_store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic size_t loads;

void *__wrap_dlopen(const char *name, int flags);
char *__wrap_dlerror(void);

void *
__wrap_dlopen(const char *name, int flags)
{
    (void)name, (void)flags;
    atomic_fetch_add(&loads, 1);
    return NULL;
}

char *
__wrap_dlerror(void)
{
    static char why[] = "not found";

    return why;
}

static size_t
count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

START_TEST(it_is_said_once_and_deliveries_wait)
{
    const struct store_delivery d = {.subscriber = BYTES_LIT("http://127.0.0.1/"),
                                     .options = BYTES_LIT("{}"),
                                     .metadata = BYTES_LIT("{}"),
                                     .body = BYTES_LIT("1")};
    char path[] = "/tmp/without_curl_XXXXXX", lines[4096] = "";
    struct mem *mem = mem_new(0);
    struct clock clock;
    struct log log = {.fd = mkstemp(path), .level = LOG_INFO, .clock = &clock};
    struct notify_config config = {.mem = mem,
                                   .clock = &clock,
                                   .real = &clock,
                                   .log = &log,
                                   .workers = 10,
                                   .connect_ms = 1000,
                                   .timeout_ms = 1000};
    struct notify *notify;
    struct feed_result notification;
    size_t which;

    ck_assert_int_ge(log.fd, 0);
    (void)unlink(path);
    clock_init_manual(&clock, 1700000000000);
    config.store = feed_store_open(&clock);
    config.store_log = feed_store_log(config.store);
    ck_assert_int_eq(notify_open(&config, &notify), ST_OK);
    ck_assert_uint_eq(atomic_load(&loads), 0); /* nothing is due, so nothing is loaded */
    which = feed_store_add(config.store, &d);
    for (size_t times = 1; times <= 3; times++) {
        notification = feed_store_await(config.store, which, times);
        ck_assert_int_eq(notification.outcome, STORE_OUTCOME_BACKED_OFF);
        ck_assert_int_eq(notification.again_ms, clock_now_ms(&clock) + 60000);
        clock_advance(&clock, 60000);
        feed_store_notify(config.store);
    }
    notify_close(notify);
    ck_assert_int_gt(pread(log.fd, lines, sizeof(lines) - 1, 0), 0);
    ck_assert_uint_eq(count(lines, "\n"), 1);
    ck_assert_uint_eq(count(lines, "notifications_put_off error=\"needs libcurl"), 1);
    store_close(config.store);
    (void)close(log.fd);
    mem_destroy(mem);
}
