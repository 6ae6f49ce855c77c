/*
 * dead_letters: words for queues whose messages move to another queue after some claims.
 */
#ifndef TESTS_SUPPORT_DEAD_LETTERS_H
#define TESTS_SUPPORT_DEAD_LETTERS_H

#include "support/store_fixture.h"

/*
 * Makes a queue whose messages move to `failed` after `count` claims, to live ttl_s
 * seconds there (STORE_UNSET: as long as before), and goes on with it.
 */
void make_dead_lettering(struct fixture *f, const char *name, int64_t count,
                         const char *dead_letter, int64_t ttl_s);

/* Claims and releases up to `limit` messages, `times` times. */
void wear_out(struct fixture *f, size_t limit, int times);

/* Message `number` is in this queue and nowhere else of q, failed and deeper. */
void expect_only_in(struct fixture *f, int number, const char *name);

#endif
