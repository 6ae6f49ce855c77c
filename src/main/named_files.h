/*
 * named_files: files that options name, and that nothing else opens as claimd is configured.
 */
#ifndef MAIN_NAMED_FILES_H
#define MAIN_NAMED_FILES_H

#include "claimd/base/mem.h"
#include "claimd/http/listen.h"
#include "main/config.h"

/*
 * Opens and reads each, for --check-config: it may be needed with the next change, or only while
 * claimd serves. Complains about those that cannot be read. It leaves out the file of tokens, which an
 * image names although `auth = none` makes it unnecessary.
 */
void named_files_check(const struct config *config, const struct listen_list *list,
                       struct mem *mem, struct config_errors *errors);

#endif
