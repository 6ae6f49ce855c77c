/*
 * What log and log_writer share.
 */
#ifndef BASE_LOG_PRIVATE_H
#define BASE_LOG_PRIVATE_H

#include "claimd/base/counter.h"
#include "claimd/base/log_writer.h"

enum { LOG_LINE_CAP = 4096 }; /* with its line feed */

/* Makes a line as log_write() describes it, whatever its level; returns its length. */
size_t log_format(const struct log *log, enum log_level level, const char *event,
                  const struct log_field *fields, size_t count, char out[LOG_LINE_CAP]);

/* Leaves a copy of a line to the thread, or drops and counts it. Never waits for I/O. */
void log_writer_add(struct log_writer *w, const char *line, size_t len);

#endif
