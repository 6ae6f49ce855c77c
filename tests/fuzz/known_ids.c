#include "fuzz/known_ids.h"

#include <ctype.h>

/* The text before an id in responses. */
static const struct {
    struct bytes text;
    enum id_kind kind;
} signs[] = {
    {BYTES_LIT("/messages/"), ID_MESSAGE},
    {BYTES_LIT("/claims/"), ID_CLAIM},
    {BYTES_LIT("marker="), ID_MARKER},
    {BYTES_LIT("\"subscription_id\":\""), ID_SUBSCRIPTION},
};

enum { SIGNS = sizeof(signs) / sizeof(signs[0]) };

static bool
starts_with(struct bytes text, struct bytes start)
{
    return text.len >= start.len && memcmp(text.data, start.data, start.len) == 0;
}

static struct bytes
behind(struct bytes text, size_t len)
{
    return bytes_of(text.data + len, text.len - len);
}

static void
learn(struct known_ids *known, enum id_kind kind, struct bytes id)
{
    size_t *count = &known->kinds[kind].count;
    struct store_id *ids = known->kinds[kind].ids;

    if (id.len == 0 || id.len >= STORE_ID_CAP || *count == KNOWN_IDS_MAX)
        return;
    for (size_t i = 0; i < *count; i++)
        if (bytes_equal(store_id_bytes(&ids[i]), id))
            return;
    memcpy(ids[*count].text, id.data, id.len);
    ids[*count].text[id.len] = '\0';
    (*count)++;
}

void
known_ids_learn(struct known_ids *known, struct bytes text)
{
    for (; text.len > 0; text = behind(text, 1))
        for (size_t i = 0; i < SIGNS; i++) {
            struct bytes id;

            if (!starts_with(text, signs[i].text))
                continue;
            id = bytes_of(text.data + signs[i].text.len, 0);
            while (id.data + id.len < text.data + text.len &&
                   isalnum((unsigned char)id.data[id.len]))
                id.len++;
            learn(known, signs[i].kind, id);
        }
}

/* The length of the @-name the text begins with, 0 if it does not. */
static size_t
read_name(struct bytes text, enum id_kind *kind, size_t *number)
{
    static const char letters[] = "mcns"; /* in the order of the kinds */
    const char *letter;
    size_t len = 2;

    if (text.len < 3 || text.data[0] != '@' || text.data[1] == '\0')
        return 0;
    letter = strchr(letters, text.data[1]);
    if (letter == NULL || !isdigit((unsigned char)text.data[2]))
        return 0;
    *kind = (enum id_kind)(letter - letters);
    *number = 0;
    for (; len < text.len && len < 5 && isdigit((unsigned char)text.data[len]); len++)
        *number = *number * 10 + (size_t)(text.data[len] - '0');
    return len;
}

void
known_ids_fill(const struct known_ids *known, struct bytes text, struct buf *out)
{
    while (text.len > 0) {
        enum id_kind kind = ID_MESSAGE;
        size_t number = 0, len = read_name(text, &kind, &number);

        if (len > 0 && known->kinds[kind].count > 0) {
            buf_str(out, known->kinds[kind].ids[number % known->kinds[kind].count].text);
        } else {
            len = 1;
            buf_byte(out, text.data[0]);
        }
        text = behind(text, len);
    }
}
