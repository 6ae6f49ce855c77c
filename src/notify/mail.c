#include "notify/mail.h"

#include "claimd/base/base64.h"
#include "claimd/json/string.h"

#include <time.h>

/* LINE: bytes that become a line of 76 characters; WORD: one encoded word, of which the first fits
 * into such a line behind "Subject: ". */
enum { LINE = 57, WORD = 39, PLAIN_SUBJECT_MOST = 60 };

/* ------------------------------------------------------------------ addresses */

static bool
is_address_byte(char c)
{
    return c > ' ' && c < 0x7f && strchr("()<>[]:;,\\\"", c) == NULL;
}

bool
mail_is_address(struct bytes text)
{
    const char *at = text.len == 0 ? NULL : memchr(text.data, '@', text.len);

    for (size_t i = 0; i < text.len; i++)
        if (!is_address_byte(text.data[i]))
            return false;
    /* One @, and something on each side. */
    return at != NULL && at != text.data && text.len <= MAIL_ADDRESS_MOST &&
           at + 1 < text.data + text.len &&
           memchr(at + 1, '@', (size_t)(text.data + text.len - at - 1)) == NULL;
}

/* Undoes %XX; what is none stays as it is. */
static void
write_decoded(struct buf *out, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        int high = -1, low = -1;

        if (text.data[i] == '%' && text.len - i > 2) {
            high = hex_value(text.data[i + 1]);
            low = hex_value(text.data[i + 2]);
        }
        if (high < 0 || low < 0) {
            buf_byte(out, text.data[i]);
            continue;
        }
        buf_byte(out, (char)(high * 16 + low));
        i += 2;
    }
}

bool
mail_read(struct bytes rest, struct buf *address, struct buf *subject)
{
    size_t before = address->len;
    struct bytes to = bytes_cut(&rest, '?');

    write_decoded(address, to);
    while (bytes_present(rest)) {
        struct bytes value = bytes_cut(&rest, '&'), name = bytes_cut(&value, '=');

        if (subject->len == 0 && bytes_equal_nocase(name, bytes_str("subject")))
            write_decoded(subject, value);
    }
    return !address->failed &&
           mail_is_address(bytes_of(address->data + before, address->len - before));
}

/* ------------------------------------------------------------------ heads */

/* A short one of printable ASCII that no reader could take for an encoded one. */
static bool
is_plain(struct bytes subject)
{
    for (size_t i = 0; i < subject.len; i++)
        if (subject.data[i] < ' ' || subject.data[i] > '~')
            return false;
    return subject.len <= PLAIN_SUBJECT_MOST && !bytes_contain(subject, bytes_str("=?"));
}

/* How many whole characters, in bytes, fit into a word; a broken one counts as one byte. */
static size_t
word_len(struct bytes text)
{
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.len;
    const unsigned char *begin = at;

    while (at < end) {
        const unsigned char *next = utf8_pass(at, end);

        if (next == NULL)
            next = at + 1;
        if (next - begin > WORD)
            break;
        at = next;
    }
    return (size_t)(at - begin);
}

static void
write_word(struct buf *out, struct bytes text)
{
    char raw[WORD], coded[BASE64_LEN(WORD)];

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        raw[i] = c < ' ' || c == 0x7f ? ' ' : text.data[i];
    }
    buf_str(out, "=?UTF-8?B?");
    buf_add(out, coded, base64_write(coded, raw, text.len));
    buf_str(out, "?=");
}

static void
write_subject(struct buf *out, struct bytes subject)
{
    if (subject.len > MAIL_SUBJECT_MOST)
        subject.len = MAIL_SUBJECT_MOST;
    buf_str(out, "Subject: ");
    if (is_plain(subject)) {
        buf_bytes(out, subject);
        subject.len = 0;
    }
    while (subject.len > 0) {
        size_t len = word_len(subject);

        write_word(out, bytes_of(subject.data, len));
        subject = bytes_of(subject.data + len, subject.len - len);
        if (subject.len > 0)
            buf_str(out, "\r\n ");
    }
    buf_str(out, "\r\n");
}

static void
write_date(struct buf *out, int64_t ms)
{
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    if (gmtime_r(&seconds, &tm) == NULL)
        return; /* no such year */
    buf_printf(out, "Date: %s, %02d %s %d %02d:%02d:%02d +0000\r\n", days[tm.tm_wday],
               tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
               tm.tm_sec);
}

void
mail_write_head(struct buf *out, const struct mail_head *head)
{
    const char *domain = memchr(head->from.data, '@', head->from.len);

    write_date(out, head->sent_ms);
    buf_str(out, "From: <");
    buf_bytes(out, head->from);
    buf_str(out, ">\r\nTo: <");
    buf_bytes(out, head->to);
    buf_str(out, ">\r\n");
    write_subject(out, head->subject);
    buf_str(out, "Message-ID: <");
    buf_bytes(out, head->id);
    buf_add(out, domain, (size_t)(head->from.data + head->from.len - domain));
    buf_str(out, ">\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                 "Content-Type: text/plain; charset=utf-8\r\n"
                 "Content-Transfer-Encoding: base64\r\n\r\n");
}

void
mail_write_text(struct buf *out, struct bytes text)
{
    char coded[BASE64_LEN(LINE)];

    while (text.len > 0) {
        size_t len = text.len < LINE ? text.len : LINE;

        buf_add(out, coded, base64_write(coded, text.data, len));
        buf_str(out, "\r\n");
        text = bytes_of(text.data + len, text.len - len);
    }
}
