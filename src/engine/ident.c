#include "engine/ident.h"

#include "claimd/base/invariant.h"

#include <assert.h> /* static_assert */

enum { NUMBER_BITS = 48 }; /* of a claim's number */

/* Replaces the first hexadecimal digit by a letter, a to f. */
static uint32_t
with_letter(uint32_t digits, uint32_t letter)
{
    return (digits & 0x0fffffffu) | (10u + letter % 6u) << 28;
}

void
ident_write(struct store_id *out, struct ident id)
{
    static_assert(STORE_ID_CAP > IDENT_DIGITS, "an id and its NUL must fit");
    hex_write_eight(out->text, id.high);
    hex_write_eight(out->text + 8, (uint32_t)(id.low >> 32));
    hex_write_eight(out->text + 16, (uint32_t)id.low);
    out->text[IDENT_DIGITS] = '\0';
}

bool
ident_read(struct bytes text, struct ident *out)
{
    uint32_t parts[IDENT_DIGITS / 8];

    if (text.len != IDENT_DIGITS || text.data[0] < 'a' ||
        !hex_read_eights(text.data, IDENT_DIGITS / 8, parts))
        return false;
    *out = (struct ident){parts[0], (uint64_t)parts[1] << 32 | parts[2]};
    return true;
}

struct ident
ident_claim(struct entropy *entropy, uint64_t number)
{
    uint8_t raw[IDENT_ENTROPY];
    uint32_t high;
    uint16_t middle;

    ENSURE(number >> NUMBER_BITS == 0);
    entropy_take(entropy, raw, sizeof(raw));
    memcpy(&high, raw, sizeof(high));
    memcpy(&middle, raw + sizeof(high), sizeof(middle));
    return (struct ident){with_letter(high, high >> 28),
                          (uint64_t)middle << NUMBER_BITS | number};
}

struct ident
ident_subscription(struct entropy *entropy, struct ident last, uint64_t number)
{
    static const uint64_t least = UINT64_C(0xa00000000000),
                          most = UINT64_C(0xffffffffffff);
    uint64_t upper = (uint64_t)last.high << 16 | last.low >> NUMBER_BITS, random = 0;

    ENSURE(number >> NUMBER_BITS == 0);
    entropy_take(entropy, &random, IDENT_ENTROPY);
    if (last.high == 0)
        upper =
            least + (random & ((UINT64_C(1) << 45) - 1)); /* half of the range is left */
    else
        upper += 1 + (random & 0xffffff);
    if (upper > most)
        upper = most; /* from here on the number alone rises */
    return (struct ident){(uint32_t)(upper >> 16), upper << NUMBER_BITS | number};
}

uint64_t
ident_claim_number(struct ident id)
{
    return id.low & ((UINT64_C(1) << NUMBER_BITS) - 1);
}

uint32_t
ident_tag(uint64_t start, uint64_t count)
{
    uint64_t at = start + count;

    /* An odd factor permutes the 28 low bits, so neighbours look unlike each other. */
    return with_letter((uint32_t)(at * 0x9e3779b1u), (uint32_t)((at >> 28) % 6));
}

void
ident_write_marker(struct store_id *out, uint64_t seq)
{
    out->text[decimal_write(out->text, seq)] = '\0';
}
