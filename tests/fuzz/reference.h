/*
 * reference: posts and claim terms read the naive way, from a tree of jansson, for
 * targets that compare.
 */
#ifndef TESTS_FUZZ_REFERENCE_H
#define TESTS_FUZZ_REFERENCE_H

#include "api/wire/decode.h"

#include <jansson.h>

/*
 * Parses any document jansson can; NULL if there is none. *comparable is false where
 * scanner and jansson may differ (docs/adr/0001-own-json-scanner.md): a NUL byte in the
 * text, a NUL in a name.
 */
json_t *reference_tree(struct bytes text, bool *comparable);

/* The expected result of decode_post(); tree NULL: there is none. */
enum status
reference_post(const json_t *tree, enum post_form form, const struct api_limits *limits);

/* The list of messages in a post that was taken. */
const json_t *reference_messages(const json_t *tree, enum post_form form);

/* The expected result of decode_terms(); has_body: the body was not empty. */
enum status reference_terms(const json_t *tree, bool has_body, enum terms_form form,
                            const struct api_limits *limits, struct decoded_terms *out);

/* The integer a member has, or what it is when left out. */
int64_t reference_integer(const json_t *object, const char *name, int64_t left_out);

#endif
