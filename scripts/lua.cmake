# Makes a header of the Lua scripts in SOURCE: each an array of characters. Called by the build:
# cmake -DSOURCE=DIR -DOUT=FILE -P lua.cmake
file(GLOB scripts ${SOURCE}/*.lua)
set(text "/* Made of src/redis/scripts. */\n")
foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    file(READ ${script} bytes HEX)
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND text "static const char redis_script_${name}[] = {${bytes}};\n")
endforeach()
file(WRITE ${OUT} "${text}")
