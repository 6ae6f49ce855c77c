/* exit_status: the exit statuses of the server besides 0. claimd/base/command.h has those
 * of commands. */
#ifndef MAIN_EXIT_STATUS_H
#define MAIN_EXIT_STATUS_H

enum {
    EXIT_CANNOT_START = 1,
    EXIT_USAGE = 2,
    EXIT_JOURNAL_REFUSED = 3, /* damaged, of another claimd, or the clock is wrong */
    EXIT_JOURNAL_FAILED = 4   /* a write or sync failed while serving */
};

#endif
