#include "main/supervisor.h"

#include <ctype.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { STATUS_CAP = 1024, MESSAGE_CAP = STATUS_CAP + 256 };

void
supervisor_init(struct supervisor *s, const char *name)
{
    size_t len = name == NULL ? 0 : strlen(name);

    *s = (struct supervisor){.wanted = len > 0};
    s->address.sun_family = AF_UNIX;
    if ((len > 0 && name[0] != '/' && name[0] != '@') || len < 2 ||
        len >= sizeof(s->address.sun_path))
        return;
    memcpy(s->address.sun_path, name, len + 1);
    s->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (name[0] == '@')
        s->address.sun_path[0] = '\0'; /* abstract: the size says where it ends */
    else
        s->size++;
}

static bool
deliver(const struct supervisor *s, const char *text)
{
    const struct timeval patience = {.tv_sec = SUPERVISOR_PATIENCE_MS / 1000};
    size_t len = strlen(text);
    bool sent = false;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return false;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0)
        sent = sendto(fd, text, len, MSG_NOSIGNAL,
                      (const struct sockaddr *)(const void *)&s->address,
                      s->size) == (ssize_t)len;
    (void)close(fd);
    return sent;
}

bool
supervisor_tell(const struct supervisor *s, const char *assignments, const char *format,
                ...)
{
    char status[STATUS_CAP], message[MESSAGE_CAP];
    va_list args;

    if (s->size == 0)
        return !s->wanted;
    va_start(args, format);
    if (vsnprintf(status, sizeof(status), format, args) < 0)
        status[0] = '\0';
    va_end(args);
    for (char *at = status; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            *at = '?';
    (void)snprintf(message, sizeof(message), "%s%sSTATUS=%s",
                   assignments == NULL ? "" : assignments,
                   assignments == NULL ? "" : "\n", status);
    return deliver(s, message);
}

bool
supervisor_send(const struct supervisor *s, const char *assignments)
{
    return s->size == 0 ? !s->wanted : deliver(s, assignments);
}
