/* version: the commit of the build. Its version is the macro CLAIMD_VERSION of
 * CMakeLists.txt. */
#ifndef CLAIMD_BASE_VERSION_H
#define CLAIMD_BASE_VERSION_H

/*
 * The commit of the build, or "unknown" if neither git nor an archive of git names it.
 * scripts/cmake/commit.cmake writes the source. It is not in a library of a layer, so
 * that a new commit does not link every test again.
 */
extern const char version_commit[];

#endif
