#include "claimd/base/fiber.h"

#include "claimd/base/invariant.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#elif __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif

#ifdef HAS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef HAS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* One side of a change of stacks: the fiber, or the thread that runs it. */
struct side {
    ucontext_t context;
#ifdef HAS_ASAN
    void *fake_stack;
    const void *stack;
    size_t size;
#endif
#ifdef HAS_TSAN
    void *fiber;
#endif
};

struct fiber {
    struct executor_job job; /* for fiber_offload(); first: a fiber is its job */
    struct fiber_pool *pool;
    struct fiber *next; /* spare */
    struct side inside, outside;
    char *area;  /* the guard, and the stack behind it */
    size_t kept; /* FIBER_KEPT bytes, in whole pages */
    enum fiber_state state;
    void (*run)(void *arg);
    void *arg;
    void (*offloaded)(void *arg);
    void *offloaded_arg;
};

/* Per thread; not global. */
static _Thread_local struct fiber *running;

/* Continues at `to`. Returns when the other side continues at `from`. Informs the
 * sanitizers. */
static void
cross(struct side *from, struct side *to)
{
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->size);
#endif
#ifdef HAS_TSAN
    __tsan_switch_to_fiber(to->fiber, 0);
#endif
    ENSURE(swapcontext(&from->context, &to->context) == 0);
#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}

/* Runs in a fiber: calls one function after the other, each until it returns. */
static void
inside(void)
{
    struct fiber *f = running;

#ifdef HAS_ASAN
    __sanitizer_finish_switch_fiber(NULL, &f->outside.stack, &f->outside.size);
#endif
    for (;;) {
        f->run(f->arg);
        f->state = FIBER_ENDED;
        cross(&f->inside, &f->outside);
    }
}

static enum fiber_state
fiber_enter(struct fiber *f)
{
    struct fiber *outer = running;

    running = f;
#ifdef HAS_TSAN
    f->outside.fiber = __tsan_get_current_fiber();
#endif
    cross(&f->outside, &f->inside);
    running = outer;
    return f->state;
}

void
fiber_pool_init(struct fiber_pool *pool, struct mem *mem, struct executor *executor,
                size_t most, void (*wake)(void *arg))
{
    *pool =
        (struct fiber_pool){.mem = mem, .executor = executor, .wake = wake, .most = most};
}

enum { AREA = FIBER_GUARD + FIBER_STACK };

/* Allocates a stack that ends at inaccessible pages, so that an overflow damages no other
 * memory. */
static bool
make_stack(struct fiber *f)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (area == MAP_FAILED)
        return false;
    f->area = area;
    f->kept = page > FIBER_KEPT ? page : FIBER_KEPT; /* both are powers of two */
    if (mprotect(area, FIBER_GUARD, PROT_NONE) != 0 ||
        getcontext(&f->inside.context) != 0) {
        (void)munmap(area, AREA); /* fails only when misused */
        return false;
    }
    f->inside.context.uc_stack.ss_sp = area + FIBER_GUARD;
    f->inside.context.uc_stack.ss_size = FIBER_STACK;
    f->inside.context.uc_link = NULL; /* the function never returns */
    makecontext(&f->inside.context, inside, 0);
#ifdef HAS_ASAN
    f->inside.stack = area + FIBER_GUARD;
    f->inside.size = FIBER_STACK;
#endif
#ifdef HAS_TSAN
    f->inside.fiber = __tsan_create_fiber(0);
#endif
    return true;
}

static void
destroy(struct fiber *f)
{
    struct fiber_pool *pool = f->pool;

#ifdef HAS_TSAN
    __tsan_destroy_fiber(f->inside.fiber);
#endif
    (void)munmap(f->area, AREA);
    mem_free(pool->mem, f);
    pool->count--;
}

void
fiber_pool_fini(struct fiber_pool *pool)
{
    while (pool->spare != NULL) {
        struct fiber *f = pool->spare;

        pool->spare = f->next;
        destroy(f);
    }
    ENSURE(pool->count == 0);
}

struct fiber *
fiber_take(struct fiber_pool *pool)
{
    struct fiber *f = pool->spare;

    if (f != NULL) {
        pool->spare = f->next;
        pool->spare_count--;
        return f;
    }
    if (pool->count >= pool->most)
        return NULL;
    f = mem_calloc(pool->mem, 1, sizeof(*f));
    if (f == NULL || !make_stack(f)) {
        mem_free(pool->mem, f);
        return NULL;
    }
    f->pool = pool;
    f->state = FIBER_ENDED;
    pool->count++;
    return f;
}

void
fiber_give(struct fiber_pool *pool, struct fiber *f)
{
    const uint64_t *words = (const void *)(f->area + AREA - f->kept);

    ENSURE(f->state == FIBER_ENDED);
    if (pool->spare_count == FIBER_SPARE) {
        destroy(f);
        return;
    }
    /*
     * Few fibers need much stack. Memory beyond the part that is kept goes back to the
     * system. Unwritten memory is all zeros. One line of the cache shows this: a used
     * frame mostly has a return address or a pointer there, and otherwise the stack keeps
     * its memory.
     */
    if ((words[-8] | words[-7] | words[-6] | words[-5] | words[-4] | words[-3] |
         words[-2] | words[-1]) != 0) /* if this fails, the memory stays */
        (void)madvise(f->area + FIBER_GUARD, FIBER_STACK - f->kept, MADV_DONTNEED);
    f->next = pool->spare;
    pool->spare = f;
    pool->spare_count++;
}

enum fiber_state
fiber_start(struct fiber *f, void (*run)(void *arg), void *arg)
{
    ENSURE(f->state == FIBER_ENDED);
    f->run = run;
    f->arg = arg;
    return fiber_enter(f);
}

enum fiber_state
fiber_resume(struct fiber *f)
{
    ENSURE(f->state == FIBER_PARKED);
    return fiber_enter(f);
}

struct fiber *
fiber_current(void)
{
    return running;
}

void
fiber_park(struct fiber *self)
{
    ENSURE(self == running);
    self->state = FIBER_PARKED;
    cross(&self->inside, &self->outside);
}

void
fiber_wake(struct fiber *f)
{
    f->pool->wake(f->arg);
}

static void
run_offloaded(struct executor_job *job)
{
    struct fiber *f = (struct fiber *)job;

    f->offloaded(f->offloaded_arg);
    fiber_wake(f);
}

bool
fiber_offload(void (*run)(void *arg), void *arg)
{
    struct fiber *self = fiber_current();

    if (self == NULL) {
        run(arg);
        return true;
    }
    self->offloaded = run;
    self->offloaded_arg = arg;
    self->job.run = run_offloaded;
    if (executor_submit(self->pool->executor, &self->job) != ST_OK)
        return false;
    fiber_park(self);
    return true;
}
