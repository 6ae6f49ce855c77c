/*
 * line: what the lines of tokens and of certificates have in common: who it is, and what
 * they may do where.
 *
 *   Threads  any: nothing is shared
 */
#ifndef AUTH_LINE_H
#define AUTH_LINE_H

#include "claimd/auth/policy.h"

/* Cuts the next field off, at a blank; absent: there is none. */
struct bytes line_field(struct bytes *rest);

/* Checks a name and projects, and looks the role up. ST_BAD_VALUE. */
enum status line_check(struct bytes name, struct bytes role, struct bytes projects,
                       enum role *out, struct reason *why);

#endif
