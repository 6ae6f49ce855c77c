#include "redis/script.h"

#include <redis_scripts.h> /* made by scripts/lua.cmake */

struct script_text
script_text(enum script script)
{
    static const struct script_text texts[SCRIPTS] = {
#define SCRIPT_TEXT(name)                                                                \
    {redis_pieces_##name, sizeof(redis_pieces_##name) / sizeof(redis_pieces_##name[0])},
        SCRIPT_LIST(SCRIPT_TEXT)
#undef SCRIPT_TEXT
    };

    return texts[script];
}

struct bytes
script_sha(enum script script)
{
    static const char *const shas[SCRIPTS] = {
#define SCRIPT_SHA(name) redis_sha_##name,
        SCRIPT_LIST(SCRIPT_SHA)
#undef SCRIPT_SHA
    };

    return bytes_str(shas[script]);
}
