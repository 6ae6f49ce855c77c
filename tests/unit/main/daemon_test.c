/*
 * A server that cannot start a thread reports that and does not start. The test requests
 * a stack that no system has. Read src/main/daemon.h next.
 */
#include "main/daemon.h"

#include "support/check_main.h"

#include <pthread.h>
#include <stdlib.h>

START_TEST(without_a_thread_for_the_log_the_start_fails_with_an_error)
{
    char *argv[] = {(char *)(uintptr_t) "claimd", (char *)(uintptr_t) "--listen",
                    (char *)(uintptr_t) "127.0.0.1:0", NULL};
    char error[256], *envp[] = {NULL};
    struct config_errors errors = {.to = fmemopen(error, sizeof(error), "w")};
    pthread_attr_t usual, endless;
    enum config_action action;
    struct config config;
    struct daemon *d = NULL;
    struct clock clock;
    enum status st;

    clock_init_system(&clock);
    ck_assert_ptr_nonnull(errors.to);
    ck_assert_int_eq(config_load(3, argv, envp, &config, &action, &errors), ST_OK);
    ck_assert_int_eq(pthread_getattr_default_np(&usual), 0);
    ck_assert_int_eq(pthread_getattr_default_np(&endless), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&endless, (size_t)1 << 50), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&endless), 0);
    st = daemon_open(&config, &clock, &d, &errors);
    ck_assert_int_eq(pthread_setattr_default_np(&usual), 0);
    ck_assert_int_eq(st, ST_UNAVAILABLE);
    ck_assert_int_eq(fclose(errors.to), 0);
    ck_assert_str_eq(error, "claimd: cannot start a thread for the log\n");
    ck_assert_ptr_null(d);
}
