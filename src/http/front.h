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

#include "http/refusal.h"
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
 * libmicrohttpd is about to answer by itself, and does not say which connection. If that has
 * a whole head which it cannot take (Content-Length is no number, the cookies do not fit into
 * its memory), it would answer twice; if it is the only one in the middle of a chunked body,
 * the chunks are malformed. These are answered here with a document of ours, past it, and can
 * then be sent no more. Whoever has no whole head yet, or cannot be told from others, gets
 * its own page.
 */
void front_own_page(struct worker *w, unsigned code);

/* Refuses the request of c past libmicrohttpd, and closes the connection. */
void front_give_up(struct worker *w, struct conn *c, enum refusal which);

/*
 * Has our own epoll set tell, once, when the client of c stops sending, or `what` happens
 * before (EPOLLIN, or 0). Once, because the end of input is reported again with all that
 * happens afterwards. how: EPOLL_CTL_ADD at first, then EPOLL_CTL_MOD. False without memory.
 */
bool front_watch(struct worker *w, struct conn *c, int how, uint32_t what);

/*
 * The client of c will send no more. libmicrohttpd misses that when the end of the input
 * comes together with the last bytes (it waits for another edge after a short read), and
 * would keep the connection until it times out. So it is told with edges of ours,
 * whenever it waits for input and has read all of it: front_push_ends(), after its run.
 */
void front_hung_up(struct worker *w, struct conn *c);
void front_push_ends(struct worker *w);

/* Closes the connection of c without another word. */
void front_end(struct worker *w, struct conn *c);

/* A connection's phase took too long: tells the client if it can, and ends it. */
void front_time_out(struct worker *w, struct conn *c);

#endif
