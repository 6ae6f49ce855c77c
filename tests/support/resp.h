/*
 * resp: responses as a hostile or broken Redis may send them, written word by word (RESP,
 * redis.io/docs/reference/protocol-spec).
 */
#ifndef TESTS_SUPPORT_RESP_H
#define TESTS_SUPPORT_RESP_H

#include "claimd/base/bytes.h"

enum { RESP_CAP = 16384 };

struct resp {
    char text[RESP_CAP];
    size_t size;
};

/* Begins with a list of so many words, which follow. */
void resp_list(struct resp *r, int words);
void resp_number(struct resp *r, long long number);
void resp_text(struct resp *r, struct bytes text);

/* A message as scripts show it: number, head, body, no claim. The head has these flags
 * and says so of what stands behind it, which is missing. */
enum { RESP_MESSAGE_WORDS = 4, RESP_HEAD_SIZE = 49 };
void resp_message(struct resp *r, int number, unsigned char flags);

/* Such a head. */
void resp_head(char out[RESP_HEAD_SIZE], unsigned char flags);

#endif
