/*
 * A full pipe or disk must not block the threads that log. The writer drops lines
 * instead, and writes their number where they are missing. Read claimd/base/log.h next.
 */
#include "claimd/base/log.h"

#include "support/check_main.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static bool refuses; /* malloc() fails */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *
__wrap_malloc(size_t size)
{
    return refuses ? NULL : __real_malloc(size);
}

/* More lines than buffer and pipe have space for, of about 50 bytes each. */
enum { MANY = 60000 };

static const char prefix[] = "2023-11-14T22:13:20Z info e ";
static const char gap[] = "2023-11-14T22:13:20Z warn log_lines_dropped count=";

/* A log with a writer into a pipe, and a reader that reads when the test says so. */
struct fixture {
    struct clock clock;
    struct log log;
    FILE *reader;
    char line[8192];
};

static void
log_open(struct fixture *f, int fd)
{
    clock_init_manual(&f->clock, 1700000000000);
    f->log = (struct log){.fd = fd, .level = LOG_INFO, .clock = &f->clock};
    ck_assert_int_eq(log_writer_start(&f->log), ST_OK);
}

static void
fixture_open(struct fixture *f)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    f->reader = fdopen(ends[0], "r");
    ck_assert_ptr_nonnull(f->reader);
    log_open(f, ends[1]);
}

/* Ends the log and reads nothing more. */
static void
fixture_close(struct fixture *f)
{
    int fd = f->log.fd;

    ck_assert(log_writer_end(&f->log, -1));
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(fclose(f->reader), 0);
}

#define WRITER_TEST(id)                                                                  \
    FIXTURE_TEST(id, struct fixture, fixture_open(f), fixture_close(f))

/* Waits for the next line; it is without its line feed. */
static const char *
next(struct fixture *f)
{
    ck_assert_ptr_nonnull(fgets(f->line, sizeof(f->line), f->reader));
    f->line[strcspn(f->line, "\n")] = '\0';
    return f->line;
}

/* Logs the numbers from first to last - 1. */
static void
count(struct fixture *f, int first, int last)
{
    for (int n = first; n < last; n++)
        log_event(&f->log, LOG_INFO, "e", LOG_I("a_number_to_count_the_lines", n));
}

/* True if the line is one of those of count(); *n is its number. */
static bool
is_number(const char *line, int *n)
{
    char text[128];

    if (sscanf(line, "%*s info e a_number_to_count_the_lines=%d", n) != 1)
        return false;
    (void)snprintf(text, sizeof(text), "%sa_number_to_count_the_lines=%d", prefix, *n);
    return strcmp(line, text) == 0;
}

/* How many lines this one says are missing; 0: it is another line. */
static int
missing(const char *line)
{
    return strncmp(line, gap, strlen(gap)) == 0 ? atoi(line + strlen(gap)) : 0;
}

/* The soft limit of a resource from now on; returns the one before. */
static rlim_t
limit(__rlimit_resource_t what, rlim_t to)
{
    struct rlimit now;
    rlim_t before;

    ck_assert_int_eq(getrlimit(what, &now), 0);
    before = now.rlim_cur;
    now.rlim_cur = to;
    ck_assert_int_eq(setrlimit(what, &now), 0);
    return before;
}

START_TEST(without_memory_there_is_no_writer)
{
    struct log log = {.fd = STDERR_FILENO};
    enum status st;

    refuses = true;
    st = log_writer_start(&log);
    refuses = false;
    ck_assert_int_eq(st, ST_NO_MEMORY);
    ck_assert_ptr_null(log.writer);
}

START_TEST(lines_come_whole_and_in_order)
{
    enum { BEHIND = 10000, AT_A_TIME = 500 };
    struct fixture f;
    int n = -1;

    /* The reader stays behind, so that the lines go round the buffer several times. */
    fixture_open(&f);
    count(&f, 0, BEHIND);
    for (int i = 0; i < MANY; i++) {
        if (i % AT_A_TIME == 0)
            count(&f, BEHIND + i, BEHIND + i + AT_A_TIME);
        ck_assert_msg(is_number(next(&f), &n), "%s", f.line);
        ck_assert_int_eq(n, i);
    }
    for (int i = 0; i < BEHIND; i++)
        ck_assert_msg(is_number(next(&f), &n), "%s", f.line);
    ck_assert_int_eq(n, MANY + BEHIND - 1);
    fixture_close(&f);
}

static void *
log_numbers(void *arg)
{
    count(arg, 0, 1000);
    return NULL;
}

WRITER_TEST(lines_of_several_threads_do_not_mix)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int seen[1000] = {0}, n = -1;

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, log_numbers, f), 0);
    for (int i = 0; i < THREADS * 1000; i++) {
        ck_assert_msg(is_number(next(f), &n), "%s", f->line);
        ck_assert_int_lt(seen[n]++, THREADS);
        ck_assert(n == 0 || seen[n] <= seen[n - 1]); /* each thread's in its order */
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

WRITER_TEST(logging_never_waits_and_missing_lines_are_counted_in_place)
{
    int n = -1, kept = 0;

    count(f, 0, MANY); /* without a reader */
    while (is_number(next(f), &n))
        ck_assert_int_eq(n, kept++);
    ck_assert_msg(missing(f->line) == MANY - kept, "%d lines, then %s", kept, f->line);
    /* The buffer has space for about LOG_WRITER_CAPACITY bytes, and there was the
     * pipe's. */
    ck_assert_int_gt(kept, LOG_WRITER_CAPACITY / 64);
    ck_assert_int_lt(kept, MANY);
    count(f, MANY, MANY + 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(is_number(next(f), &n), "%s", f->line);
        ck_assert_int_eq(n, MANY + i);
    }
}

WRITER_TEST(the_count_is_written_whatever_the_level)
{
    int n = -1;

    ck_assert(log_writer_end(&f->log, -1));
    f->log.level = LOG_ERROR;
    ck_assert_int_eq(log_writer_start(&f->log), ST_OK);
    for (int i = 0; i < MANY; i++)
        log_event(&f->log, LOG_ERROR, "e", LOG_I("a_number_to_count_the_lines", i));
    do
        (void)next(f);
    while (sscanf(f->line, "%*s error e a_number_to_count_the_lines=%d", &n) == 1);
    ck_assert_int_gt(missing(f->line), 0);
}

START_TEST(the_end_waits_for_a_reader_that_reads)
{
    struct fixture f;
    int fd, n = -1;

    fixture_open(&f);
    fd = f.log.fd;
    count(&f, 0, 100); /* the pipe has space for so many */
    ck_assert(log_writer_end(&f.log, -1));
    count(&f, 100, 101); /* at once again */
    ck_assert_int_eq(close(fd), 0);
    for (int i = 0; i < 101; i++) {
        ck_assert_msg(is_number(next(&f), &n), "%s", f.line);
        ck_assert_int_eq(n, i);
    }
    ck_assert_ptr_null(fgets(f.line, sizeof(f.line), f.reader));
    ck_assert_int_eq(fclose(f.reader), 0);
}

START_TEST(the_end_does_not_wait_for_a_reader_that_does_not)
{
    struct fixture f;

    fixture_open(&f);
    count(&f, 0, MANY);
    ck_assert(!log_writer_end(&f.log, 10));
    count(&f, 0, MANY); /* into nothing */
    ck_assert(log_writer_end(&f.log, 10));
    /* Without the reader, the thread ends and frees its memory. The test cannot know
     * when, so it leaves the descriptor open. */
    ck_assert_int_eq(fclose(f.reader), 0);
}

START_TEST(a_reader_that_went_away_costs_lines_and_nothing_else)
{
    struct fixture f;
    int fd;

    fixture_open(&f);
    fd = f.log.fd;
    ck_assert_int_eq(fclose(f.reader), 0);
    count(&f, 0, 2 * MANY);
    ck_assert(log_writer_end(&f.log, -1)); /* neither stuck nor ended by SIGPIPE */
    ck_assert_int_eq(close(fd), 0);
}

WRITER_TEST(a_pipe_that_does_not_block_loses_nothing)
{
    int n = -1;

    ck_assert_int_eq(fcntl(f->log.fd, F_SETFL, O_NONBLOCK), 0);
    count(f, 0, 10000); /* more than the pipe holds */
    for (int i = 0; i < 10000; i++) {
        ck_assert_msg(is_number(next(f), &n), "%s", f->line);
        ck_assert_int_eq(n, i);
    }
}

START_TEST(after_a_full_disk_it_goes_on_with_a_line_of_its_own)
{
    enum { LINES = 1000 };
    char name[] = "/tmp/claimd-test-XXXXXX";
    int fd = mkstemp(name), n = -1, last = -1, torn = 0, written = 0, missed = 0;
    struct fixture f;
    rlim_t before;

    ck_assert_int_ge(fd, 0);
    f.reader = fdopen(dup(fd), "r");
    ck_assert_ptr_nonnull(f.reader);
    log_open(&f, fd);
    before = limit(RLIMIT_FSIZE, 2010); /* in the middle of a line */
    count(&f, 0, LINES);                /* fewer than the buffer holds */
    while (log_dropped(&f.log) == 0)
        (void)sched_yield(); /* the thread has not met the limit */
    (void)limit(RLIMIT_FSIZE, before);
    count(&f, LINES, LINES + 1);
    ck_assert(log_writer_end(&f.log, -1));
    rewind(f.reader);
    while (fgets(f.line, sizeof(f.line), f.reader) != NULL) {
        f.line[strcspn(f.line, "\n")] = '\0';
        missed += missing(f.line);
        if (is_number(f.line, &n)) {
            ck_assert_int_gt(n, last);
            last = n;
            written++;
        } else if (missing(f.line) == 0) {
            torn++; /* the part before the limit */
            ck_assert_int_eq(ftell(f.reader), 2010 + 1);
        }
    }
    ck_assert_int_eq(torn, 1);
    ck_assert_int_gt(missed, 0);
    ck_assert_int_eq(written + missed, LINES + 1);
    ck_assert_int_eq(fclose(f.reader), 0);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(unlink(name), 0);
}

WRITER_TEST(without_a_descriptor_there_is_no_writer)
{
    rlim_t before;
    enum status st;

    ck_assert(log_writer_end(&f->log, -1));
    before = limit(RLIMIT_NOFILE, 0);
    st = log_writer_start(&f->log);
    (void)limit(RLIMIT_NOFILE, before);
    ck_assert_int_eq(st, ST_IO);
    ck_assert_ptr_null(f->log.writer);
}

WRITER_TEST(without_a_thread_the_logging_thread_writes)
{
    pthread_attr_t usual, endless;
    enum status st;

    ck_assert(log_writer_end(&f->log, -1));
    ck_assert_int_eq(pthread_getattr_default_np(&usual), 0);
    ck_assert_int_eq(pthread_getattr_default_np(&endless), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&endless, (size_t)1 << 50), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&endless), 0);
    st = log_writer_start(&f->log);
    ck_assert_int_eq(pthread_setattr_default_np(&usual), 0);
    ck_assert_int_eq(st, ST_UNAVAILABLE);
    ck_assert_ptr_null(f->log.writer);
    log_write(&f->log, LOG_INFO, "e", NULL, 0);
    ck_assert_str_eq(next(f), "2023-11-14T22:13:20Z info e");
}
