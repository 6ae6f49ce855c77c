/*
 * store/runs: where an in-memory store keeps messages that do not fit into its memory.
 * The journal implements it with body files (docs/journal.md).
 *
 * A run is at most 64 ready messages of a queue with neighboring numbers.
 *
 *     write()      until written() is STORE_DURABLE. Then the store logs a RUN, and frees
 *                  the messages
 *     load()       the messages are in memory again. So does read()
 *     release()    the run has no messages, or the log has all of them otherwise
 *     count()      each run during a checkpoint. The store moves runs of sparse files
 *
 * The store still counts, orders and expires the messages of a run. It needs the body
 * file only for their bodies.
 *
 *   Threads   any. write(), load() and release() are called under a lock of the store,
 *             and do not wait for the disk
 *   Failure   after an error of the disk other than a full one the log is lost
 *             (STORE_LOST), and the process has to end
 */
#ifndef CLAIMD_STORE_RUNS_H
#define CLAIMD_STORE_RUNS_H

#include "claimd/store/log.h"

/* Rough bytes of a message in a body file besides its body. */
enum { STORE_BODY_EACH = 32 };

struct store_load;
struct store_runs;

/* Called once for each load(), by a thread without locks of the store. `state` has the
 * messages as they were written, and is valid during the call. NULL: they could not be
 * read. */
typedef void store_loaded_fn(struct store_load *load, struct store_change *state);

/* A load that was requested. It belongs to the implementation until done() is called. */
struct store_load {
    /* These two are private to the implementation. */
    struct list link;
    int64_t began_ns;
    struct store_place place;
    store_loaded_fn *done;
};

struct store_runs {
    /*
     * Copies the messages of a STATE change to a buffer that will be written. *place:
     * they will be there. *ticket: for written(). ST_AGAIN: too much is not written yet,
     * or the log cannot have runs yet. ST_BEYOND_LOG: they are too large. ST_NO_MEMORY.
     */
    enum status (*write)(struct store_runs *runs, struct store_change *state,
                         size_t bytes, struct store_place *place, uint64_t *ticket);

    /* STORE_LOST: the messages could not be written. They stay in memory, and the store
     * releases the run. */
    enum store_durability (*written)(struct store_runs *runs, uint64_t ticket);

    /* Reads a run in another thread, and then notifies the listeners of the log. */
    void (*load)(struct store_runs *runs, struct store_load *load);

    /* The file has one run less. The caller has logged why. */
    void (*release)(struct store_runs *runs, uint32_t file);

    /* The store has a run that needs so many bytes of this file. True: the file is nearly
     * empty, and the store should log the messages whole. */
    bool (*count)(struct store_runs *runs, uint32_t file, uint64_t bytes);

    /* At the end of a replay: the store has this run. ST_NOT_FOUND: all its messages had
     * expired when the process ended. ST_IO, ST_BAD_VALUE: its file is damaged. */
    enum status (*adopt)(struct store_runs *runs, const struct store_queue *queue,
                         const struct store_run_record *run);

    /* The same as load(), but the caller waits. Returns the status of done(), or ST_IO,
     * ST_BAD_VALUE, ST_NO_MEMORY. */
    enum status (*read)(struct store_runs *runs, const struct store_place *place,
                        enum status (*done)(void *arg, struct store_change *state),
                        void *arg);
};

#endif
