/*
 * bodies_private: shared by the files of bodies.h: bodies.c counts and removes files,
 * bodies_write.c writes runs, bodies_read.c reads them and recovers files.
 *
 *   Threads  as in bodies.h
 */
#ifndef JOURNAL_BODIES_PRIVATE_H
#define JOURNAL_BODIES_PRIVATE_H

#include "journal/bodies.h"

/* The address space of a buffer: one run may be longer than BODIES_BUFFER_BYTES. */
enum { BODIES_MAPPED = BODIES_BUFFER_BYTES + FRAME_BYTES_MAX };

static inline struct bodies *
bodies_of(struct store_runs *runs)
{
    return container_of(runs, struct bodies, runs);
}

/* The file with this number; NULL: there is none. O(log files). Needs the lock. */
struct body_file *body_file_find(struct bodies *b, uint32_t number);

/* Adds a file. NULL without memory. Needs the lock. */
struct body_file *body_file_add(struct bodies *b, uint32_t number);

void body_handle_close(struct bodies *b, struct body_handle *reader);

/* True if the log has a FILE_GONE of this file. At the start only. */
bool bodies_is_gone(const struct bodies *b, uint32_t number);

/* Ends loads that wait, as failed. */
void bodies_drop_loads(struct bodies *b);

/* Functions of struct store_runs. */
enum status bodies_run_write(struct store_runs *runs, struct store_change *state,
                             size_t bytes, struct store_place *place, uint64_t *ticket);
enum store_durability bodies_run_written(struct store_runs *runs, uint64_t ticket);
void bodies_run_load(struct store_runs *runs, struct store_load *load);
enum status bodies_run_adopt(struct store_runs *runs, const struct store_queue *queue,
                             const struct store_run_record *run);
enum status
bodies_run_read(struct store_runs *runs, const struct store_place *place,
                enum status (*done)(void *arg, struct store_change *state), void *arg);

#endif
