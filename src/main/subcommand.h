/*
 * subcommand: programs of their own that are started as `claimd NAME`.
 */
#ifndef MAIN_SUBCOMMAND_H
#define MAIN_SUBCOMMAND_H

/*
 * Becomes the program of this name that stands beside the running executable, else one in
 * PATH, with the arguments argv[1..]. Returns only when there is none or it cannot be run:
 * an exit status, after a line on standard error.
 */
int subcommand_run(const char *program, char **argv);

#endif
