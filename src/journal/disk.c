#include "claimd/journal/disk.h"

#include <errno.h>
#include <string.h>

int
disk_name_check(const char *name)
{
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strchr(name, '/') != NULL)
        return EINVAL;
    return strlen(name) < DISK_NAME_CAP ? 0 : ENAMETOOLONG;
}

int
disk_read(struct disk *d, struct disk_file *f, uint64_t offset, void *to, size_t len,
          size_t *got)
{
    size_t have = 0;

    while (have < len) {
        size_t part = 0;
        int error =
            d->ops->read(d, f, offset + have, (char *)to + have, len - have, &part);

        if (error != 0)
            return error;
        if (part == 0)
            break; /* the end of the file */
        have += part;
    }
    *got = have;
    return 0;
}

int
disk_write(struct disk *d, struct disk_file *f, uint64_t offset, const void *from,
           size_t len)
{
    size_t written = 0;

    while (written < len) {
        size_t part = 0;
        int error = d->ops->write(d, f, offset + written, (const char *)from + written,
                                  len - written, &part);

        if (error != 0)
            return error;
        if (part == 0)
            return EIO; /* no reason, and no end if it were tried again */
        written += part;
    }
    return 0;
}
