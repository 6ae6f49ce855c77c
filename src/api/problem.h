/*
 * problem: the only place where a status becomes an HTTP code and an error document.
 *
 *   Threads  any; a response belongs to one call
 */
#ifndef API_PROBLEM_H
#define API_PROBLEM_H

#include "claimd/api/api.h"

/* Space of a response's body in which problem_write() succeeds without memory. */
#define PROBLEM_SPACE 256

/*
 * Makes res the response for a status other than ST_OK. Of its headers it keeps only
 * Allow, and with 409 Location. detail: explains this case; absent: the text of the
 * status. If the response has Retry-After, the text ends with the same time. Without
 * memory, it writes a prepared 503 that fits PROBLEM_SPACE.
 */
void problem_write(struct response *res, enum status st, struct bytes detail);

/* The same without a document (API v1, HEAD). */
void problem_write_bare(struct response *res, enum status st);

/* Changes Retry-After, if the refusal has it, and the time in its text. Borrows the
 * number, as a header. */
void problem_set_retry(struct response *res, const char *seconds);

/* Changes another header that a response has, such as WWW-Authenticate of a 401. */
void problem_set_header(struct response *res, const char *name, const char *value);

/* {"title": ..., "description": ...}. An absent description is left out. */
void problem_document(struct buf *out, struct bytes title, struct bytes description);

#endif
