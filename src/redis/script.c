#include "redis/script.h"

#include <redis_scripts.h> /* made by scripts/lua.cmake */

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
