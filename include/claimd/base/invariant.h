/*
 * invariant: assertions that stay on in a release.
 *
 * A program that continues with broken structures gives wrong responses or loses
 * messages, and the cause is hard to find later. So the process aborts at once. It leaves
 * one line on standard error and a core dump:
 *
 *     claimd: broken invariant: item != NULL, at src/ds/seqmap.c:209 in seqmap_insert(),
 *     request ID                                                  (all of it in one line)
 *
 * Assertions are for bugs of claimd. Errors of clients, files and systems have a status.
 *
 *   Cost     ENSURE: its expression and one branch; the code of a failure is out of line.
 *            Use ENSURE if the expression compares values that the function needs anyway,
 *            once or twice. ENSURE_DEBUG: nothing with NDEBUG
 *   Safety   a failure allocates nothing and takes no lock: it may happen anywhere, also
 *            in a signal handler
 *   Threads  any; the context belongs to the thread
 */
#ifndef CLAIMD_BASE_INVARIANT_H
#define CLAIMD_BASE_INVARIANT_H

#include <stdint.h>

/* CLAIMD_ENSURE_NOTHING disables assertions for mutation tests: the tests must find each
 * deliberate bug without them. */
#ifndef CLAIMD_ENSURE_NOTHING
#define INVARIANT_HOLDS(condition) __builtin_expect(!!(condition), 1)
#else
#define INVARIANT_HOLDS(condition) ((condition) || 1)
#endif

/* If the expression is false, ends the process. */
#define ENSURE(expression)                                                               \
    (INVARIANT_HOLDS(expression)                                                         \
         ? (void)0                                                                       \
         : invariant_broken(#expression, __FILE__, __LINE__, __func__))

/* If two integers differ as int64_t, prints both and ends the process. */
#define ENSURE_EQ(a, b)                                                                  \
    invariant_equal((int64_t)(a), (int64_t)(b), #a " == " #b, __FILE__, __LINE__,        \
                    __func__)

/* For expensive checks: not evaluated with NDEBUG. */
#ifndef NDEBUG
#define ENSURE_DEBUG(expression) ENSURE(expression)
#else
#define ENSURE_DEBUG(expression) ((void)sizeof((expression) ? 1 : 0))
#endif

/* Sets the request id that a failure of this thread prints; NULL: none. Borrows it until
 * the next call. Returns the previous id. */
const char *invariant_context(const char *id);

/* Prints the failure and aborts. Truncates long texts. */
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
