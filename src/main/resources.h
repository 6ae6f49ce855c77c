/*
 * resources: what the configuration names outside of the process: sockets, keys,
 * certificates, lists of tokens, and Keystone.
 */
#ifndef MAIN_RESOURCES_H
#define MAIN_RESOURCES_H

#include "claimd/auth/access.h"
#include "claimd/auth/auth.h"
#include "claimd/auth/signer.h"
#include "claimd/base/log.h"
#include "claimd/http/proxies.h"
#include "claimd/http/tls.h"
#include "claimd/seal/seal.h"
#include "main/config.h"

/* Must not move in memory while it is open. config, mem and log are borrowed. */
struct resources {
    const struct config *config;
    struct mem *mem;
    const struct log *log; /* NULL: no log */
    struct listen_list listen;
    struct proxies proxies;
    int64_t socket_group;  /* -1: none */
    struct tls *tls;       /* owned; NULL: no listener has TLS */
    struct access *access; /* owned; NULL: every client has access */
    /* Owned; NULL without Keystone. */
    struct keystone_wire *wire;
    struct executor *executor;
    struct keystone *keystone;
    struct signer *signer, *webhooks; /* owned; without keys if the option is "none" */
    char *smtp_password;              /* owned; NULL: none */
    struct seal *seal;                /* owned; without keys for "none" */
    struct auth *auth;                /* owned; NULL: no identity stub */
};

/*
 * Opens all resources. Reports all errors. Call resources_close() in any case. Lists that
 * a reload does not read again may be pipes. ST_BAD_VALUE after error messages;
 * ST_NO_MEMORY.
 */
enum status
resources_open(struct resources *r, const struct config *config, struct mem *mem,
               const struct log *log, struct config_errors *errors);

/*
 * Reads the files that *config names, and puts all of them in force or, if one is bad,
 * none. Clears the cache of Keystone. Statuses as resources_open().
 */
enum status resources_reload(struct resources *r, const struct config *config,
                             struct config_errors *errors);

/* Logs the end of the certificate, and the ids of the encryption keys. */
void resources_log(const struct resources *r, const struct log *log, int64_t now_ms);

/* No request may be in progress. */
void resources_close(struct resources *r);

/* True if a listener of the list has TLS. */
bool certificate_wanted(const struct listen_list *list);

/* Reports a certificate and key that cannot be used, for configurations without TLS
 * listeners. */
void certificate_check(const struct config *config, struct mem *mem,
                       struct config_errors *errors);

#endif
