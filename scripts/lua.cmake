# Makes a header of the Lua scripts in SOURCE: each as an array of characters, with preamble.lua in
# front of it. Called by the build: cmake -DSOURCE=DIR -DOUT=FILE -P lua.cmake
file(GLOB scripts ${SOURCE}/*.lua)
list(FILTER scripts EXCLUDE REGEX "/preamble\\.lua$")
file(READ ${SOURCE}/preamble.lua preamble HEX)
set(text "/* Made of src/redis/scripts. */\n")
foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    if(name MATCHES "^names_")
        file(READ ${script} bytes HEX) # is not about a queue
    else()
        file(READ ${script} bytes HEX)
        set(bytes "${preamble}${bytes}")
    endif()
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND text "static const char redis_script_${name}[] = {${bytes}};\n")
endforeach()
file(WRITE ${OUT} "${text}")
