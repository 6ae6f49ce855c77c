/*
 * hosts: which hosts may have a transfer now, so that a slow one does not delay others.
 *
 *     all        at most `workers` at a time
 *     a host     at most half of them
 *     slow ones  (the last transfer timed out, or took long) together at most half of all
 *     unproven   those and hosts that were never heard, together at most three quarters: the
 *                rest is always left for hosts that respond
 *
 * What finds no room stands in the line of its host, LINE_MOST a host and LINES_MOST in all; what
 * finds no room there either goes back to the store, for as long as the host is likely to need
 * for those in front of it. So the memory here does not depend on how many are due.
 *
 *   Cost     O(1); picking the next one from the lines O(hosts with a line, at most LINES_MOST)
 *   Memory   a host is forgotten when nothing is under way and REMEMBERED others came after it
 *   Threads  none
 */
#ifndef NOTIFY_HOSTS_H
#define NOTIFY_HOSTS_H

#include "claimd/base/counter.h"
#include "claimd/base/hash.h"
#include "claimd/ds/hashmap.h"
#include "claimd/ds/list.h"

enum { LINE_MOST = 8, LINES_MOST = 256, HOSTS_REMEMBERED = 4096 };

struct host {
    struct hashnode node; /* of hosts.map */
    struct list link;     /* of hosts.lined, or of hosts.idle, or none */
    struct list line;     /* deliveries that wait for capacity; their links */
    size_t waiting, running;
    size_t away; /* put off, and likely to come back */
    enum pace { HOST_NEW, HOST_QUICK, HOST_SLOW, PACES } pace;
    int64_t typical_ms; /* of a transfer */
    char place[];
};

struct hosts {
    struct mem *mem;
    struct hash_key key;
    struct hashmap map;
    struct list lined; /* those with a line, in turns */
    struct list idle;  /* those without deliveries, the longest idle first */
    size_t idle_count;
    size_t workers, waiting, running;
    size_t by_pace[PACES]; /* transfers of hosts that are so now */
    int64_t slow_ms;       /* from when on a transfer was slow */
    struct counter slow;   /* hosts */
};

void hosts_init(struct hosts *h, struct mem *mem, struct hash_key key, size_t workers,
                int64_t slow_ms);

/* Nothing may be under way. */
void hosts_fini(struct hosts *h);

/* The host of this name, to be used at once; NULL without memory. */
struct host *hosts_find(struct hosts *h, const char *place);

/* True if it may have one more transfer now, and none waits in front. */
bool host_has_room(const struct hosts *h, const struct host *host);

/* A transfer begins, and ends: heard is false if it timed out. */
void host_begin(struct hosts *h, struct host *host);
void host_end(struct hosts *h, struct host *host, int64_t took_ms, bool heard);

/* Puts it into the line of its host; false: that is full, and *wait_ms says when to come again. */
bool host_wait(struct hosts *h, struct host *host, struct list *link, int64_t *wait_ms);

/* Takes the next delivery with room at its *host out of its line, or any (drain). NULL: there is none. */
struct list *hosts_next(struct hosts *h, bool drain, struct host **host);

/* The host was found, and nothing came of it. */
void host_leave(struct hosts *h, struct host *host);

#endif
