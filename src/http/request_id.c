#include "http/request_id.h"

#include "claimd/base/bytes.h"

enum { TAG = 8, SOURCE = 2, COUNTER = 10 };

void
request_ids_init(struct request_ids *ids, const char *tag, unsigned source)
{
    memcpy(ids->prefix, tag, TAG);
    ids->prefix[TAG] = '-';
    hex_write(ids->prefix + TAG + 1, source, SOURCE);
    ids->prefix[TAG + 1 + SOURCE] = '-';
    ids->last = 0;
}

void
request_ids_next(struct request_ids *ids, char out[REQUEST_ID_CAP])
{
    memcpy(out, ids->prefix, sizeof(ids->prefix));
    hex_write(out + sizeof(ids->prefix), ++ids->last, COUNTER);
    out[sizeof(ids->prefix) + COUNTER] = '\0';
}
