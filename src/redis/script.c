#include "redis/script.h"

#include "redis_scripts.h" /* made by scripts/lua.cmake */

static const char *const names[SCRIPTS] = {
#define SCRIPT_NAME(name) #name,
    SCRIPT_LIST(SCRIPT_NAME)
#undef SCRIPT_NAME
};

const char *
script_name(enum script script)
{
    return names[script];
}

struct bytes
script_text(enum script script)
{
    static const struct bytes texts[SCRIPTS] = {
#define SCRIPT_TEXT(name) {redis_script_##name, sizeof(redis_script_##name)},
        SCRIPT_LIST(SCRIPT_TEXT)
#undef SCRIPT_TEXT
    };

    return texts[script];
}
