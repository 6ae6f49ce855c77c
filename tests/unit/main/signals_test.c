/*
 * The first signal stops the server in order and a later one ends it. A second signal in
 * the same moment, as terminals send it, is ignored. Declared in src/main/program.h.
 */
#include "main/program.h"

#include "support/check_main.h"

#include <signal.h>

START_TEST(the_first_signal_stops_and_one_much_later_ends)
{
    struct signal_history history = {.stopped = false};

    ck_assert_int_eq(signal_decide(&history, SIGTERM, 5000), SIGNAL_STOP);
    ck_assert_int_eq(signal_decide(&history, SIGTERM, 6000), SIGNAL_END);
}

START_TEST(another_signal_soon_after_the_first_is_ignored_whichever_it_is)
{
    struct signal_history history = {.stopped = false};

    ck_assert_int_eq(signal_decide(&history, SIGINT, 0), SIGNAL_STOP);
    ck_assert_int_eq(signal_decide(&history, SIGINT, 0), SIGNAL_IGNORE);
    ck_assert_int_eq(signal_decide(&history, SIGTERM, 1), SIGNAL_IGNORE);
    ck_assert_int_eq(signal_decide(&history, SIGTERM, 999), SIGNAL_IGNORE);
    ck_assert_int_eq(signal_decide(&history, SIGINT, 1000), SIGNAL_END);
}

START_TEST(other_signals_do_not_count_however_many_come)
{
    struct signal_history history = {.stopped = false};

    ck_assert_int_eq(signal_decide(&history, SIGHUP, 0), SIGNAL_RELOAD);
    ck_assert_int_eq(signal_decide(&history, SIGUSR1, 3000), SIGNAL_PAUSE);
    ck_assert_int_eq(signal_decide(&history, SIGTERM, 6000), SIGNAL_STOP);
    ck_assert_int_eq(signal_decide(&history, SIGHUP, 8000), SIGNAL_RELOAD);
    ck_assert_int_eq(signal_decide(&history, SIGUSR1, 8000), SIGNAL_PAUSE);
}
