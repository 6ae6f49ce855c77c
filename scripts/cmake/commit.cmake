# Writes OUT, a source with the commit of the tree SOURCE, if it is not in there yet.
#
#   cmake -DSOURCE=... -DOUT=... [-DCOMMIT=...] -P scripts/cmake/commit.cmake
#
# A tree without its history (a tarball), or a machine without git, has "unknown", unless
# COMMIT says which one it is.
if(NOT COMMIT)
    set(COMMIT unknown)
    find_program(GIT git)
    if(GIT AND EXISTS ${SOURCE}/.git)
        # The tree may belong to somebody else than who builds.
        execute_process(
            COMMAND ${GIT} -c safe.directory=* -C ${SOURCE} describe --always --dirty
                    --abbrev=12 --exclude=*
            OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
        if(NOT failed)
            set(COMMIT ${found})
        endif()
    endif()
endif()
set(text "extern const char version_commit[];\nconst char version_commit[] = \"${COMMIT}\";\n")
if(EXISTS ${OUT})
    file(READ ${OUT} present)
endif()
if(NOT "${present}" STREQUAL "${text}")
    file(WRITE ${OUT} "${text}")
endif()
