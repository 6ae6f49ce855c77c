/*
 * json_fault: where and why a text is no JSON document, for the people who wrote it.
 *
 * Reading goes on in json_scan, which only says that there is a fault; a text that was
 * refused is scanned again here, up to its first fault.
 *
 *   Cost     O(length), for refused documents only
 */
#ifndef CLAIMD_JSON_FAULT_H
#define CLAIMD_JSON_FAULT_H

#include "claimd/base/bytes.h"
#include "claimd/json/reason.h"
#include "claimd/json/scan.h"

/*
 * Says what json_scan_document() has against a request's body; false, and nothing said, if it
 * has nothing. Lines and columns count from 1, columns in characters.
 */
bool json_fault(struct bytes body, struct reason *out);

/* A received value of a wrong kind. A string, which may be a secret, is only named as one. */
struct received json_received(const struct json_scan_value *value);

#endif
