/* key_files: keys and certificates, from the files that the options name. */
#ifndef MAIN_KEY_FILES_H
#define MAIN_KEY_FILES_H

#include "claimd/auth/signer.h"
#include "claimd/base/buf.h"
#include "claimd/base/log.h"
#include "claimd/http/listen.h"
#include "claimd/http/tls.h"
#include "claimd/metrics/exposition.h"
#include "claimd/seal/seal.h"
#include "claimd/store/sealer.h"
#include "main/config.h"

/* ------------------------------------------------------------------ signatures */

/*
 * Makes a signer of pre-signed URLs or web hooks with the keys of the file that this option names,
 * owned; without any for "none". ST_BAD_VALUE after an error message; ST_NO_MEMORY.
 */
enum status signing_open(const char *option, const char *path, struct mem *mem,
                         struct signer **out, struct config_errors *errors);

/* ------------------------------------------------------------------ encrypted queues */

/*
 * Makes a seal with the keys of the file, owned; without any if none is named. It logs bodies that
 * it cannot decrypt (NULL: it does not). ST_BAD_VALUE after an error message; ST_NO_MEMORY.
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

/* Its metrics; there are none until there is a key, or one is missing. */
struct sealing_source {
    struct metrics_source source;
    struct seal *seal; /* borrowed */
};

void sealing_measure(struct sealing_source *source, struct seal *seal,
                     struct metrics *metrics);

/* Logs which keys there are, if any. */
void sealing_log(struct seal *seal, const struct log *log);

/* ------------------------------------------------------------------ TLS */

/*
 * Makes a tls, owned; NULL in *out if nothing in the list is for TLS. ST_BAD_VALUE after
 * error messages: no files are named, or they cannot be used; ST_NO_MEMORY.
 */
enum status
certificate_open(const struct config *config, const struct listen_list *list,
                 struct mem *mem, struct tls **out, struct config_errors *errors);

/* True if something in the list is for TLS. */
bool certificate_wanted(const struct listen_list *list);

/* Reports that the named pair cannot be used: for where nothing opens it. */
void certificate_check(const struct config *config, struct mem *mem,
                       struct config_errors *errors);

/* Reads the files: a pair, pinned for the caller. ST_BAD_VALUE after an error message; ST_NO_MEMORY. */
enum status certificate_read(const struct config *config, struct mem *mem,
                             struct tls_pair **out, struct config_errors *errors);

/* Logs until when it is valid, and warns if it is not valid now. */
void certificate_log(struct tls *tls, const struct log *log, int64_t now_ms);

#endif
