# Makes a header of the Lua scripts in SOURCE and of what they share in SOURCE/lib: the text of a library
# of Redis (FUNCTION LOAD) that has each script as a function, and what these are called. Both names
# have the SHA1 of the text in them, so that each version of claimd calls its own. Redis refuses a script
# whose head says that memory grows when it is full, and one that changes nothing is run also by a Redis
# that takes no changes. Called by the build:
# cmake -DSOURCE=DIR -DOUT=FILE -P lua.cmake

# Each behind what it uses.
set(libs queue details messages keys outbox dead_letters finish subscriptions post)

set(library "")
foreach(lib ${libs})
    file(READ ${SOURCE}/lib/${lib}.lua text)
    string(APPEND library "${text}")
endforeach()
file(GLOB found RELATIVE ${SOURCE}/lib ${SOURCE}/lib/*.lua)
list(LENGTH libs expected)
list(LENGTH found there)
if(NOT expected EQUAL there)
    message(FATAL_ERROR "scripts/cmake/lua.cmake does not have all of ${SOURCE}/lib in its order")
endif()

file(GLOB scripts ${SOURCE}/*.lua)
set(names "")
foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    file(READ ${script} text)
    set(flags "'allow-oom'")
    if(text MATCHES "\n--   memory  grows\n")
        set(flags "")
    elseif(text MATCHES "\n--   changes nothing\n")
        set(flags "'no-writes'")
    endif()
    string(APPEND library "\ndo local function script()\n${text}end\n"
                          "redis.register_function({ function_name = 'claimd_@_${name}', "
                          "flags = { ${flags} }, callback = make_callback(script) })\n")
    list(APPEND names ${name})
    if(text MATCHES "\n--   keyed\n") # lib/keys.lua. Its keys make memory grow
        string(APPEND library "redis.register_function({ function_name = 'claimd_@_${name}_keyed', flags = {}, "
                              "callback = make_keyed_callback('${name}', script) })\n")
        list(APPEND names ${name}_keyed)
    endif()
    string(APPEND library "end\n")
endforeach()

string(REGEX REPLACE "\n *--[^\n]*" "" library "\n${library}") # each Redis keeps a copy: without remarks,
string(REGEX REPLACE "\n+" "\n" library "${library}")           # and empty lines
string(SHA1 sha "${library}")
string(SUBSTRING ${sha} 0 16 sha)
string(REPLACE "claimd_@" "claimd_${sha}" library "#!lua name=claimd_@${library}")
file(WRITE ${OUT}.lua "${library}")
file(READ ${OUT}.lua bytes HEX)
string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
set(text "/* Made of src/redis/scripts. */\nstatic const char redis_library[] = {${bytes}};\n")
foreach(name ${names})
    string(APPEND text "static const char redis_function_${name}[] = \"claimd_${sha}_${name}\";\n")
endforeach()
file(WRITE ${OUT} "${text}")
