/*
 * problem: the only place where a status becomes an HTTP code and an error document.
 */
#ifndef API_PROBLEM_H
#define API_PROBLEM_H

#include "claimd/api/api.h"

/* Room in a response's body that problem_write() needs to succeed without memory. */
#define PROBLEM_ROOM 256

/*
 * Makes res the answer for a status other than ST_OK, whatever stood in it before but its
 * Allow header. The detail explains this very case; absent: the text of the status. Never
 * fails: when memory is out, what is written is a prepared 503 that fits PROBLEM_ROOM.
 */
void problem_write(struct response *res, enum status st, struct bytes detail);

/* The same without a document, for resources whose errors have none (API v1, HEAD). */
void problem_write_bare(struct response *res, enum status st);

/* Changes when a refusal says to try again: a text of the request's arena. */
void problem_retry(struct response *res, const char *seconds);

/* {"title": ..., "description": ...}; an absent description is left out. */
void problem_document(struct buf *out, struct bytes title, struct bytes description);

/* Changes what a 401 asks for: a literal, such as "Bearer". */
void problem_challenge(struct response *res, const char *scheme);

#endif
