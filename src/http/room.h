/*
 * room: memory for the head of an answer, made sure of before anything is executed.
 *
 * A connection of libmicrohttpd has one block of memory. From its beginning grow the head of
 * the request and whatever the client has sent behind it, from its end a record for each
 * header and cookie; the head of the answer has to fit in between, when all is done. If it
 * does not, libmicrohttpd closes the connection without a word.
 *
 *     | head | sent behind it |      free      | copy of cookies | records |
 *
 * So the block is large enough for a request at its limits, and one that still leaves too
 * little (by its cookies) is refused while nothing has happened.
 */
#ifndef HTTP_ROOM_H
#define HTTP_ROOM_H

#include <stdbool.h>
#include <stddef.h>

/* What a request takes of its connection's memory besides the bytes of its head. */
struct room_use {
    size_t head;    /* bytes of the head */
    size_t records; /* headers and cookies */
    size_t cookies; /* bytes of the header that libmicrohttpd takes the cookies from */
};

/* The block for heads of this size and so many lines. */
size_t room_block(size_t max_head, size_t max_lines);

/* True if the answer's head fits into the block, whatever the client has sent behind. */
bool room_suffices(size_t block, const struct room_use *use);

#endif
