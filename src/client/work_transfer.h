/*
 * work_transfer: HTTP requests that run side by side in one event loop, over libcurl.
 *
 *     transfer_start() --> under way --> transfers_next() returns it --> transfer_reset()
 *                              |
 *                              +--> transfer_reset()
 *
 *   Memory   one handle of libcurl for each transfer under way
 *   Threads  one
 */
#ifndef CLIENT_WORK_TRANSFER_H
#define CLIENT_WORK_TRANSFER_H

#include "claimd/base/buf.h"

#include <curl/curl.h>

/* The purpose of a transfer, for the loop. */
enum transfer_use {
    TRANSFER_CLAIM,   /* owner: none */
    TRANSFER_RENEWAL, /* owner: struct work_claim */
    TRANSFER_FINISH,  /* owner: struct work_claim */
    TRANSFER_SERVICE, /* owner: struct work_job; a request to the URL of --http */
    TRANSFER_HEALTH   /* owner: none; a request to the path of --health */
};

struct work_transfer {
    enum transfer_use use;
    void *owner;                /* borrowed */
    CURL *handle;               /* owned; NULL: not under way */
    struct curl_slist *headers; /* owned */
    struct buf request;         /* body of the request, if it has one */
    bool once;                  /* transfer_post_once() */
    size_t read_len;            /* once: libcurl has read this part of the body */
    int64_t sent_ms;            /* for the caller */

    /* The response. */
    struct buf body;
    size_t body_most;      /* longer ones are cut */
    bool cut;              /* a part is missing */
    bool sent;             /* a connection was made, and the request may have been sent */
    bool unusable;         /* not sent, because of the URL or the certificate */
    long status;           /* 0: none, see `error` */
    int64_t retry_after_s; /* -1: none; up to INT32_MAX */
    char location[256];    /* "": none; the other headers likewise */
    char claim_number[24];
    char result[32]; /* Claimd-Result */
    char paused[8];  /* Claimd-Paused */
    char error[CURL_ERROR_SIZE];
};

void transfer_init(struct work_transfer *t, struct mem *mem, enum transfer_use use,
                   void *owner);

/* Ends it, if it is under way, and forgets the response. Keeps no memory. */
void transfer_reset(CURLM *multi, struct work_transfer *t);

/*
 * Gives t a handle with the options that all transfers share. The caller adds its own
 * (URL, method) and headers, and calls transfer_start(). NULL without memory.
 */
CURL *transfer_prepare(struct work_transfer *t);

/*
 * Sends the body with POST, also if it is empty, and never twice: libcurl repeats a
 * request on a new connection if an old one ends without a response, but a job may have
 * run then. False without memory.
 */
bool transfer_post_once(struct work_transfer *t);

/*
 * Starts a transfer: with a body if `request` is not empty. It may take timeout_ms (0: no
 * limit). False without memory, or if it was not prepared; then it is reset.
 */
bool
transfer_start(CURLM *multi, struct work_transfer *t, bool prepared, int64_t timeout_ms);

/* A transfer that has ended and is not under way any more; NULL: there is none. */
struct work_transfer *transfers_next(CURLM *multi);

/*
 * Closes the sending half of the connection, if it is not encrypted. claimd then ends the
 * long poll of this transfer at once, and sends the response. False: that is impossible,
 * or there is no connection.
 */
bool transfer_end_waiting(struct work_transfer *t);

/*
 * Seconds of Retry-After, which are a number or an HTTP date. date: the header Date of
 * the response, "" without; now_s is the time of this machine, which counts without it.
 * -1: it is neither.
 */
int64_t retry_after_read(const char *retry_after, const char *date, int64_t now_s);

#endif
