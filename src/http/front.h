/*
 * front: what libmicrohttpd calls; a request's way from its first line to its answer.
 *
 *     target known --> headers known --> body, piece by piece --> whole --> answer sent
 *     front_target     front_request     front_request            front_request
 *                                                                 front_completed
 *
 *   Bodies   up to api_body_limit() are kept. One that is longer is refused with the
 *            API's own 400: after it was read and forgotten when it is at most
 *            FRONT_SWALLOW longer (so that a client which sends first and reads later
 *            sees the answer and keeps its connection), at once otherwise
 *   Threads  all run in the worker given as cls
 */
#ifndef HTTP_FRONT_H
#define HTTP_FRONT_H

#include "http/worker.h"

enum { FRONT_SWALLOW = 1024 * 1024 };

/* For MHD_OPTION_URI_LOG_CALLBACK: begins an exchange, which becomes the request's. */
void *front_target(void *cls, const char *target, struct MHD_Connection *mhd);

/* The MHD_AccessHandlerCallback. */
enum MHD_Result
front_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
              const char *version, const char *upload, size_t *upload_len, void **ctx);

/* For MHD_OPTION_NOTIFY_COMPLETED: writes the log line and ends the exchange. */
void front_completed(void *cls, struct MHD_Connection *mhd, void **ctx,
                     enum MHD_RequestTerminationCode how);

/* For MHD_OPTION_NOTIFY_CONNECTION: ties connections to ours, and frees ours. */
void front_connection(void *cls, struct MHD_Connection *mhd, void **socket_ctx,
                      enum MHD_ConnectionNotificationCode what);

/* For MHD_OPTION_UNESCAPE_CALLBACK: leaves the text alone, the API decodes. */
size_t front_keep_escapes(void *cls, struct MHD_Connection *mhd, char *text);

/*
 * The client of c will send no more. libmicrohttpd misses that when the end of the input
 * comes together with the last bytes (it waits for another edge after a short read), and
 * would keep the connection until it times out.
 */
void front_hung_up(struct conn *c);

/* A connection's phase took too long: tells the client if it can, and ends it. */
void front_time_out(struct worker *w, struct conn *c);

#endif
