/*
 * The load generator reads processor time and memory of the server from /proc, with any
 * name of the process. Declared in tests/bench/load/stats.h.
 */
#include "load/stats.h"

#include "support/check_main.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 4 << 20 };

START_TEST(a_process_may_have_brackets_and_spaces_in_its_name)
{
    static const char stat[] =
        "4242 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 15 16 "
        "17 18 19 20 777 22\n";
    uint64_t ticks = 0;
    uint64_t pages = 0;

    ck_assert(process_parse_stat(stat, &ticks, &pages));
    ck_assert_uint_eq(ticks, 200);
    ck_assert_uint_eq(pages, 777);
    ck_assert(!process_parse_stat("no such file", &ticks, &pages));
    ck_assert(!process_parse_stat("1 (short) S 1 2", &ticks, &pages));
}

/* Touches a block, reports, and ends with its input. */
static _Noreturn void
be_the_child(int in, int out)
{
    static unsigned char block[BLOCK];
    char byte = 0;

    memset(block, 'x', sizeof(block));
    if (write(out, &byte, 1) == 1)
        (void)!read(in, &byte, 1);
    _exit(0);
}

/* Not of the own process, for which an emulator of user programs (qemu) makes a file
 * up. */
START_TEST(another_process_can_be_accounted)
{
    struct process_list child = {.count = 1}, unknown = {.pids = {INT32_MAX}, .count = 1};
    struct process_usage usage;
    int to[2], from[2];
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe(to), 0);
    ck_assert_int_eq(pipe(from), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)close(to[1]);
        be_the_child(to[0], from[1]);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    child.pids[0] = (int32_t)pid;
    ck_assert_int_eq(read(from[0], &byte, 1), 1);
    ck_assert(process_usage(&child, &usage));
    ck_assert_uint_gt(usage.resident_bytes, BLOCK);
    ck_assert(!process_usage(&unknown, &usage));
    (void)close(to[1]);
    (void)close(from[0]);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
