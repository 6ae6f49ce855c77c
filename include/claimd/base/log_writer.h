/*
 * log_writer: the thread behind a log, so that nobody who logs waits for whoever reads.
 *
 *     log_write() --> [ whole lines, at most LOG_WRITER_ROOM bytes ] --> thread --> write(2)
 *
 * The descriptor may block: it is often shared with other processes, so it is left as it
 * is, and only the thread waits. A reader that falls behind by more than the buffer costs
 * lines: from the first that finds no room, all are dropped until those in the buffer are
 * written. Lines that cannot be written (nobody has the other end open, the disk is full)
 * are lost too. Where lines are missing stands "log_lines_dropped count=N", as soon as
 * something can be written there.
 *
 *   Order    that of log_write(); a line is never torn, and written within one write(2) of
 *            at most PIPE_BUF bytes, so that lines of several processes do not mix
 *   Cost     a copy under a lock. The thread sleeps while there is nothing to write, and
 *            is woken for the first line, but not for each of many: when it has written
 *            what there is, it naps before it looks for more, and sleeps without a
 *            time-out if there is none. A line is written LOG_WRITER_NAP_MS late at most
 *   Memory   from malloc, and touched only as far as lines have ever waited. No account
 *            pays for it: no client can cause more of it, and it may outlive the account
 *   Threads  any may log; start and end belong to the owner of the log
 */
#ifndef CLAIMD_BASE_LOG_WRITER_H
#define CLAIMD_BASE_LOG_WRITER_H

#include "claimd/base/log.h"
#include "claimd/base/status.h"

enum { LOG_WRITER_ROOM = 1024 * 1024, LOG_WRITER_NAP_MS = 10 };

/*
 * Gives the log a writer. On failure it stays without: whoever logs writes, and may wait.
 * ST_NO_MEMORY; ST_IO without descriptors; ST_UNAVAILABLE without a thread.
 */
enum status log_writer_start(struct log *log);

/* How many lines were dropped so far. Any thread. */
uint64_t log_dropped(const struct log *log);

/*
 * Takes the writer away again, when nobody logs any more: waits until the lines left are
 * written, but for no longer than at_most_ms. True if they are. Otherwise the thread is
 * left to the process's end, or to the reader's, with the descriptor, which has to stay
 * open; and the log writes nothing from then on.
 */
bool log_writer_end(struct log *log, int at_most_ms);

#endif
