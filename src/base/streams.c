#include "claimd/base/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool
streams_open(void)
{
    /* open(2) returns the lowest free number, and those below fd are in use. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

bool
streams_output_is_closed(void)
{
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);

    return flags < 0 || (flags & O_ACCMODE) == O_RDONLY;
}
