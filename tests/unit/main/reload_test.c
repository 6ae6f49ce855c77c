/*
 * SIGHUP changes the live options, names the others that wait for a restart, and changes
 * nothing if the file has an error. Read src/main/config.h next.
 */
#include "main/config.h"
#include "main/option.h"
#include "support/check_main.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 4 };

/* A configuration in force, and the file from which it came. */
struct fixture {
    char path[64];
    char *argv[4], *envp[ENVIRONMENT_MAX];
    struct config now;
    struct config_errors errors;
    struct reload r;
};

static struct fixture f;

static void
write_file(const char *text)
{
    FILE *out = fopen(f.path, "we");

    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs(text, out), 0);
    ck_assert_int_eq(fclose(out), 0);
}

static void
fixture_open(const char *text)
{
    enum config_action action;
    int fd;

    memset(&f, 0, sizeof(f));
    (void)snprintf(f.path, sizeof(f.path), "/tmp/claimd-reload-XXXXXX");
    fd = mkstemp(f.path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd); /* nothing was written */
    write_file(text);
    f.argv[0] = (char *)(uintptr_t) "claimd";
    f.argv[1] = (char *)(uintptr_t) "--config";
    f.argv[2] = f.path;
    ck_assert_int_eq(config_load(3, f.argv, f.envp, &f.now, &action, &f.errors), ST_OK);
}

static void
fixture_close(void)
{
    (void)unlink(f.path); /* a test may have done so */
}

static enum status
again(const char *text)
{
    write_file(text);
    f.errors.count = 0;
    return reload_read(&f.r, &f.now, &f.errors);
}

static void
expect_error(const char *part)
{
    ck_assert_msg(strstr(f.errors.last, part) != NULL, "\"%s\" is not in \"%s\"", part,
                  f.errors.last);
}

START_TEST(unchanged_options_change_nothing)
{
    fixture_open("log_level = warn\nshards = 8\nmax_memory = half\nlisten = [::1]:0\n");
    ck_assert_int_eq(reload_read(&f.r, &f.now, &f.errors), ST_OK);
    ck_assert_uint_eq(f.r.changed, 0);
    ck_assert_uint_eq(f.r.kept_count, 0);
    ck_assert_int_eq(again("# a remark\nshards = 0008\nlisten = [::1]:0\n"
                           "log_level = WARN\n"),
                     ST_OK);
    ck_assert_uint_eq(f.r.changed, 0);
    ck_assert_uint_eq(f.r.kept_count, 0);
    fixture_close();
}

START_TEST(live_options_change_and_others_wait_for_a_restart)
{
    fixture_open("tokens = /a/longer/path\nlisten = [::1]:0\n");
    ck_assert_int_eq(again("tokens = /b\nproject_max_bytes = 1M\naccess_log = on\n"
                           "listen = 127.0.0.1:0\nshards = 32\nlog_format = json\n"),
                     ST_OK);
    ck_assert_uint_eq(f.r.changed, 3);
    ck_assert_uint_eq(f.r.kept_count, 3);
    ck_assert_str_eq(f.r.kept[0]->name, "listen");
    ck_assert_str_eq(f.r.kept[1]->name, "shards");
    ck_assert_str_eq(f.r.kept[2]->name, "log_format");
    reload_apply(&f.r, &f.now);
    ck_assert_str_eq(f.now.tokens, "/b");
    ck_assert_int_eq(f.now.project_limits.bytes, 1 << 20);
    ck_assert(f.now.access_log);
    ck_assert_str_eq(f.now.listen, "[::1]:0");
    ck_assert_int_eq(f.now.shards, 16);
    ck_assert_int_eq(f.now.log_format, 0);
    fixture_close();
}

/* The TTL of messages changes with the journal, so both wait for the restart. */
START_TEST(a_reload_keeps_the_ttl_of_the_store_that_is_open)
{
    fixture_open("journal = /j\n");
    ck_assert_int_eq(again("journal = none\naccess_log = on\n"), ST_OK);
    ck_assert_uint_eq(f.r.changed, 1);
    ck_assert_uint_eq(f.r.kept_count, 2);
    ck_assert_str_eq(f.r.kept[0]->name, "journal");
    ck_assert_str_eq(f.r.kept[1]->name, "default_message_ttl");
    reload_apply(&f.r, &f.now);
    ck_assert(f.now.access_log);
    ck_assert_int_eq(f.now.limits.default_message_ttl, 1209600);
    ck_assert_int_eq(again("journal = /j\n"), ST_OK);
    ck_assert_uint_eq(f.r.kept_count, 0);
    fixture_close();
}

START_TEST(an_option_that_left_the_file_has_its_default_again)
{
    fixture_open("project_max_queues = 7\nlog_level = error\n");
    ck_assert_int_eq(again(""), ST_OK);
    ck_assert_uint_eq(f.r.changed, 2);
    reload_apply(&f.r, &f.now);
    ck_assert_int_eq(f.now.project_limits.queues, 0);
    ck_assert_int_eq(f.now.log_level, 2);
    fixture_close();
}

START_TEST(environment_and_command_line_still_override_the_file)
{
    fixture_open("drain_seconds = 1\n");
    f.envp[0] = (char *)(uintptr_t) "CLAIMD_DRAIN_SECONDS=5";
    ck_assert_int_eq(again("drain_seconds = 2\n"), ST_OK);
    ck_assert_int_eq(f.r.next.drain_seconds, 5);
    fixture_close();
}

START_TEST(the_error_of_a_broken_file_names_its_line)
{
    fixture_open("drain_seconds = 1\n");
    ck_assert_int_eq(again("drain_seconds = 2\nshards = many\n"), ST_BAD_VALUE);
    expect_error(":2: shards must be a whole number");
    ck_assert_int_eq(again("shards = 3\n"), ST_BAD_VALUE);
    expect_error("shards must be a power of two");
    ck_assert_int_eq(f.now.drain_seconds, 1);
    fixture_close();
}

START_TEST(a_missing_file_and_a_pipe_are_errors_of_a_reload)
{
    fixture_open("");
    ck_assert_int_eq(unlink(f.path), 0);
    ck_assert_int_eq(reload_read(&f.r, &f.now, &f.errors), ST_BAD_VALUE);
    expect_error("No such file");
    ck_assert_int_eq(mkfifo(f.path, 0600), 0);
    ck_assert_int_eq(reload_read(&f.r, &f.now, &f.errors), ST_BAD_VALUE);
    expect_error("is a pipe. --config takes a regular file");
    fixture_close();
}

START_TEST(live_options_must_fit_those_that_stay)
{
    fixture_open("auth = tokens\ntls_client_ca = /ca\ncertificates = /c\n");
    ck_assert_int_eq(again("auth = tokens\n"), ST_BAD_VALUE);
    expect_error("tls_client_ca has no effect without certificates");
    ck_assert_int_eq(again("auth = tokens\ntls_client_ca = /ca2\ncertificates = /c2\n"),
                     ST_OK);
    ck_assert_uint_eq(f.r.changed, 1);
    ck_assert_uint_eq(f.r.kept_count, 1);
    ck_assert_str_eq(f.r.next.tls_client_ca, "/ca");
    fixture_close();
}
