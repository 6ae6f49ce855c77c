/*
 * exit_status: how the daemon tells its supervisor why it ended.
 */
#ifndef MAIN_EXIT_STATUS_H
#define MAIN_EXIT_STATUS_H

/* Exit statuses besides 0. */
enum {
    EXIT_CANNOT_START = 1,
    EXIT_USAGE = 2,
    EXIT_JOURNAL_REFUSED =
        3,                  /* it is damaged, of another claimd, or the clock is wrong */
    EXIT_JOURNAL_FAILED = 4 /* a write or sync failed while serving */
};

#endif
