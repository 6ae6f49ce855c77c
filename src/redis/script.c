#include "redis/script.h"

#include <redis_scripts.h> /* made by scripts/lua.cmake */

struct bytes
script_library(void)
{
    return bytes_of(redis_library, sizeof(redis_library));
}

struct bytes
script_function(enum script script)
{
    static const char *const names[SCRIPTS] = {
#define SCRIPT_NAME(name) redis_function_##name,
        SCRIPT_LIST(SCRIPT_NAME)
#undef SCRIPT_NAME
    };

    return bytes_str(names[script]);
}
