#include "main/version.h"

#include "claimd/auth/token_line.h"
#include "claimd/http/server.h"
#include "claimd/json/tree.h"

void
version_print(const char *commit, FILE *to)
{
    (void)fprintf(to,
                  "claimd " CLAIMD_VERSION "\n"
                  "commit %s\n"
                  "libmicrohttpd %s\n"
                  "jansson %s\n"
                  "gnutls %s\n",
                  commit, server_library_version(), json_tree_library_version(),
                  token_library_version());
}
