/* zone_span: a time in which the wall clock of a zone is ahead of UTC by one offset. */
#ifndef CLAIMD_SCHEDULE_ZONE_SPAN_H
#define CLAIMD_SCHEDULE_ZONE_SPAN_H

#include <stdint.h>

/* From `begin` to before `end`, in UTC seconds. */
struct zone_span {
    int64_t begin;  /* INT64_MIN: always */
    int64_t end;    /* INT64_MAX: for ever */
    int64_t offset; /* seconds; negative behind UTC */
};

#endif
