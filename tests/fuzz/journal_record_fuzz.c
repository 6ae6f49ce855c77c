/*
 * Records of the journal: what is read can be written again, and is the same then.
 *
 * Input: records, one behind the other.
 */
#include "fuzz/fuzz.h"

#include "journal/record.h"

#include <stdlib.h>

/* Bytes in the texts and bodies of a record. */
static size_t
texts_of(const struct record *record)
{
    struct record copy = *record;
    const struct store_change *change = &copy.change;
    struct store_message_record m;
    size_t total = change->queue.project.len + change->queue.name.len;

    if (change->metadata != NULL)
        total += change->metadata->json.len + change->metadata->settings.dead_letter.len +
                 change->metadata->settings.paused_by.len;
    if (change->subscription != NULL)
        total += change->subscription->subscriber.len + change->subscription->options.len;
    while (copy.change.next(&copy.change, &m))
        total += m.body.len + (m.details == NULL ? 0 : store_details_bytes(m.details));
    return total;
}

/* Writes what was read into the space that it would be granted; owned. */
static uint8_t *
write_again(const struct record *record, size_t *len)
{
    size_t bound = record_bound(record->change.count, texts_of(record));
    struct record copy = *record;
    uint8_t *to = malloc(bound);

    fuzz_check(to != NULL, "out of memory");
    if (copy.change.metadata != NULL)
        copy.change.metadata = &copy.metadata;
    *len = copy.type == RECORD_MARK
               ? record_write_mark(to, &copy.mark, copy.change.now_ms)
               : record_write(to, &copy.change);
    fuzz_check(*len > 0 && *len <= bound && *len % 8 == 0, "%zu bytes in space for %zu",
               *len, bound);
    return to;
}

static void
check_record(const struct record *record)
{
    size_t len, again_len;
    uint8_t *bytes, *again_bytes;
    struct record again;

    fuzz_check(record_type_name(record->type) != NULL, "a type without a name");
    bytes = write_again(record, &len);
    fuzz_check(record_read(bytes, len, &again) == ST_OK && again.type == record->type,
               "a %s cannot be read again", record_type_name(record->type));
    again_bytes = write_again(&again, &again_len);
    fuzz_check(len == again_len && memcmp(bytes, again_bytes, len) == 0,
               "a %s is another one when it is written again",
               record_type_name(record->type));
    free(bytes);
    free(again_bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t at = 0, step;

    while ((step = record_size(data + at, size - at)) > 0) {
        struct bytes copy =
            fuzz_copy(bytes_of((const char *)data + at, step)); /* nothing behind it */
        struct record record;

        if (record_read((const uint8_t *)copy.data, copy.len, &record) == ST_OK)
            check_record(&record);
        fuzz_free(copy);
        at += step;
    }
    return 0;
}
