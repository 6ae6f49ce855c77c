/*
 * role_words: what each role may do by default, said anew for the tests, so that a change
 * of the defaults is one that was meant.
 */
#ifndef TESTS_SUPPORT_ROLE_WORDS_H
#define TESTS_SUPPORT_ROLE_WORDS_H

enum { ROLE_WORDS = 5 };

struct role_word {
    const char *role;
    const char *may; /* actions, each between blanks */
};

extern const struct role_word role_words[ROLE_WORDS];

#endif
