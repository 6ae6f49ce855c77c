/*
 * The engine's operations as a byte program: every choice of a history (which operation,
 * which queue, which ids, how long, how much later) is read from the input; the engine is
 * compared with the naive twin and audited after every operation.
 *
 * Input: one byte for the shape, then choices.
 */
#include "fuzz/fuzz.h"
#include "model/history.h"
#include "support/tape.h"

/* Every operation as likely, so that one byte says which. */
#define EVERY                                                                            \
    {                                                                                    \
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1           \
    }

/* The order of `struct shape`; see there. Few of everything, so that things meet. */
static const struct shape shapes[] = {
    {"few", 0, 0, 2, 1, 4, 40, 50, 100, 30, 40, 50, true, 1, EVERY, false},
    {"wide", 0, 0, 4, 2, 100, 300, 50, 255, 10, 100, 20, false, 1, EVERY, false},
    {"quick", 0, 0, 2, 2, 3, 30, 20, 3, 3, 3, 80, true, 1, EVERY, true},
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Longer programs find nothing that shorter ones do not, only later. */
    struct tape tape = {data + 1, size > 4096 ? 4096 : size - 1};

    if (size == 0)
        return 0;
    history_play(&shapes[data[0] % 3], &tape);
    return 0;
}
