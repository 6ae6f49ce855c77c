/* streams: the standard streams of a process. */
#ifndef CLAIMD_BASE_STREAMS_H
#define CLAIMD_BASE_STREAMS_H

#include <stdbool.h>

/*
 * Opens /dev/null for each of standard input, output and error that is closed. Otherwise
 * the next file that the process opens gets its number, and messages are written into
 * that file. Input is opened for writing and output for reading, so that their use fails
 * as with a closed stream. Call it first in main(). False: a stream is closed and
 * /dev/null cannot be opened.
 */
bool streams_open(void);

/* True if standard output was closed when the process began, or cannot be written. */
bool streams_output_is_closed(void);

#endif
