# Makes a header of the files of the page in src/ui: UI_FILES(X) lists X(name, text), and each text is an
# array without a NUL at its end. A name has no folder. Called by the build:
# cmake -DSOURCE=DIR -DOUT=FILE -P ui.cmake

file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/*)
set(text "/* Made of src/ui. */\n")
set(list "")
set(number 0)
foreach(file ${files})
    file(READ ${SOURCE}/${file} bytes HEX)
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND text "static const char UI_FILE_PLACE ui_file_${number}[] = {${bytes}};\n")
    get_filename_component(name ${file} NAME)
    string(APPEND list " X(\"${name}\", ui_file_${number})")
    math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "${text}#define UI_FILES(X)${list}\n")
