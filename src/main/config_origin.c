#include "main/config_origin.h"

const char *
config_source_name(enum config_source source)
{
    static const char *const names[] = {"default", "profile", "file", "environment",
                                        "command line"};

    return names[source];
}

void
config_where(const struct config *config, const struct option *option,
             char out[CONFIG_TEXT_CAP])
{
    const struct config_origin *origin = &config->origins[option - options];

    if (origin->source == CONFIG_FILE)
        (void)snprintf(out, CONFIG_TEXT_CAP, "%.*s:%d", CONFIG_TEXT_CAP - 16,
                       config->file, origin->line);
    else
        (void)snprintf(out, CONFIG_TEXT_CAP, "%s", config_source_name(origin->source));
}

void
config_refuse(const struct config *config, const char *name, struct config_errors *errors,
              const char *why)
{
    char where[CONFIG_TEXT_CAP];

    config_where(config, option_find(bytes_str(name)), where);
    config_error(errors, "%s (%s) %s", name, where, why);
}

void
config_print(const struct config *config, FILE *to)
{
    static const char *const remarks[] = {"", "  ; from the profile", "  ; from the file",
                                          "  ; from the environment",
                                          "  ; from the command line"};
    const char *group = NULL;

    for (size_t i = 0; i < option_count; i++) {
        if (group == NULL || strcmp(group, options[i].group) != 0)
            (void)fprintf(to, "%s# %s\n", group == NULL ? "" : "\n", options[i].group);
        group = options[i].group;
        (void)fprintf(to, "%s = ", options[i].name);
        option_print(&options[i], config, to);
        (void)fprintf(to, "%s\n", remarks[config->origins[i].source]);
    }
}
