/*
 * A token is
 *
 *     claimd.HASH.END.USER.PROJECT
 *
 * where HASH are 16 digits of the keyed hash of everything behind its dot, END is the
 * time of its end in milliseconds with 16 digits, and USER and PROJECT are the bytes of
 * these names; all in lower-case hexadecimal.
 */
#include "auth/auth_private.h"

static const struct bytes prefix = BYTES_LIT("claimd");

enum { NUMBER_DIGITS = 16 };

static char *
write_names(char *to, struct bytes name)
{
    for (size_t i = 0; i < name.len; i++, to += 2)
        hex_write(to, (uint8_t)name.data[i], 2);
    return to;
}

enum status
auth_token_write(const struct auth *auth, int64_t now_ms, struct auth_caller *caller,
                 struct arena *arena, struct bytes *out)
{
    size_t head = prefix.len + 1 + NUMBER_DIGITS + 1; /* with the hash and its dot */
    size_t len =
        head + NUMBER_DIGITS + 1 + 2 * caller->user.len + 1 + 2 * caller->project.len;
    char *text = arena_alloc(arena, len + 1), *to;

    if (text == NULL)
        return ST_NO_MEMORY;
    if (caller->expires_ms > now_ms + auth->token_life_s * 1000)
        caller->expires_ms = now_ms + auth->token_life_s * 1000;
    to = text + head;
    hex_write(to, (uint64_t)caller->expires_ms, NUMBER_DIGITS);
    to += NUMBER_DIGITS;
    *to++ = '.';
    to = write_names(to, caller->user);
    *to++ = '.';
    to = write_names(to, caller->project);
    *to = '\0';
    memcpy(text, prefix.data, prefix.len);
    text[prefix.len] = text[head - 1] = '.';
    hex_write(text + prefix.len + 1,
              hash_bytes(&auth->key, bytes_of(text + head, len - head)), NUMBER_DIGITS);
    *out = bytes_of(text, len);
    return ST_OK;
}

/* The texts are ours (the hash says so), so they are well-formed. */
static enum status
read_name(struct bytes digits, struct arena *arena, struct bytes *out)
{
    char *name = arena_alloc(arena, digits.len / 2 + 1);

    if (name == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < digits.len / 2; i++)
        name[i] = (char)(hex_value(digits.data[2 * i]) << 4 |
                         hex_value(digits.data[2 * i + 1]));
    name[digits.len / 2] = '\0';
    *out = bytes_of(name, digits.len / 2);
    return ST_OK;
}

/* True if these are the digits of the hash of the text; they are as good as a password. */
static bool
is_signed(const struct auth *auth, struct bytes digits, struct bytes text)
{
    char own[NUMBER_DIGITS];

    hex_write(own, hash_bytes(&auth->key, text), NUMBER_DIGITS);
    return bytes_equal_secret(bytes_of(own, sizeof(own)), digits);
}

static bool
read_number(struct bytes digits, uint64_t *out)
{
    return digits.len == NUMBER_DIGITS && hex_read(digits, out);
}

enum status
auth_token_read(const struct auth *auth, int64_t now_ms, struct bytes token,
                struct arena *arena, struct auth_caller *out)
{
    struct bytes rest = token, hash_digits, end_digits, user_digits;
    struct auth_caller caller;
    enum status st;
    uint64_t end;

    if (!bytes_equal(bytes_cut(&rest, '.'), prefix) || !bytes_present(rest))
        return ST_UNAUTHORIZED;
    hash_digits = bytes_cut(&rest, '.');
    if (!bytes_present(rest) || !is_signed(auth, hash_digits, rest))
        return ST_UNAUTHORIZED;
    end_digits = bytes_cut(&rest, '.');
    user_digits = bytes_cut(&rest, '.');
    if (!read_number(end_digits, &end) || now_ms >= (int64_t)end)
        return ST_UNAUTHORIZED;
    caller.expires_ms = (int64_t)end;
    st = read_name(user_digits, arena, &caller.user);
    if (st == ST_OK)
        st = read_name(rest, arena, &caller.project);
    if (st == ST_OK)
        *out = caller;
    return st;
}
