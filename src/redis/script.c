#include "redis/script.h"

#include <redis_scripts.h> /* made by scripts/lua.cmake */

struct bytes
script_library(void)
{
    return bytes_of(redis_library, sizeof(redis_library));
}

const struct shape *
script_shape(enum script script)
{
    static const struct shape shapes[SCRIPTS] = {
#define SCRIPT_SHAPE(name, lead, group, most) {lead, group, most},
        SCRIPT_LIST(SCRIPT_SHAPE)
#undef SCRIPT_SHAPE
    };

    return &shapes[script];
}

struct bytes
script_function(enum script script)
{
    static const char *const names[SCRIPTS] = {
#define SCRIPT_NAME(name, lead, group, most) redis_function_##name,
        SCRIPT_LIST(SCRIPT_NAME)
#undef SCRIPT_NAME
    };

    return bytes_str(names[script]);
}
