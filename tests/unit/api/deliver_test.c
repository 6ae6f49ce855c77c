/*
 * A response never contains an encrypted body: if a body was not decrypted, the request
 * fails. These tests call src/api/handlers/deliver.h, because only a broken Redis returns
 * such messages.
 */
#include "api/handlers/deliver.h"

#include "support/check_main.h"

#include <string.h>

static const struct bytes sealed = BYTES_LIT("\1sealed");

static struct store_message
message(const char *id, struct bytes body)
{
    struct store_message m = {.body = body};

    memcpy(m.id.text, id, strlen(id));
    return m;
}

START_TEST(a_pop_returns_the_bodies_that_it_has_decrypted)
{
    struct store_message taken[] = {message("a", sealed), message("b", bytes_str("1")),
                                    message("c", sealed)};
    struct store_message shown[] = {message("a", bytes_str("2")),
                                    message("x", bytes_str("3")),
                                    message("c", bytes_str("4"))};
    struct store_batch batch = {.messages = taken, .count = 3};
    const struct store_batch opened = {.messages = shown, .count = 3};

    ck_assert_int_eq(reuse_decrypted(&batch, &opened), ST_OK);
    ck_assert(bytes_equal_str(taken[0].body, "2"));
    ck_assert(bytes_equal_str(taken[1].body, "1"));
    ck_assert(bytes_equal_str(taken[2].body, "4"));
}

/* A store on Redis returns what Redis responds. */
START_TEST(an_encrypted_body_is_never_returned)
{
    struct store_message taken[] = {message("a", sealed), message("b", sealed)};
    struct store_message shown[] = {message("a", bytes_str("2"))};
    struct store_batch batch = {.messages = taken, .count = 2};
    const struct store_batch none = STORE_BATCH_INIT;
    const struct store_batch opened = {.messages = shown, .count = 1};

    ck_assert_int_eq(reuse_decrypted(&batch, &none), ST_UNCONFIRMED);
    ck_assert_int_eq(reuse_decrypted(&batch, &opened), ST_UNCONFIRMED);
}
