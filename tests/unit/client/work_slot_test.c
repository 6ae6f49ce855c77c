/* A slot of a kept command: its jobs and its lines. Pipes stand for the process. */
#include "client/work_slot.h"

#include "support/check_main.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { JOBS = 5, READ_MOST = 65536 };

static struct mem *mem;
static struct work_slot *slot;
static struct work_claim claim;
static struct work_job jobs[JOBS];
static char ids[JOBS][8];
static int reader, writer; /* the ends of the process */

static void
begin(void)
{
    int in[2], out[2];

    (void)signal(SIGPIPE, SIG_IGN);
    mem = mem_new(0);
    slot = mem_calloc(mem, 1, sizeof(*slot));
    ck_assert_ptr_nonnull(slot);
    slot_init(slot, mem);
    claim = (struct work_claim){.queue = bytes_str("q"), .number = "7"};
    for (size_t i = 0; i < JOBS; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "m%zu", i);
        jobs[i] = (struct work_job){.claim = &claim,
                                    .id = bytes_str(ids[i]),
                                    .body = bytes_str("{\"a\":\n1}"),
                                    .attempt = 2};
    }
    ck_assert_int_eq(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
    reader = in[0];
    slot->process.input = in[1];
    slot->process.output = out[0];
    writer = out[1];
}

static void
end(void)
{
    slot_fini(slot);
    mem_free(mem, slot);
    (void)close(reader);
    (void)close(writer);
    mem_destroy(mem); /* which checks that all is freed */
}

static void
add(size_t count)
{
    for (size_t i = 0; i < count; i++)
        slot_add(slot, &jobs[i]);
}

/* Writes and sends all jobs that wait. */
static void
send_all(void)
{
    while (slot_has_next(slot))
        ck_assert(slot_write(slot, 0));
    ck_assert(slot_send(slot));
}

/* The process reads from its standard input. */
static const char *
process_reads(size_t most)
{
    static char text[READ_MOST + 1];
    const ssize_t n = read(reader, text, most);

    text[n < 0 ? 0 : n] = '\0';
    return text;
}

static void
process_writes(const char *text)
{
    ck_assert_int_eq(write(writer, text, strlen(text)), (ssize_t)strlen(text));
}

static void
assert_jobs(const char *expected, size_t sent)
{
    char text[JOBS * 8] = "";

    for (size_t i = 0; i < slot->count; i++) {
        strcat(text, ids[slot->jobs[i] - jobs]);
        ck_assert_int_eq(slot->jobs[i]->sent, i < sent);
        ck_assert_ptr_eq(slot->jobs[i]->slot, slot);
    }
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(slot->sent, sent);
}

TEST_CASE("jobs", .setup = begin, .teardown = end);

START_TEST(a_line_has_the_message_without_line_breaks)
{
    add(1);
    ck_assert(slot_write(slot, 99));
    ck_assert(slot_send(slot));
    ck_assert_str_eq(process_reads(READ_MOST),
                     "{\"id\":\"m0\",\"queue\":\"q\",\"body\":{\"a\": 1},"
                     "\"delivery_count\":2,\"claim_number\":\"7\",\"deadline\":99}\n");
}

START_TEST(jobs_are_sent_in_their_order_and_found_by_their_ids)
{
    add(3);
    assert_jobs("m0m1m2", 0);
    ck_assert_ptr_null(slot_find(slot, bytes_str("m0"))); /* it was not sent */
    ck_assert(slot_write(slot, 0));
    ck_assert(slot_write(slot, 0));
    assert_jobs("m0m1m2", 2);
    ck_assert_ptr_eq(slot_find(slot, bytes_str("m1")), &jobs[1]);
    ck_assert_ptr_null(slot_find(slot, bytes_str("m2")));
    ck_assert_ptr_null(slot_find(slot, bytes_str("m")));
}

START_TEST(jobs_leave_in_any_order)
{
    add(5);
    for (int i = 0; i < 3; i++)
        ck_assert(slot_write(slot, 0));
    slot_remove(slot, &jobs[1]);
    assert_jobs("m0m2m3m4", 2);
    slot_remove(slot, &jobs[4]);
    assert_jobs("m0m2m3", 2);
    ck_assert_ptr_null(jobs[1].slot);
    slot_remove(slot, &jobs[0]);
    slot_remove(slot, &jobs[2]);
    assert_jobs("m3", 0);
}

START_TEST(responses_are_remembered_for_a_while)
{
    char id[24];

    ck_assert(!slot_has_answered(slot, bytes_str("m0")));
    slot_remember(slot, bytes_str("m0"));
    ck_assert(slot_has_answered(slot, bytes_str("m0")));
    ck_assert(!slot_has_answered(slot, bytes_str("m1")));
    for (int i = 1; i < SLOT_ANSWERED; i++) {
        (void)snprintf(id, sizeof(id), "other%d", i);
        slot_remember(slot, bytes_str(id));
    }
    ck_assert(slot_has_answered(slot, bytes_str("m0")));
    slot_remember(slot, bytes_str("one more"));
    ck_assert(!slot_has_answered(slot, bytes_str("m0")));
}

START_TEST(lines_that_the_process_has_not_begun_to_read_wait_again)
{
    size_t line;

    add(4);
    for (int i = 0; i < 3; i++)
        ck_assert(slot_write(slot, 0));
    ck_assert(slot_send(slot));
    line = strlen("{\"id\":\"m0\",\"queue\":\"q\",\"body\":{\"a\": 1},"
                  "\"delivery_count\":2,\"claim_number\":\"7\"}\n");
    (void)process_reads(line);
    slot_take_back(slot);
    assert_jobs("m0m1m2m3", 1);
}

START_TEST(a_line_of_which_one_byte_was_read_counts_as_read)
{
    add(2);
    send_all();
    while (process_reads(1)[0] != '\n') {
    }
    (void)process_reads(1);
    slot_take_back(slot);
    assert_jobs("m0m1", 2);
}

START_TEST(a_job_that_the_runner_has_ended_is_not_sent_again)
{
    add(3);
    send_all();
    jobs[1].stop = STOP_TIMEOUT;
    slot_take_back(slot);
    assert_jobs("m1m0m2", 1);
}

TEST_CASE("lines", .setup = begin, .teardown = end);

START_TEST(a_full_pipe_takes_the_rest_later)
{
    static char body[1 << 20]; /* more than a pipe takes */
    size_t len = 0, n;

    memset(body, 'x', sizeof(body));
    jobs[0].body = bytes_of(body, sizeof(body));
    add(2);
    send_all();
    ck_assert_uint_gt(slot->lines.len, 0);
    do {
        n = strlen(process_reads(READ_MOST));
        len += n;
        ck_assert(slot_send(slot));
    } while (n > 0);
    ck_assert_uint_eq(slot->lines.len, 0);
    ck_assert_uint_eq(len, slot->written);
}

START_TEST(no_more_lines_wait_for_the_pipe_than_a_limit)
{
    static char body[SLOT_AHEAD];

    memset(body, 'x', sizeof(body));
    for (size_t i = 0; i < JOBS; i++)
        jobs[i].body = bytes_of(body, sizeof(body));
    add(JOBS);
    ck_assert(slot_has_next(slot));
    ck_assert(slot_write(slot, 0));
    ck_assert(!slot_has_next(slot));
}

START_TEST(a_process_that_closes_its_input_is_noticed)
{
    add(1);
    ck_assert_int_eq(close(reader), 0);
    reader = -1;
    ck_assert(slot_write(slot, 0));
    ck_assert(!slot_send(slot));
}

START_TEST(lines_are_taken_as_they_are_complete)
{
    struct bytes line;
    size_t taken = 0;

    ck_assert_int_eq(slot_read(slot), 0);
    process_writes("one\n\nthr");
    ck_assert_int_eq(slot_read(slot), 1);
    ck_assert(slot_next_line(slot, &taken, &line));
    ck_assert(bytes_equal_str(line, "one"));
    ck_assert(slot_next_line(slot, &taken, &line));
    ck_assert_uint_eq(line.len, 0);
    ck_assert(!slot_next_line(slot, &taken, &line));
    ck_assert(slot_drop(slot, taken));
    process_writes("ee\n");
    ck_assert_int_eq(slot_read(slot), 1);
    taken = 0;
    ck_assert(slot_next_line(slot, &taken, &line));
    ck_assert(bytes_equal_str(line, "three"));
    ck_assert(slot_drop(slot, taken));
    ck_assert_int_eq(close(writer), 0);
    writer = -1;
    ck_assert_int_eq(slot_read(slot), -1);
}

/* Reads a line of this length, with its line feed or without. True: it is too long. */
static bool
is_too_long(size_t len, bool ended)
{
    char chunk[1024];
    struct bytes line;
    size_t taken = 0;
    bool fits = true;

    memset(chunk, 'x', sizeof(chunk));
    for (size_t left = len; left > 0 && fits;) {
        const size_t n = left < sizeof(chunk) ? left : sizeof(chunk);

        ck_assert_int_eq(write(writer, chunk, n), (ssize_t)n);
        left -= n;
        ck_assert_int_eq(slot_read(slot), 1);
        fits = slot_drop(slot, 0);
    }
    if (fits && ended) {
        process_writes("\n");
        ck_assert_int_eq(slot_read(slot), 1);
        ck_assert(slot_next_line(slot, &taken, &line));
        ck_assert_uint_eq(line.len, len);
        ck_assert(slot_drop(slot, taken));
    }
    return !fits;
}

START_TEST(a_line_has_a_longest_length)
{
    ck_assert(!is_too_long(LINE_MOST, true));
    ck_assert(is_too_long(LINE_MOST + 1, false));
}
