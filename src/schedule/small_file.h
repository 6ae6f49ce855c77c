/* small_file: reads files of tzdata into memory. */
#ifndef SCHEDULE_SMALL_FILE_H
#define SCHEDULE_SMALL_FILE_H

#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"
#include "claimd/base/status.h"

/* Reads the first `size` bytes of an open file, or all if it has fewer. *out is owned:
 * free it by small_file_free(). ST_IO: *error is the errno. ST_NO_MEMORY. */
enum status
small_file_read(struct mem *mem, int fd, size_t size, struct bytes *out, int *error);
void small_file_free(struct mem *mem, struct bytes text);

#endif
