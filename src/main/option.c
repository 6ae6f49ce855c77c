#include "main/option.h"

#include "claimd/base/nearest.h"
#include "claimd/http/listen.h"

#include <stdarg.h>

static const void *
option_field(const struct option *option, const struct config *config)
{
    return (const char *)config + option->offset;
}

static enum status __attribute__((format(printf, 2, 3)))
refuse_value(char why[CONFIG_ERROR_CAP], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, CONFIG_ERROR_CAP, format, args);
    va_end(args);
    return ST_BAD_VALUE;
}

const struct option *
option_find(struct bytes name)
{
    for (size_t i = 0; i < option_count; i++)
        if (bytes_equal_str(name, options[i].name))
            return &options[i];
    return NULL;
}

const struct option *
option_nearest(struct bytes name)
{
    struct nearest near = nearest_begin(name);

    for (size_t i = 0; i < option_count; i++)
        nearest_offer(&near, options[i].name);
    return near.found == NULL ? NULL : option_find(bytes_str(near.found));
}

/* Cuts the suffix off a size, and returns its power of two. 0 without a suffix. */
static unsigned
cut_suffix(struct bytes *value)
{
    static const char suffixes[] = "KkMmGgTt";
    const char *at;

    if (value->len < 2)
        return 0;
    at = memchr(suffixes, value->data[value->len - 1], sizeof(suffixes) - 1);
    if (at == NULL)
        return 0;
    value->len--;
    return 10 * (unsigned)((at - suffixes) / 2 + 1);
}

/* Explains the allowed numbers. `kind` describes the form, for a value that is no
 * number. */
static enum status
refuse_number(const struct option *option, char why[CONFIG_ERROR_CAP], const char *kind)
{
    const char *word = option->words == NULL ? "" : option->words;
    const char *or_else = option->words == NULL ? "" : " or ";
    const char *unit = option->kind == OPTION_SIZE && kind[0] == '\0' ? " bytes" : "";

    if (option->max == INT64_MAX)
        return refuse_value(why, "must be %s%s%sat least %lld%s", word, or_else, kind,
                            (long long)option->min, unit);
    return refuse_value(why, "must be %s%s%s%lld to %lld%s", word, or_else, kind,
                        (long long)option->min, (long long)option->max, unit);
}

static enum status
set_number(const struct option *option, int64_t *out, struct bytes value,
           char why[CONFIG_ERROR_CAP])
{
    unsigned shift;
    int64_t number;
    bool in_range;

    if (option->words != NULL && bytes_equal_nocase(value, bytes_str(option->words))) {
        *out = OPTION_WORD;
        return ST_OK;
    }
    shift = option->kind == OPTION_SIZE ? cut_suffix(&value) : 0;
    if (!bytes_to_i64(value, &number))
        return refuse_number(option, why,
                             option->kind == OPTION_SIZE
                                 ? "a number of bytes (such as 262144 or 256K), "
                                 : "a whole number, ");
    in_range = number <= option->max >> shift && (number >= 0 || shift == 0);
    if (!in_range || number * (1LL << shift) < option->min)
        return refuse_number(option, why, "");
    *out = number * (1LL << shift);
    return ST_OK;
}

/* Reads octal permissions such as "660" and "0660". */
static enum status
set_mode(const struct option *option, int64_t *out, struct bytes value,
         char why[CONFIG_ERROR_CAP])
{
    int64_t mode = 0;
    bool good = value.len > 0 && value.len <= 4;

    for (size_t i = 0; good && i < value.len; i++) {
        good = value.data[i] >= '0' && value.data[i] <= '7';
        mode = mode * 8 + (value.data[i] - '0');
    }
    if (!good || mode < option->min || mode > option->max)
        return refuse_value(why,
                            "must be octal permissions from 0 to 0%llo, such as 0660",
                            (unsigned long long)option->max);
    *out = mode;
    return ST_OK;
}

/* The index of a word in "a|b|c", -1 if it is missing. */
static int
word_index(struct bytes words, struct bytes value)
{
    for (int i = 0; bytes_present(words); i++)
        if (bytes_equal_nocase(bytes_cut(&words, '|'), value))
            return i;
    return -1;
}

static const char switch_words[] = "false|true";

bool
option_is_switch(const struct option *option)
{
    return option->kind == OPTION_FLAG && strcmp(option->words, switch_words) == 0;
}

int
option_switch_index(struct bytes value)
{
    static const char *const pairs[] = {switch_words, "no|yes", "off|on", "0|1"};
    int index = -1;

    for (size_t i = 0; index < 0 && i < sizeof(pairs) / sizeof(pairs[0]); i++)
        index = word_index(bytes_str(pairs[i]), value);
    return index;
}

static enum status
set_word(const struct option *option, int *out, struct bytes value,
         char why[CONFIG_ERROR_CAP])
{
    int index = option_is_switch(option) ? option_switch_index(value)
                                         : word_index(bytes_str(option->words), value);

    if (index < 0)
        return refuse_value(why, "must be one of %s", option->words);
    *out = index;
    return ST_OK;
}

/* Reads one or more words, joined by commas, perhaps with blanks around them. */
static enum status
set_words(const struct option *option, unsigned *out, struct bytes value,
          char why[CONFIG_ERROR_CAP])
{
    unsigned set = 0;

    while (bytes_present(value)) {
        struct bytes word = bytes_trim(bytes_cut(&value, ','));
        int index = word_index(bytes_str(option->words), word);

        if (index < 0)
            return refuse_value(why, "must be some of %s, joined by commas",
                                option->words);
        set |= 1U << index;
    }
    *out = set;
    return ST_OK;
}

static enum status
set_text(char *out, struct bytes value, char why[CONFIG_ERROR_CAP])
{
    if (value.len == 0)
        return refuse_value(why, "must not be empty");
    if (value.len > OPTION_TEXT_MAX)
        return refuse_value(why, "must have at most %d characters, not %zu",
                            OPTION_TEXT_MAX, value.len);
    memcpy(out, value.data, value.len);
    out[value.len] = '\0';
    return ST_OK;
}

static enum status
set_value(const struct option *option, struct config *config, struct bytes value,
          char why[CONFIG_ERROR_CAP])
{
    void *const out = (char *)config + option->offset;
    char text[CONFIG_TEXT_CAP];
    struct listen_list unused;
    struct reason reason;
    enum status st;
    int index = 0;

    switch (option->kind) {
    case OPTION_NUMBER:
    case OPTION_SIZE:
        return set_number(option, out, value, why);
    case OPTION_MODE:
        return set_mode(option, out, value, why);
    case OPTION_FLAG:
        st = set_word(option, &index, value, why);
        if (st == ST_OK)
            *(bool *)out = index != 0;
        return st;
    case OPTION_CHOICE:
        return set_word(option, out, value, why);
    case OPTION_SET:
        return set_words(option, out, value, why);
    case OPTION_TEXT:
        return set_text(out, value, why);
    case OPTION_LISTEN:
        if (set_text(text, value, why) != ST_OK)
            return ST_BAD_VALUE;
        if (listen_read(text, &unused, &reason) != ST_OK)
            return refuse_value(why, "%s", reason.text);
        memcpy(out, text, value.len + 1);
        return ST_OK;
    }
    return ST_OK;
}

enum status
option_set(const struct option *option, struct config *config, struct bytes value,
           char why[CONFIG_ERROR_CAP])
{
    enum { SHOWN = 80 };
    enum status st = set_value(option, config, value, why);
    const bool whole = value.len <= SHOWN;

    /* Messages of listen_read() quote the value themselves. A URL may contain a
     * password. */
    if (st != ST_OK && strchr(why, '"') == NULL &&
        !bytes_contain(value, bytes_str("://"))) {
        const size_t len = strlen(why);

        (void)snprintf(why + len, CONFIG_ERROR_CAP - len, " (received \"%.*s%s\")",
                       (int)(whole ? value.len : SHOWN), value.data, whole ? "" : "...");
    }
    return st;
}

/* Size of the field, bytes. */
static size_t
option_size(const struct option *option)
{
    static const size_t sizes[] = {
        [OPTION_NUMBER] = sizeof(int64_t), [OPTION_SIZE] = sizeof(int64_t),
        [OPTION_MODE] = sizeof(int64_t),   [OPTION_FLAG] = sizeof(bool),
        [OPTION_CHOICE] = sizeof(int),     [OPTION_SET] = sizeof(unsigned),
        [OPTION_TEXT] = CONFIG_TEXT_CAP,   [OPTION_LISTEN] = CONFIG_TEXT_CAP,
    };

    return sizes[option->kind];
}

bool
option_same(const struct option *option, const struct config *a, const struct config *b)
{
    const void *left = option_field(option, a), *right = option_field(option, b);

    if (option_size(option) == CONFIG_TEXT_CAP) /* bytes behind the NUL may differ */
        return strcmp(left, right) == 0;
    return memcmp(left, right, option_size(option)) == 0;
}

void
option_copy(const struct option *option, struct config *to, const struct config *from)
{
    memcpy((char *)to + option->offset, option_field(option, from), option_size(option));
    to->origins[option - options] = from->origins[option - options];
}

bool
option_has_range(const struct option *option)
{
    return option->min < option->max && option->max != INT64_MAX &&
           option->kind != OPTION_MODE;
}

bool
option_begins_group(const struct option *option)
{
    return option == options || strcmp(option[-1].group, option->group) != 0;
}

void
option_spell(const struct option *option, char out[CONFIG_TEXT_CAP])
{
    size_t i = 0;

    for (; option->name[i] != '\0' && i < CONFIG_TEXT_CAP - 1; i++)
        out[i] = option->name[i] == '_' ? '-' : option->name[i];
    out[i] = '\0';
}

int64_t
option_number(const struct option *option, const struct config *config)
{
    return *(const int64_t *)option_field(option, config);
}

/* Prints the words of "a|b|c" whose bits are set. */
static void
print_words(const char *words, unsigned set, FILE *to)
{
    struct bytes rest = bytes_str(words);
    const char *before = "";

    for (int i = 0; bytes_present(rest); i++) {
        struct bytes word = bytes_cut(&rest, '|');

        if ((set >> i & 1) == 0)
            continue;
        (void)fprintf(to, "%s%.*s", before, (int)word.len, word.data);
        before = ",";
    }
}

void
option_print(const struct option *option, const struct config *config, FILE *to)
{
    static const char *const suffixes[] = {"", "K", "M", "G", "T"};
    const void *at = option_field(option, config);
    int64_t size;
    size_t i = 0;

    switch (option->kind) {
    case OPTION_NUMBER:
        (void)fprintf(to, "%lld", (long long)option_number(option, config));
        break;
    case OPTION_SIZE:
        size = option_number(option, config);
        if (option->words != NULL && size == OPTION_WORD) {
            (void)fputs(option->words, to);
            break;
        }
        for (; size != 0 && size % 1024 == 0 && i < 4; i++)
            size /= 1024;
        (void)fprintf(to, "%lld%s", (long long)size, suffixes[i]);
        break;
    case OPTION_MODE:
        (void)fprintf(to, "%04llo", (unsigned long long)option_number(option, config));
        break;
    case OPTION_FLAG:
        print_words(option->words, *(const bool *)at ? 2 : 1, to);
        break;
    case OPTION_CHOICE:
        print_words(option->words, 1U << *(const int *)at, to);
        break;
    case OPTION_SET:
        print_words(option->words, *(const unsigned *)at, to);
        break;
    case OPTION_TEXT:
    case OPTION_LISTEN:
        (void)fputs(at, to);
        break;
    }
}

void
option_print_default(const struct option *option, FILE *to)
{
    const struct config defaults = {.limits = api_limits_default};

    if (option->initial != NULL)
        (void)fputs(option->initial, to);
    else
        option_print(option, &defaults, to);
}

const char *
option_durable_default(const struct option *option)
{
    for (const struct config_setting *s = config_durable; s->option != NULL; s++)
        if (strcmp(s->option, option->name) == 0)
            return s->value;
    return "";
}
