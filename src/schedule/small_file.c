#include "schedule/small_file.h"

#include <errno.h>
#include <unistd.h>

enum status
small_file_read(struct mem *mem, int fd, size_t size, struct bytes *out, int *error)
{
    char *text = mem_alloc(mem, size + 1); /* never an empty block */
    size_t len = 0;
    ssize_t n = 1;

    if (text == NULL)
        return ST_NO_MEMORY;
    while (len < size && n != 0) {
        n = read(fd, text + len, size - len);
        if (n < 0 && errno != EINTR) {
            *error = errno;
            mem_free(mem, text);
            return ST_IO;
        }
        len += n > 0 ? (size_t)n : 0;
    }
    *out = bytes_of(text, len);
    return ST_OK;
}

void
small_file_free(struct mem *mem, struct bytes text)
{
    mem_free(mem, (void *)(uintptr_t)text.data);
}
