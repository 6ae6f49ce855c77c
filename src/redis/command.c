#include "redis/command.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEPT = 65536 }; /* bytes of a buffer, from one command to the next */

void
command_init(struct command *c, struct mem *mem)
{
    buf_init(&c->words, mem);
    c->count = 0;
}

void
command_fini(struct command *c)
{
    buf_fini(&c->words);
}

void
command_begin(struct command *c)
{
    buf_reset(&c->words, KEPT);
    c->count = 0;
}

void
command_word(struct command *c, struct bytes word)
{
    buf_byte(&c->words, '$');
    buf_u64(&c->words, word.len);
    buf_str(&c->words, "\r\n");
    buf_bytes(&c->words, word);
    buf_str(&c->words, "\r\n");
    c->count++;
}

void
command_text(struct command *c, const char *word)
{
    command_word(c, bytes_str(word));
}

void
command_number(struct command *c, int64_t number)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%" PRId64, number);

    command_word(c, bytes_of(text, (size_t)len));
}
