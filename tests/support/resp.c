#include "support/resp.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void
add(struct resp *r, struct bytes text)
{
    ck_assert_uint_le(r->size + text.len, sizeof(r->text));
    memcpy(r->text + r->size, text.data, text.len);
    r->size += text.len;
}

static void
add_line(struct resp *r, char mark, long long number)
{
    char line[32];
    int len = snprintf(line, sizeof(line), "%c%lld\r\n", mark, number);

    add(r, bytes_of(line, (size_t)len));
}

void
resp_list(struct resp *r, int words)
{
    r->size = 0;
    add_line(r, '*', words);
}

void
resp_number(struct resp *r, long long number)
{
    add_line(r, ':', number);
}

void
resp_text(struct resp *r, struct bytes text)
{
    add_line(r, '$', (long long)text.len);
    add(r, text);
    add(r, bytes_str("\r\n"));
}

void
resp_head(char out[RESP_HEAD_SIZE], unsigned char flags)
{
    enum { EXPIRES_AT = 8, FLAGS_AT = 40 };
    const double posted = 1000, expires = 61000;

    memset(out, 0, RESP_HEAD_SIZE);
    memcpy(out, &posted, sizeof(posted));
    memcpy(out + EXPIRES_AT, &expires, sizeof(expires));
    out[FLAGS_AT] = (char)flags;
}

void
resp_message(struct resp *r, int number, unsigned char flags)
{
    char head[RESP_HEAD_SIZE];

    resp_head(head, flags);
    resp_number(r, number);
    resp_text(r, bytes_of(head, sizeof(head)));
    resp_text(r, bytes_str("body"));
    resp_text(r, bytes_str(""));
}
