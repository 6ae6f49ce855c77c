#include "claimd/base/arena.h"

#include <stdarg.h>
#include <stdio.h>

struct arena_block {
    struct arena_block *older;
    size_t used, cap;
    _Alignas(max_align_t) char data[];
};

enum { ORDINARY_BLOCK = 4096 - sizeof(struct arena_block) };

void
arena_init(struct arena *a, struct mem *mem)
{
    *a = (struct arena){.mem = mem};
}

void
arena_fini(struct arena *a)
{
    arena_rewind(a, (struct arena_mark){NULL, 0});
}

void
arena_reset(struct arena *a)
{
    struct arena_block *kept = NULL;

    while (a->block != NULL) {
        struct arena_block *block = a->block;

        a->block = block->older;
        if (kept == NULL && block->cap == ORDINARY_BLOCK)
            kept = block;
        else
            mem_free(a->mem, block);
    }
    if (kept != NULL) {
        kept->older = NULL;
        kept->used = 0;
    }
    a->block = kept;
}

struct arena_mark
arena_mark(const struct arena *a)
{
    return (struct arena_mark){a->block, a->block == NULL ? 0 : a->block->used};
}

void
arena_rewind(struct arena *a, struct arena_mark mark)
{
    while (a->block != mark.block) {
        struct arena_block *older = a->block->older;

        mem_free(a->mem, a->block);
        a->block = older;
    }
    if (a->block != NULL)
        a->block->used = mark.used;
}

void *
arena_alloc(struct arena *a, size_t size)
{
    struct arena_block *block = a->block;
    size_t cap = ORDINARY_BLOCK;
    void *out;

    if (size > SIZE_MAX - sizeof(*block) - _Alignof(max_align_t))
        return NULL;
    size = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
    if (block == NULL || size > block->cap - block->used) {
        if (size > cap)
            cap = size;
        block = mem_alloc(a->mem, sizeof(*block) + cap);
        if (block == NULL)
            return NULL;
        *block = (struct arena_block){.older = a->block, .cap = cap};
        a->block = block;
    }
    out = block->data + block->used;
    block->used += size;
    return out;
}

void *
arena_array(struct arena *a, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    return arena_alloc(a, count * size);
}

struct bytes
arena_copy(struct arena *a, struct bytes text)
{
    char *copy = text.len == SIZE_MAX ? NULL : arena_alloc(a, text.len + 1);

    if (copy == NULL)
        return BYTES_NONE;
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    return bytes_of(copy, text.len);
}

struct bytes
arena_printf(struct arena *a, const char *format, ...)
{
    va_list args, again;
    char *text = NULL;
    int need;

    va_start(args, format);
    va_copy(again, args);
    need = vsnprintf(NULL, 0, format, args);
    if (need >= 0)
        text = arena_alloc(a, (size_t)need + 1);
    if (text != NULL)
        (void)vsnprintf(text, (size_t)need + 1, format, again);
    va_end(again);
    va_end(args);
    return text == NULL ? BYTES_NONE : bytes_of(text, (size_t)need);
}
