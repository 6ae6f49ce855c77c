#include "main/activation.h"

#include "claimd/base/bytes.h"
#include "main/listen_policy.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_FD = 3 };

static const struct {
    struct bytes name;
    enum listen_kind kind;
} names[] = {
    {BYTES_LIT("api"), LISTEN_API},
    {BYTES_LIT("claimd.socket"), LISTEN_API}, /* what systemd calls it by itself */
    {BYTES_LIT("unknown"), LISTEN_API},
    {BYTES_LIT(""), LISTEN_API},
    {BYTES_LIT("tls"), LISTEN_TLS},
    {BYTES_LIT("metrics"), LISTEN_METRICS},
};

static bool
is_number(const char *text, uint64_t *out)
{
    return text != NULL && bytes_to_u64(bytes_str(text), out);
}

bool
activation_wanted(const struct config *config)
{
    uint64_t pid, count;

    if (is_number(config->listen_fds, &count) && count == 0)
        return false;
    return config->listen_fds != NULL && is_number(config->listen_pid, &pid) &&
           pid == (uint64_t)getpid();
}

static bool
find_kind(struct bytes name, enum listen_kind *out)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (bytes_equal(names[i].name, name)) {
            *out = names[i].kind;
            return true;
        }
    return false;
}

static void
take_one(int fd, struct bytes name, struct listen_list *out, struct config_errors *errors)
{
    enum listen_kind kind;
    const char *why;

    if (!find_kind(name, &kind))
        config_error(
            errors,
            "LISTEN_FDNAMES: descriptor %d is called %.*s. It must be api, tls or "
            "metrics (FileDescriptorName)",
            fd, (int)(name.len & 0xff), name.data);
    else if (!listen_inherit(fd, kind, &out->entries[out->count], &why))
        config_error(errors, "LISTEN_FDS: descriptor %d %s", fd, why);
    else
        out->count++;
}

/* For programs that we start they are not. */
static void
forget_variables(void)
{
    static const char *const all[] = {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        (void)unsetenv(all[i]); /* fails for names with an equals sign only */
}

enum status
activation_take(const struct config *config, struct listen_list *out,
                struct config_errors *errors)
{
    struct bytes rest =
        config->listen_names == NULL ? BYTES_NONE : bytes_str(config->listen_names);
    size_t before = errors->count;
    uint64_t count;

    out->count = 0;
    forget_variables();
    if (!is_number(config->listen_fds, &count) || count > LISTEN_MAX) {
        config_error(errors, "LISTEN_FDS is \"%.20s\". It must be 0 to %d",
                     config->listen_fds, LISTEN_MAX);
        return ST_BAD_VALUE;
    }
    if (config->ready_fd >= FIRST_FD && config->ready_fd < FIRST_FD + (int64_t)count)
        config_error(
            errors, "ready_fd is %d, which is a descriptor of LISTEN_FDS. Choose another",
            (int)config->ready_fd);
    for (int i = 0; i < (int)count; i++) {
        struct bytes name =
            bytes_present(rest) ? bytes_cut(&rest, ':') : bytes_str("unknown");

        take_one(FIRST_FD + i, name, out, errors);
    }
    listen_policy_check(config, out, "socket activation", errors);
    return errors->count == before ? ST_OK : ST_BAD_VALUE;
}
