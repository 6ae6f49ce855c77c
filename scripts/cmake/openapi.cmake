# Makes a header of a JSON file in src/api/openapi, without its indentation: FILE.json becomes
# FILE_json[]. Called by the build: cmake -DSOURCE=FILE -DOUT=FILE -P openapi.cmake

get_filename_component(name ${SOURCE} NAME_WE)
file(READ ${SOURCE} text)
string(REGEX REPLACE "\n *" "" text "${text}")
file(WRITE ${OUT}.json "${text}")
file(READ ${OUT}.json bytes HEX)
string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUT} "/* Made of src/api/openapi/${name}.json. */\nstatic const char ${name}_json[] = {${bytes}0};\n")
