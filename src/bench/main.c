#include "bench/bench.h"

int
main(int argc, char **argv)
{
    return bench_main(argc, argv);
}
