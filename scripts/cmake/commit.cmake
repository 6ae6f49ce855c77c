# Writes OUT, a source with the commit of the tree SOURCE, if it is not in there yet.
#
#   cmake -DSOURCE=... -DOUT=... [-DCOMMIT=...] -P scripts/cmake/commit.cmake
#
# The first of these names the commit: COMMIT, the git history of SOURCE, the line below. `git archive` fills that
# line (.gitattributes). Otherwise the commit is "unknown", which also means none as COMMIT.
set(archived "$Format:%H$")
if(COMMIT STREQUAL "unknown")
    set(COMMIT "")
endif()
if(NOT COMMIT)
    find_program(GIT git)
    if(GIT AND EXISTS ${SOURCE}/.git)
        # Another user than the one that builds may own the tree.
        execute_process(
            COMMAND ${GIT} -c safe.directory=* -C ${SOURCE} describe --always --dirty
                    --abbrev=12 --exclude=*
            OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
endif()
if(NOT COMMIT AND archived MATCHES "^[0-9a-f]+$")
    string(SUBSTRING ${archived} 0 12 COMMIT)
endif()
if(NOT COMMIT)
    set(COMMIT unknown)
endif()
set(text "extern const char version_commit[];\nconst char version_commit[] = \"${COMMIT}\";\n")
if(EXISTS ${OUT})
    file(READ ${OUT} present)
endif()
if(NOT "${present}" STREQUAL "${text}")
    file(WRITE ${OUT} "${text}")
endif()
