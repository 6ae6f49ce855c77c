/* streams: the standard streams of a process. */
#ifndef CLAIMD_BASE_STREAMS_H
#define CLAIMD_BASE_STREAMS_H

#include <stdbool.h>

/*
 * Opens /dev/null for each of standard input, output and error that is closed. Otherwise the next file that the
 * process opens gets its number, and messages are written into that file. Call it first in main(). False: a
 * stream is closed and /dev/null cannot be opened.
 */
bool streams_open(void);

#endif
