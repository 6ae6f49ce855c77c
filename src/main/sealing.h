/*
 * sealing: the keys of queues whose messages are encrypted, from the file that the options name,
 * and the sealer that the store is given.
 */
#ifndef MAIN_SEALING_H
#define MAIN_SEALING_H

#include "claimd/base/buf.h"
#include "claimd/base/log.h"
#include "claimd/metrics/exposition.h"
#include "claimd/seal/seal.h"
#include "claimd/store/sealer.h"
#include "main/config.h"

/*
 * Makes a seal with the keys of the file, owned; without any if none is named. The log is told of
 * what cannot be opened (NULL: nobody is). ST_BAD_VALUE after an error message; ST_NO_MEMORY.
 */
enum status
sealing_open(const struct config *config, struct mem *mem, const struct log *log,
             struct seal **out, struct config_errors *errors);

/* What the store needs to seal by itself; borrows the seal. */
struct store_sealer sealing_sealer(struct seal *seal);

/* Writes the body of a message of this queue as it was posted; seal is a struct seal. ST_NO_MEMORY;
 * statuses of seal_open(). */
enum status sealing_open_body(void *seal, const struct store_queue *queue,
                              struct bytes body, struct buf *out);

/* Its figures; there are none until there is a key, or one is missing. */
struct sealing_source {
    struct metrics_source source;
    struct seal *seal; /* borrowed */
};

void sealing_measure(struct sealing_source *source, struct seal *seal,
                     struct metrics *metrics);

/* Says which keys there are, if any. */
void sealing_log(struct seal *seal, const struct log *log);

#endif
