/* `claimd bench` alone, for measuring other servers without the daemon beside it. */
#include "claimd/bench/bench.h"

int
main(int argc, char **argv)
{
    return bench_main(argc, argv);
}
