/*
 * run_words: the command line of `claimd run`.
 *
 *     claimd run --instances 2 --max-wait 5 -- pytest -q
 */
#ifndef MAIN_RUN_WORDS_H
#define MAIN_RUN_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum { RUN_INSTANCES_MOST = 64 };

struct run_words {
    size_t instances; /* at least 1 */
    bool numbered;    /* --instances was there */
    bool fail_on_leak;
    const char *log; /* a file; NULL: none */

    /* Owned; the words are borrowed. Options of the server, what it needs in front of them. */
    char **server;
    size_t server_count;
    char *const *command; /* borrowed; ends with NULL */
};

/* Reads the words behind "run". An exit status; after an error message nothing is owned. */
int run_words_read(char *const *argv, struct run_words *out);
void run_words_free(struct run_words *words);

#endif
