/*
 * The program claimd-client, which claimd starts for its commands
 * (docs/adr/0019-client-program.md). command.c has the table of commands and runs them.
 */
#include "claimd/base/streams.h"
#include "claimd/base/version.h"
#include "client/command.h"

#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
    if (!streams_open())
        return COMMAND_USAGE;
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)printf("claimd-client " CLAIMD_VERSION "\ncommit %s\n", version_commit);
        return fflush(stdout) == 0 ? COMMAND_GOOD : COMMAND_FAILED;
    }
    return client_main(argc > 0 ? argv + 1 : argv);
}
