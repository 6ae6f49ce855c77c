#include "main/named_files.h"

#include "main/admission.h"
#include "main/certificate.h"
#include "main/option.h"
#include "main/store_setup.h"
#include "main/text_file.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MOST = 16 << 20 };

/* With what a file is opened by the part that it is for. */
enum opened {
    OPENED_NEVER,
    OPENED_WITH_TLS,
    OPENED_WITH_AUTH,
    OPENED_WITH_KEYSTONE,
    OPENED_WITH_STUB
};

static const struct {
    const char *option;
    enum opened opened;
    bool secret, is_ca;
} rows[] = {
    {"tls_client_ca", OPENED_WITH_TLS, false, true},
    {"certificates", OPENED_WITH_AUTH, false, false},
    {"policy", OPENED_WITH_AUTH, false, false},
    {"notify_ca", OPENED_NEVER, false, true},
    {"keystone_ca", OPENED_NEVER, false, true},
    {"keystone_token_file", OPENED_WITH_KEYSTONE, true, false},
    {"identity_users", OPENED_WITH_STUB, false, false},
    {"store_password_file", OPENED_NEVER, true, false},
    {"seed", OPENED_NEVER, false, false},
};

static bool
is_opened(const struct config *config, const struct listen_list *list, enum opened opened)
{
    switch (opened) {
    case OPENED_NEVER:
        return false;
    case OPENED_WITH_TLS:
        return certificate_wanted(list);
    case OPENED_WITH_AUTH:
        return config->auth != AUTH_BY_NONE;
    case OPENED_WITH_KEYSTONE:
        return config->auth == AUTH_BY_KEYSTONE;
    case OPENED_WITH_STUB:
        return config->identity_stub;
    }
    return false;
}

static void
check_file(size_t row, const char *path, struct mem *mem, struct config_errors *errors)
{
    static const char begin[] = "-----BEGIN CERTIFICATE-----";
    const struct text_file file = {.path = path,
                                   .option = rows[row].option,
                                   .most = FILE_MOST,
                                   .secret = rows[row].secret};
    struct bytes text;

    if (text_file_read(&file, mem, &text, errors) != ST_OK)
        return;
    if (rows[row].is_ca &&
        (text.len == 0 || memmem(text.data, text.len, begin, sizeof(begin) - 1) == NULL))
        config_error(errors, "%s: %s has no certificate in PEM form", file.option, path);
    explicit_bzero((void *)(uintptr_t)text.data, text.len);
    mem_free(mem, (void *)(uintptr_t)text.data);
}

/* claimd makes the directory at the start, if it is not there, but not what it is in. */
static void
check_journal(const struct config *config, struct config_errors *errors)
{
    char copy[CONFIG_TEXT_CAP];
    const char *parent;
    struct stat st;

    if (strcmp(config->journal, "none") == 0)
        return;
    (void)snprintf(copy, sizeof(copy), "%s", config->journal);
    parent = dirname(copy);
    if (stat(config->journal, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            config_error(errors, "journal: %s is not a directory", config->journal);
    } else if (errno != ENOENT) {
        config_error(errors, "journal: %s: %s", config->journal, strerror(errno));
    } else if (stat(parent, &st) != 0) {
        config_error(errors, "journal: %s cannot be made in %s: %s. Create %s",
                     config->journal, parent, strerror(errno), parent);
    }
}

void
named_files_check(const struct config *config, const struct listen_list *list,
                  struct mem *mem, struct config_errors *errors)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct option *option = option_find(bytes_str(rows[i].option));
        const char *path = (const char *)config + option->offset;

        if (strcmp(path, option->initial) != 0 &&
            !is_opened(config, list, rows[i].opened))
            check_file(i, path, mem, errors);
    }
    if (!certificate_wanted(list))
        certificate_check(config, mem, errors);
    check_journal(config, errors);
}
