/*
 * message: one of a queue in the document of a state, or in a line of a dump.
 */
#ifndef API_WIRE_STATE_MESSAGE_H
#define API_WIRE_STATE_MESSAGE_H

#include "api/wire/state/doc.h"

/* All but the claim, which is left in *claim. The body is borrowed from the document. */
enum status
state_message_read(struct state_decoder *d, const struct doc_at *at, struct bytes text,
                   struct json_scan_value *claim, struct store_image_message *out);

#endif
