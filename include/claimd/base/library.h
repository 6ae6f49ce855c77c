/* library: functions of shared objects that are loaded on demand. */
#ifndef CLAIMD_BASE_LIBRARY_H
#define CLAIMD_BASE_LIBRARY_H

#include <stdbool.h>

/* Writes the address of a function of a library (dlopen()) to *place, a pointer to a
 * function. False: the library has no such function; see dlerror(). */
bool library_find(void *library, const char *name, void *place);

#endif
