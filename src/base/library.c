#include "claimd/base/library.h"

#include <dlfcn.h>
#include <string.h>

bool
library_find(void *library, const char *name, void *place)
{
    void *address = dlsym(library, name);

    memcpy(place, &address, sizeof(address)); /* C has no cast from data to functions */
    return address != NULL;
}
