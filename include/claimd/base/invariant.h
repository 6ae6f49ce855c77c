/*
 * invariant: assertions that stay on in a release.
 *
 * A program that goes on with broken structures gives wrong answers, or loses messages,
 * and nobody can tell later where it began. Here it ends at once instead, with one line on
 * standard error and a core:
 *
 *     claimd: broken invariant: item != NULL, at src/ds/seqmap.c:209 in seqmap_insert(),
 *     request ID                                                  (all of it in one line)
 *
 * Only for bugs of ours: what the world does wrong has a status.
 *
 *   Cost     ENSURE: what its expression costs and a branch that is never taken; the rest
 *            stands out of line. Write it where the expression is a comparison or two of
 *            what the function needs anyway. ENSURE_DEBUG: nothing with NDEBUG
 *   Safety   a failure allocates nothing and takes no lock: it may happen anywhere, in a
 *            signal handler too
 *   Threads  any; the context belongs to the thread
 */
#ifndef CLAIMD_BASE_INVARIANT_H
#define CLAIMD_BASE_INVARIANT_H

#include <stdint.h>

/* CLAIMD_ENSURE_NOTHING is for the deliberate bugs of the tests, which the tests are to find. */
#ifndef CLAIMD_ENSURE_NOTHING
#define INVARIANT_HOLDS(condition) __builtin_expect(!!(condition), 1)
#else
#define INVARIANT_HOLDS(condition) ((condition) || 1)
#endif

/* Ends the process unless the expression is true. */
#define ENSURE(expression)                                                               \
    (INVARIANT_HOLDS(expression)                                                         \
         ? (void)0                                                                       \
         : invariant_broken(#expression, __FILE__, __LINE__, __func__))

/* Ends the process, and says what they were, unless two integers are equal, as int64_t. */
#define ENSURE_EQ(a, b)                                                                  \
    invariant_equal((int64_t)(a), (int64_t)(b), #a " == " #b, __FILE__, __LINE__,        \
                    __func__)

/* For what costs something: not looked at, and not evaluated, with NDEBUG. */
#ifndef NDEBUG
#define ENSURE_DEBUG(expression) ENSURE(expression)
#else
#define ENSURE_DEBUG(expression) ((void)sizeof((expression) ? 1 : 0))
#endif

/*
 * Names what this thread works for, the id of a request, until the next call; NULL:
 * nothing. Returns what it was before. id is borrowed until then.
 */
const char *invariant_context(const char *id);

/* What a failure does. `expected` and `file` may be as long as they like: they are cut. */
_Noreturn void invariant_broken(const char *expected, const char *file, int line,
                                const char *function) __attribute__((cold, noinline));
_Noreturn void
invariant_unequal(int64_t a, int64_t b, const char *expected, const char *file, int line,
                  const char *function) __attribute__((cold, noinline));

static inline void
invariant_equal(int64_t a, int64_t b, const char *expected, const char *file, int line,
                const char *function)
{
    if (!INVARIANT_HOLDS(a == b))
        invariant_unequal(a, b, expected, file, line, function);
}

#endif
