/* key_files: reads keys and certificates from the files that options name. */
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
 * Makes a signer for pre-signed URLs or web hooks, owned, with the keys of the file that the option
 * names; without keys for "none". ST_BAD_VALUE after an error message; ST_NO_MEMORY.
 */
enum status signing_open(const struct config *config, const char *option, struct mem *mem,
                         struct signer **out, struct config_errors *errors);

/* ------------------------------------------------------------------ encrypted queues */

/*
 * Makes a seal, owned, with the keys of the file; without keys for "none". The seal logs bodies that it
 * cannot decrypt, unless log is NULL. ST_BAD_VALUE after an error message; ST_NO_MEMORY.
 */
enum status
sealing_open(const struct config *config, struct mem *mem, const struct log *log,
             struct seal **out, struct config_errors *errors);

/* The functions with which the store encrypts bodies. Borrows the seal. */
struct store_sealer sealing_sealer(struct seal *seal);

/*
 * Appends the body of a message of this queue, decrypted if it is sealed. seal: a struct seal.
 * ST_NO_MEMORY, and the statuses of seal_open().
 */
enum status sealing_open_body(void *seal, const struct store_queue *queue,
                              struct bytes body, struct buf *out);

/* The metrics of a seal. Nothing is written without keys, unless a key was missing. */
struct sealing_source {
    struct metrics_source source;
    struct seal *seal; /* borrowed */
};

void sealing_add_metrics(struct sealing_source *source, struct seal *seal,
                         struct metrics *metrics);

/* Logs the ids of the keys. */
void sealing_log(struct seal *seal, const struct log *log);

/* ------------------------------------------------------------------ TLS */

/*
 * Makes a tls, owned; *out is NULL if no listener of the list has TLS. ST_BAD_VALUE after an error
 * message if the options name no files or bad ones; ST_NO_MEMORY.
 */
enum status
certificate_open(const struct config *config, const struct listen_list *list,
                 struct mem *mem, struct tls **out, struct config_errors *errors);

/* True if a listener of the list has TLS. */
bool certificate_wanted(const struct listen_list *list);

/* Reports a certificate and key that cannot be used, for configurations without TLS listeners. */
void certificate_check(const struct config *config, struct mem *mem,
                       struct config_errors *errors);

/* Reads certificate and key as a pair, pinned for the caller. ST_BAD_VALUE after an error message;
 * ST_NO_MEMORY. */
enum status certificate_read(const struct config *config, struct mem *mem,
                             struct tls_pair **out, struct config_errors *errors);

/* Logs the end of the certificate, or a warning if it is not valid now. */
void certificate_log(struct tls *tls, const struct log *log, int64_t now_ms);

#endif
