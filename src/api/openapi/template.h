/*
 * template: the notation of the texts from which /openapi.json is made.
 *
 *     'a'              "a": quotes that need no backslash in C; no text may have its own
 *     $max_claim_ttl   the number that is in force; of $default_..._page what a page has that
 *                      asks for no length
 *     <schemas/Links>  {"$ref":"#/components/schemas/Links"}
 *
 * Everything else is JSON as it stands. Templates are ours: what is wrong in one is found by
 * the tests, which make and parse all of them.
 */
#ifndef API_OPENAPI_TEMPLATE_H
#define API_OPENAPI_TEMPLATE_H

#include "claimd/api/limits.h"
#include "claimd/base/buf.h"

/* Writes one; NULL: nothing. */
void template_write(struct buf *out, const char *text, const struct api_limits *limits);

/* Cuts the text behind the next component that it names off *text; absent: no more. */
struct bytes template_next(const char **text);

#endif
