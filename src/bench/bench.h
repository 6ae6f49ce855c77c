/*
 * bench: a load generator for servers that speak the Zaqar API v2, beanstalkd's protocol
 * or redis lists. docs/performance.md says how it measures.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

/*
 * Runs `claimd-bench` with its own arguments (argv[0] is not looked at). Returns an exit
 * code: 0 measured, 1 the run failed or requests were refused, 2 bad arguments.
 */
int bench_main(int argc, char **argv);

#endif
