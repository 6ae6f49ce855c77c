#include "fuzz/fuzz.h"

#include "claimd/json/scan.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void
fuzz_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    (void)fprintf(stderr, "%s:%d: ", file, line);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    abort();
}

struct bytes
fuzz_section(struct bytes *rest)
{
    static const char mark[] = "\n%%\n";
    const size_t len = sizeof(mark) - 1;
    struct bytes section = *rest;
    const char *at = rest->len == 0 ? NULL : memmem(rest->data, rest->len, mark, len);

    if (at == NULL) {
        *rest = BYTES_NONE;
        return section;
    }
    section.len = (size_t)(at - rest->data);
    *rest = bytes_of(at + len, rest->len - section.len - len);
    return section;
}

struct bytes
fuzz_copy(struct bytes text)
{
    char *block;

    if (!bytes_present(text))
        return text;
    block = malloc(text.len == 0 ? 1 : text.len);
    fuzz_check(block != NULL, "out of memory");
    if (text.len > 0)
        memcpy(block, text.data, text.len);
    return bytes_of(block, text.len);
}

void
fuzz_free(struct bytes copy)
{
    free((void *)(uintptr_t)copy.data); /* a copy is ours to free, const or not */
}

void
fuzz_memory_open(struct fuzz_memory *m)
{
    m->mem = mem_new(0);
    fuzz_check(m->mem != NULL, "out of memory");
    arena_init(&m->arena, m->mem);
    buf_init(&m->out, m->mem);
}

void
fuzz_memory_close(struct fuzz_memory *m)
{
    buf_fini(&m->out);
    arena_fini(&m->arena);
    fuzz_check(mem_used(m->mem) == 0, "%zu bytes are left behind", mem_used(m->mem));
    mem_destroy(m->mem);
}

void
fuzz_expect_json(struct bytes text)
{
    json_error_t error;
    json_t *tree = json_loadb(text.data, text.len, JSON_ALLOW_NUL, &error);

    fuzz_check(json_scan_document(text) == ST_OK, "not JSON for the scanner: %.*s",
               (int)text.len, text.data);
    /* jansson cannot keep a name with a NUL (docs/adr/0001-own-json-scanner.md). */
    fuzz_check(tree != NULL || json_error_code(&error) == json_error_null_byte_in_key,
               "not JSON for jansson: %.*s", (int)text.len, text.data);
    json_decref(tree);
}
