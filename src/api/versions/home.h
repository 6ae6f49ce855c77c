/*
 * home: the list of versions ("/") and the home document of each (docs/api.md 6.1, 6.2).
 *
 *   Cost     written anew for each request: clients ask once
 */
#ifndef API_VERSIONS_HOME_H
#define API_VERSIONS_HOME_H

#include "api/context.h"

/* Whose rows of the home document are whose; bits of struct version's `home`. */
enum home_version { HOME_V1 = 1, HOME_V1_1 = 2, HOME_V2 = 4 };

handler_fn versions_list;
handler_fn home_show;

#endif
