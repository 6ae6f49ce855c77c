#include "client/command.h"

int
main(int argc, char **argv)
{
    return client_main(argc > 0 ? argv + 1 : argv);
}
