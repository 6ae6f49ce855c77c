/*
 * search: is there an order of the operations of a history in which each one happens
 * between its call and its reply, and in which a queue used by one thread at a time would
 * have given the same responses? (Herlihy & Wing 1990: linearizability.)
 *
 * The search is Wing & Gong's (1993) with Lowe's memory (2017) of what was tried: a set
 * of operations done together with the state they led to is never entered twice. A search
 * is about one queue, because an object made of linearizable ones is linearizable.
 *
 * An operation without a response may be left out; if it is put in order it must
 * change something, and stands before all that were called after its end: an operation
 * that a crash cut off has happened before it, or never will (durable linearizability:
 * Izraelevitz, Mendes & Scott 2016).
 *
 * A waiter takes messages behind those that are reserved for the waiters in front of it.
 * Some of them are known: those in the wait queue before it was called (queued_ns) that
 * take messages after it in the order. Any other that overlaps with it may have been in
 * front.
 *
 * Posts are only tried in orders that no response contradicts (seen_order.h), and
 * operations that only look as soon as they fit.
 *
 *   Cost     exponential in the worst case, a few steps an operation for histories of
 *            correct servers; gives up after SEARCH_STEPS_MAX from either end. Then
 *            nothing is known of this history, and the caller needs another one
 */
#ifndef TESTS_LINEAR_SEARCH_H
#define TESTS_LINEAR_SEARCH_H

#include "model/linear/operation.h"

enum { SEARCH_STEPS_MAX = 2000000 };

enum verdict { LINEARIZABLE, NOT_LINEARIZABLE, GAVE_UP };

struct search_result {
    enum verdict verdict;
    size_t states;                   /* different ones that were entered */
    size_t longest;                  /* most operations that could be put in order */
    bool ordered[LINEAR_OPERATIONS]; /* those, by their index */
};

/* Searches a history of at most LINEAR_OPERATIONS in any order. Aborts without memory. */
void search(const struct operation *ops, size_t count, struct search_result *out);

/* Likewise with so many steps from either end. */
void search_within(const struct operation *ops, size_t count, size_t steps_max,
                   struct search_result *out);

#endif
