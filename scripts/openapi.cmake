# Makes a header of src/api/openapi/openapi.json, without its indentation. Called by the build:
# cmake -DSOURCE=FILE -DOUT=FILE -P openapi.cmake

file(READ ${SOURCE} text)
string(REGEX REPLACE "\n *" "" text "${text}")
file(WRITE ${OUT}.json "${text}")
file(READ ${OUT}.json bytes HEX)
string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${OUT} "/* Made of src/api/openapi/openapi.json. */\nstatic const char openapi_json[] = {${bytes}0};\n")
