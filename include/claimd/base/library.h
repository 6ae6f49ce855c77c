/*
 * library: functions of shared objects that are loaded when somebody needs them.
 */
#ifndef CLAIMD_BASE_LIBRARY_H
#define CLAIMD_BASE_LIBRARY_H

#include <stdbool.h>

/* Puts the address of a function of a library (dlopen()) where it is kept: *place is a pointer to a
 * function. False: there is none of this name; dlerror() says so. */
bool library_find(void *library, const char *name, void *place);

#endif
