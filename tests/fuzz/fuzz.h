/*
 * fuzz: what the fuzz targets share.
 *
 * A target is one file NAME_fuzz.c with the function libFuzzer calls: it takes any bytes,
 * does something with the code under test, and ends the program with fuzz_check() when a
 * promise is broken. Sanitizers find the rest. With clang and CLAIMD_FUZZ a target is a
 * fuzzer; in every build it is also a test that goes through its corpus
 * (fuzz/corpus/NAME), where each input that ever found something stays.
 *
 * Inputs that hold several things are cut into sections by lines of two percent signs, so
 * that a corpus can be read, written by hand, and mutated piece by piece.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "claimd/base/arena.h"
#include "claimd/base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Prints where and what is wrong and aborts. */
_Noreturn void fuzz_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define fuzz_check(condition, ...)                                                       \
    do                                                                                   \
        if (!(condition))                                                                \
            fuzz_fail(__FILE__, __LINE__, __VA_ARGS__);                                  \
    while (0)

static inline struct bytes
fuzz_input(const uint8_t *data, size_t size)
{
    return bytes_of((const char *)data, size);
}

/* Cuts the text before the next line "%%" off *rest, which is absent at the end. */
struct bytes fuzz_section(struct bytes *rest);

/*
 * A copy in a block of exactly this size, owned, so that AddressSanitizer sees any byte
 * read behind the end. Absent stays absent. fuzz_free() it.
 */
struct bytes fuzz_copy(struct bytes text);
void fuzz_free(struct bytes copy);

/* An account, an arena and a buffer, fresh for each input. */
struct fuzz_memory {
    struct mem *mem;
    struct arena arena;
    struct buf out;
};

void fuzz_memory_open(struct fuzz_memory *m);

/* Ends the program if anything else of the account is still in use. */
void fuzz_memory_close(struct fuzz_memory *m);

/* The text is JSON for the scanner and for jansson. */
void fuzz_expect_json(struct bytes text);

#endif
