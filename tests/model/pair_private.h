/*
 * pair_private: noting and comparing, for the files of a pair.
 */
#ifndef TESTS_MODEL_PAIR_PRIVATE_H
#define TESTS_MODEL_PAIR_PRIVATE_H

#include "model/pair.h"

/* Notes the operation about to be done. */
__attribute__((format(printf, 3, 4))) void
pair_note(struct pair *p, const struct store_queue *queue, const char *format, ...);

/* Fails unless both are the same. */
void pair_agree(const struct pair *p, const char *what, int64_t twin, int64_t engine);
void pair_agree_bytes(const struct pair *p, const char *what, struct bytes twin,
                      struct bytes engine);
void pair_agree_id(const struct pair *p, const char *what, const struct store_id *twin,
                   const struct store_id *engine);

/* The status that both returned. */
enum status pair_agree_status(const struct pair *p, enum status twin, enum status engine);

/* Lets some milliseconds pass, so that a claim of the queue with these terms ends
 * alone. */
void pair_pass_before_claim(struct pair *p, const struct store_queue *queue,
                            const struct store_terms *terms);

/* Both ids are new. */
void pair_learn(struct pair *p, const struct id_pair *pair);

#endif
