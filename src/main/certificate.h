/*
 * certificate: the server's certificate and key, from the files that the options name.
 */
#ifndef MAIN_CERTIFICATE_H
#define MAIN_CERTIFICATE_H

#include "claimd/base/log.h"
#include "claimd/http/listen.h"
#include "claimd/http/tls.h"
#include "main/config.h"

/*
 * Makes a tls, owned; NULL in *out if nothing in the list is for TLS. ST_BAD_VALUE after
 * complaints: no files are named, or what is in them cannot be used; ST_NO_MEMORY.
 */
enum status
certificate_open(const struct config *config, const struct listen_list *list,
                 struct mem *mem, struct tls **out, struct config_errors *errors);

/* True if something in the list is for TLS. */
bool certificate_wanted(const struct listen_list *list);

/* Complains about the pair that is named, if it cannot be used: where nothing opens it. */
void certificate_check(const struct config *config, struct mem *mem,
                       struct config_errors *errors);

/* Reads the files: a pair, pinned for the caller. ST_BAD_VALUE after an error message; ST_NO_MEMORY. */
enum status certificate_read(const struct config *config, struct mem *mem,
                             struct tls_pair **out, struct config_errors *errors);

/* Logs until when it is good, and warns of one that is not good now. */
void certificate_log(struct tls *tls, const struct log *log, int64_t now_ms);

#endif
