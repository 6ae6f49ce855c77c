#include "claimd/base/supervisor.h"

#include "claimd/base/bytes.h"

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
        s->address.sun_path[0] = '\0'; /* abstract, without a NUL at its end */
    else
        s->size++;
}

static bool
send_datagram(const struct supervisor *s, const char *text)
{
    const struct timeval timeout = {.tv_sec = SUPERVISOR_TIMEOUT_MS / 1000};
    size_t len = strlen(text);
    bool sent = false;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return false;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0)
        sent = sendto(fd, text, len, MSG_NOSIGNAL,
                      (const struct sockaddr *)(const void *)&s->address,
                      s->size) == (ssize_t)len;
    (void)close(fd);
    return sent;
}

bool
supervisor_notify(const struct supervisor *s, const char *assignments, const char *format,
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
    return send_datagram(s, message);
}

/* ------------------------------------------------------------------ watchdog */

/* LATE_PART: part of the interval after which a late worker is checked again. */
enum { USEC_PER_MS = 1000, LATE_PART = 8 };

bool
watchdog_init(struct watchdog *w, const char *usec, const char *pid, int64_t self)
{
    int64_t patience_us, watched;

    *w = (struct watchdog){.check_ms = 0};
    if (usec == NULL)
        return true;
    if (pid != NULL && !bytes_to_i64(bytes_str(pid), &watched))
        return false;
    if (!bytes_to_i64(bytes_str(usec), &patience_us) || patience_us <= 0)
        return false;
    if (pid != NULL && watched != self)
        return true; /* for the parent, which did not unset it */
    w->check_ms = patience_us / 2 / USEC_PER_MS;
    if (w->check_ms == 0)
        w->check_ms = 1;
    return true;
}

int64_t
watchdog_check(struct watchdog *w, const struct supervisor *s, bool all_rounds, bool *ask)
{
    *ask = false;
    if (w->check_ms == 0 || !s->wanted)
        return -1;
    if (w->round_asked && !all_rounds)
        return w->check_ms / LATE_PART + 1;
    /* If the supervisor does not read now, the next check is still early enough. */
    if (w->round_asked && s->size > 0)
        (void)send_datagram(s, "WATCHDOG=1");
    *ask = w->round_asked = true;
    return w->check_ms;
}
