/*
 * subscription: one of a queue or topic in the document of a state, or in a line of a dump.
 */
#ifndef API_WIRE_STATE_SUBSCRIPTION_H
#define API_WIRE_STATE_SUBSCRIPTION_H

#include "api/wire/state/doc.h"

enum status
state_subscription_read(struct state_decoder *d, const struct doc_at *at,
                        struct bytes text, struct store_image_subscription *out);

#endif
