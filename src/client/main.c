#include "claimd/base/streams.h"
#include "client/client.h"
#include "client/command.h"

int
main(int argc, char **argv)
{
    return !streams_open() ? CLIENT_USAGE : client_main(argc > 0 ? argv + 1 : argv);
}
