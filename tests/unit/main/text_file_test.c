/*
 * Which files claimd reads for an option: their size, the permissions of files with
 * secrets, and pipes without a writer. Read src/main/text_file.h next.
 */
#include "main/text_file.h"

#include "support/check_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BYTES = 64 };

static char path[64];
static struct mem *mem;
static struct config_errors errors;

static void
make_directory(void)
{
    (void)snprintf(path, sizeof(path), "/tmp/text_file_test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(path));
    (void)strcat(path, "/file");
    mem = mem_new(0);
    ck_assert_ptr_nonnull(mem);
    errors = (struct config_errors){.to = NULL};
}

static void
remove_directory(void)
{
    ck_assert_int_eq(unlink(path), 0);
    *strrchr(path, '/') = '\0';
    ck_assert_int_eq(rmdir(path), 0);
    mem_destroy(mem);
}

static void
write_file(const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(fchmod(fd, mode), 0);
    ck_assert_int_eq(close(fd), 0);
}

static struct text_file
file_at_path(void)
{
    return (struct text_file){.path = path, .option = "tokens", .most = MAX_BYTES};
}

static void
assert_read(const struct text_file *file, const char *expected)
{
    struct bytes text;

    ck_assert_int_eq(text_file_read(file, mem, &text, &errors), ST_OK);
    ck_assert(bytes_equal_str(text, expected));
    ck_assert_uint_eq(errors.count, 0);
    mem_free(mem, (void *)text.data);
}

static void
assert_refused(const struct text_file *file, const char *why)
{
    struct bytes text;

    ck_assert_int_eq(text_file_read(file, mem, &text, &errors), ST_BAD_VALUE);
    ck_assert_uint_eq(errors.count, 1);
    ck_assert_msg(strstr(errors.last, why) != NULL, "%s", errors.last);
}

TEST_CASE("text_file", .setup = make_directory, .teardown = remove_directory);

START_TEST(a_file_larger_than_the_maximum_is_refused)
{
    struct text_file file = file_at_path();

    write_file("some words", 0644);
    assert_read(&file, "some words");
    file.most = strlen("some words");
    assert_read(&file, "some words");
    file.most--;
    assert_refused(&file, "is larger than");
}

START_TEST(a_secret_that_other_users_can_access_is_refused)
{
    struct text_file file = file_at_path();

    write_file("secret", 0640);
    file.secret = true;
    assert_read(&file, "secret");
    ck_assert_int_eq(chmod(path, 0641), 0);
    assert_refused(&file, "may be read or written by other users (mode 0641)");
}

START_TEST(the_error_of_an_unreadable_file_names_the_user_and_the_remedy)
{
    const struct text_file file = file_at_path();
    const uid_t self = geteuid();

    write_file("words", 0000);
    if (self == 0) /* root may read everything */
        ck_assert_int_eq(seteuid(65534), 0);
    assert_refused(&file, ": Permission denied for user ");
    ck_assert_int_eq(seteuid(self), 0);
    ck_assert_ptr_nonnull(strstr(errors.last, "chgrp GROUP FILE, chmod 0640 FILE"));
}

START_TEST(a_pipe_is_refused_without_waiting_for_a_writer)
{
    struct text_file file = file_at_path();
    int writer;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    assert_refused(&file, "is a pipe");
    writer = open(path, O_RDWR); /* a writer that writes nothing */
    ck_assert_int_ge(writer, 0);
    errors.count = 0;
    assert_refused(&file, "is a pipe");
    ck_assert_int_eq(close(writer), 0);
}

START_TEST(a_file_that_is_read_once_may_be_a_pipe)
{
    struct text_file file = file_at_path();
    char by_number[32];
    int ends[2];

    write_file("", 0600);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "some words", 10), 10);
    ck_assert_int_eq(close(ends[1]), 0);
    (void)snprintf(by_number, sizeof(by_number), "/dev/fd/%d", ends[0]);
    file.path = by_number;
    assert_refused(&file, "is a pipe");
    errors.count = 0;
    file.once = true;
    assert_read(&file, "some words");
    ck_assert_int_eq(close(ends[0]), 0);
}
