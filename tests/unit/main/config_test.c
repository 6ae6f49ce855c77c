/*
 * How options come from the command line, the environment and a file, which values and
 * combinations are refused, and that one start reports all errors. Read src/main/config.h
 * next.
 */
#include "main/config.h"
#include "main/option.h"
#include "support/check_main.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARGS_MAX = 16 };

/* The sources of a configuration, and the result of config_load(). */
struct loading {
    char *argv[ARGS_MAX];
    char *envp[ARGS_MAX];
    int argc, envc;
    char path[64]; /* of the configuration file; empty: no file */
    struct config config;
    enum config_action action;
    char error[4096]; /* all errors, a line each */
    size_t errors;
};

static void
begin(struct loading *l)
{
    *l = (struct loading){.argc = 1};
    l->argv[0] = (char *)(uintptr_t) "claimd";
}

static void
arg(struct loading *l, const char *text)
{
    ck_assert_int_lt(l->argc, ARGS_MAX - 1);
    l->argv[l->argc++] = (char *)(uintptr_t)text;
}

static void
variable(struct loading *l, const char *text)
{
    ck_assert_int_lt(l->envc, ARGS_MAX - 1);
    l->envp[l->envc++] = (char *)(uintptr_t)text;
}

/* Writes a file and names it on the command line. */
static void
file(struct loading *l, const char *text)
{
    FILE *out;
    int fd;

    (void)snprintf(l->path, sizeof(l->path), "/tmp/claimd-config-XXXXXX");
    fd = mkstemp(l->path);
    ck_assert_int_ge(fd, 0);
    out = fdopen(fd, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs(text, out), 0);
    ck_assert_int_eq(fclose(out), 0);
    arg(l, "--config");
    arg(l, l->path);
}

static enum status
load(struct loading *l)
{
    struct config_errors errors = {.to = fmemopen(l->error, sizeof(l->error), "w")};
    enum status st;

    ck_assert_ptr_nonnull(errors.to);
    st = config_load(l->argc, l->argv, l->envp, &l->config, &l->action, &errors);
    ck_assert_int_eq(fclose(errors.to), 0);
    l->errors = errors.count;
    if (l->path[0] != '\0')
        ck_assert_int_eq(unlink(l->path), 0);
    return st;
}

static void
expect_error(struct loading *l, const char *part)
{
    ck_assert_int_eq(load(l), ST_BAD_VALUE);
    ck_assert_msg(strstr(l->error, part) != NULL, "\"%s\" is not in \"%s\"", part,
                  l->error);
}

/* Begins with these arguments. */
#define begin_with(l, ...) begin_with_all(l, (const char *const[]){__VA_ARGS__, NULL})
static void
begin_with_all(struct loading *l, const char *const *args)
{
    begin(l);
    for (; *args != NULL; args++)
        arg(l, *args);
}

/* Begins with these arguments and loads them. */
#define accept(l, ...)                                                                   \
    do {                                                                                 \
        begin_with(l, __VA_ARGS__);                                                      \
        ck_assert_msg(load(l) == ST_OK, "%s", (l)->error);                               \
    } while (0)

/* A configuration with one source is refused, and its error has this part. */
static void
refuse_argument(struct loading *l, const char *text, const char *part)
{
    begin_with(l, text);
    expect_error(l, part);
}

static void
refuse_variable(struct loading *l, const char *text, const char *part)
{
    begin(l);
    variable(l, text);
    expect_error(l, part);
}

static void
refuse_file(struct loading *l, const char *text, const char *part)
{
    begin(l);
    file(l, text);
    expect_error(l, part);
}

START_TEST(an_empty_configuration_has_the_default_limits)
{
    const struct api_limits want = {
        .max_queues_per_page = 20,
        .max_schedules = 10000,
        .max_messages_per_page = 20,
        .max_messages_per_claim_or_pop = 20,
        .max_subscriptions_per_page = 20,
        .default_subscription_ttl = 3600,
        .subscriber_types = 7,
        .default_page = 10,
        .max_queue_metadata = 65536,
        .max_messages_post_size = 262144,
        .default_message_ttl = 3600,
        .min_message_ttl = 60,
        .max_message_ttl = 1209600,
        .default_message_delay = 0,
        .dead_letter_ttl = 1209600,
        .idempotency_window = 600,
        .max_wait = 45,
        .max_message_delay = 43200,
        .max_release_delay = 43200,
        .default_claim_ttl = 300,
        .min_claim_ttl = 60,
        .max_claim_ttl = 43200,
        .default_claim_grace = 60,
        .min_claim_grace = 60,
        .max_claim_grace = 43200,
        .client_id_strict = true,
        .min_length_client_id = 10,
        .max_length_client_id = 36,
        .message_delete_with_claim_id = false,
        .enable_checksum = false,
        .admin_mode = false,
        .enable_v1 = true,
        .enable_v1_1 = true,
    };
    const struct api_limits *got;
    struct loading l;

    begin(&l);
    ck_assert_int_eq(load(&l), ST_OK);
    got = &l.config.limits;
    ck_assert_int_eq(l.action, ACTION_SERVE);
#define SAME(field) ck_assert_int_eq(got->field, want.field)
/* The list has all numbers, so none is forgotten here. */
#define SAME_NUMBER(name, value) SAME(name);
    API_LIMIT_LIST(SAME_NUMBER)
#undef SAME_NUMBER
    SAME(subscriber_types);
    SAME(client_id_strict);
    SAME(message_delete_with_claim_id);
    SAME(enable_checksum);
    SAME(admin_mode);
    SAME(enable_v1);
    SAME(enable_v1_1);
#undef SAME
    ck_assert_str_eq(l.config.listen, "127.0.0.1:8888");
}

START_TEST(subscriber_types_are_joined_by_commas)
{
    struct loading l;

    accept(&l, "--subscriber-types=https, HTTP");
    ck_assert_uint_eq(l.config.limits.subscriber_types, 3);
    accept(&l, "--subscriber-types=mailto");
    ck_assert_uint_eq(l.config.limits.subscriber_types, 4);
    refuse_argument(&l, "--subscriber-types=http,",
                    "must be some of http|https|mailto, joined by commas");
    refuse_argument(&l, "--subscriber-types=http,trust+http",
                    "must be some of http|https|mailto, joined by commas");
}

START_TEST(arguments_override_variables_and_variables_the_file)
{
    struct loading l;

    begin(&l);
    file(&l, "max_claim_ttl = 1001\nmax_claim_grace = 1001\nmax_message_delay = 1001\n");
    variable(&l, "CLAIMD_MAX_CLAIM_TTL=1002");
    variable(&l, "CLAIMD_MAX_CLAIM_GRACE=1002");
    arg(&l, "--max-claim-ttl");
    arg(&l, "1003");
    ck_assert_int_eq(load(&l), ST_OK);
    ck_assert_int_eq(l.config.limits.max_claim_ttl, 1003);
    ck_assert_int_eq(l.config.limits.max_claim_grace, 1002);
    ck_assert_int_eq(l.config.limits.max_message_delay, 1001);
    ck_assert_int_eq(l.config.limits.max_message_ttl, 1209600);
}

START_TEST(the_last_of_two_arguments_counts)
{
    struct loading l;

    accept(&l, "--workers=3", "--workers=4");
    ck_assert_int_eq(l.config.workers, 4);
}

START_TEST(a_boolean_option_may_have_a_value)
{
    struct loading l;

    accept(&l, "--admin-mode", "--enable-v1=no", "--client-id-uuid-safe", "off");
    ck_assert(l.config.limits.admin_mode);
    ck_assert(!l.config.limits.enable_v1);
    ck_assert(!l.config.limits.client_id_strict);

    begin(&l);
    arg(&l, "--enable-v1");
    arg(&l, "false");
    arg(&l, "--enable-v1-1");
    arg(&l, "OFF");
    arg(&l, "--admin-mode");
    arg(&l, "true");
    arg(&l, "--access-log");
    arg(&l, "--workers");
    arg(&l, "1"); /* the value of --workers, not of --access-log */
    ck_assert_msg(load(&l) == ST_OK, "%s", l.error);
    ck_assert(!l.config.limits.enable_v1);
    ck_assert(!l.config.limits.enable_v1_1);
    ck_assert(l.config.limits.admin_mode);
    ck_assert(l.config.access_log);
    ck_assert_int_eq(l.config.workers, 1);

    begin_with(&l, "--admin-mode=false", "true");
    expect_error(&l, "true is not an option");
    begin_with(&l, "--admin-mode", "maybe");
    expect_error(&l, "maybe is not an option");
    accept(&l, "--enable-v1", "false", "--help");
    ck_assert_int_eq(l.action, ACTION_HELP);
}

START_TEST(the_environment_can_name_the_file)
{
    char text[128];
    struct loading l;

    begin(&l);
    file(&l, "[claimd]\nworkers = 7\n");
    l.argc = 1; /* not on the command line after all */
    (void)snprintf(text, sizeof(text), "CLAIMD_CONFIG=%s", l.path);
    variable(&l, text);
    variable(&l, "HOME=/root");
    ck_assert_int_eq(load(&l), ST_OK);
    ck_assert_int_eq(l.config.workers, 7);
}

START_TEST(an_unknown_option_is_an_error_in_every_source)
{
    struct loading l;

    refuse_file(&l, "# a comment\n\n[claimd]\nworkrs = 7\n",
                ":4: workrs is not an option");
    refuse_variable(&l, "CLAIMD_WORKRS=7",
                    "CLAIMD_WORKRS is not an option. Variables that begin with CLAIMD_ "
                    "set options. Rename or unset it");
    refuse_argument(&l, "--workrs=7", "--workrs is not an option");
    refuse_argument(&l, "--max_claim_ttl=70", "--max_claim_ttl is not an option");
    refuse_argument(&l, "7", "7 is not an option");
}

START_TEST(variables_of_clients_are_not_options)
{
    struct loading l;

    begin(&l);
    variable(&l, "CLAIMD_URL=http://127.0.0.1:1");
    variable(&l, "CLAIMD_URL_2=http://127.0.0.1:2");
    variable(&l, "CLAIMD_TOKEN=secret");
    variable(&l, "CLAIMD_BINARY=/usr/bin/claimd");
    ck_assert_int_eq(load(&l), ST_OK);
}

START_TEST(variables_of_services_are_not_options)
{
    static const char *const good[] = {
        "CLAIMD_SERVICE_HOST=10.0.0.1",
        "CLAIMD_SERVICE_PORT=8888",
        "CLAIMD_SERVICE_PORT_HTTP=8888",
        "CLAIMD_PORT=tcp://10.0.0.1:8888",
        "CLAIMD_PORT_8888_TCP=tcp://10.0.0.1:8888",
        "CLAIMD_PORT_8888_TCP_PROTO=tcp",
        "CLAIMD_PORT_8888_TCP_PORT=8888",
        "CLAIMD_PORT_8888_TCP_ADDR=10.0.0.1",
        /* Of a service called claimd-metrics. */
        "CLAIMD_METRICS_SERVICE_HOST=10.0.0.2",
        "CLAIMD_METRICS_SERVICE_PORT=9188",
        "CLAIMD_METRICS_PORT=tcp://10.0.0.2:9188",
        "CLAIMD_METRICS_PORT_9188_TCP_ADDR=10.0.0.2",
    };
    static const char *const bad[] = {"CLAIMD_PORTS=1", "CLAIMD_PORT_=1",
                                      "CLAIMD_SUPPORT=1", "CLAIMD_PORT_NAME=1",
                                      "CLAIMD_SERVICE=1"};
    struct loading l;

    begin(&l);
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        variable(&l, good[i]);
    ck_assert_int_eq(load(&l), ST_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        begin(&l);
        variable(&l, bad[i]);
        expect_error(&l, " is not an option. Variables that begin with CLAIMD_ ");
    }
    for (size_t i = 0; i < option_count; i++) {
        char text[200];

        ck_assert_ptr_null(strstr(options[i].name, "service_"));
        (void)snprintf(text, sizeof(text), "_%s_", options[i].name);
        ck_assert_msg(strstr(text, "_port_") == NULL, "%s", options[i].name);
    }
}

START_TEST(the_error_of_a_bad_value_names_its_source)
{
    struct loading l;

    refuse_file(&l, "workers = 7\nshards = \n",
                ":2: shards must be a whole number, 1 to 1024 (received \"\")");
    refuse_variable(&l, "CLAIMD_LOG_FORMAT=xml",
                    "claimd: environment: CLAIMD_LOG_FORMAT must be one of text|json "
                    "(received \"xml\")");
    refuse_argument(
        &l, "--max-claim-ttl=0",
        "claimd: command line: --max-claim-ttl must be 1 to 31536000 (received \"0\")");
    refuse_argument(&l, "--workers", "claimd: command line: --workers needs a value");
    refuse_argument(&l, "--max-memory=much",
                    "--max-memory must be half or a number of bytes (such as 262144 or "
                    "256K), at least 0 (received \"much\")");
    refuse_argument(
        &l, "--socket-mode=rw",
        "--socket-mode must be octal permissions from 0 to 0777, such as 0660 "
        "(received \"rw\")");
    refuse_argument(&l, "--subscriber-types=fax", "joined by commas (received \"fax\")");
    refuse_variable(&l, "CLAIMD_LISTEN=nonsense", "unix:PATH, not \"nonsense\"\n");
    refuse_file(&l, "enable_v1 = maybe\n",
                ":1: enable_v1 must be one of false|true (received \"maybe\")\n");
    refuse_file(&l, "enable_v1 = true # as before\n",
                "(received \"true # as before\"). A comment after a value must begin "
                "with ;\n");
}

START_TEST(a_file_must_not_set_an_option_twice)
{
    struct loading l;

    refuse_file(&l, "workers = 7\n\nworkers = 8\n",
                ":3: workers is set a second time, first in line 1\n");
    begin(&l);
    file(&l, "workers = 7\n  8\n"); /* inih takes this for a second value */
    expect_error(&l, ":2: workers is set a second time");
}

START_TEST(a_broken_file_is_an_error)
{
    struct loading l;

    refuse_file(&l, "workers = 7\nno value\nshards = 1\n", ":2: ");
    refuse_file(&l, "[other]\nworkers = 7\n", ":1: other is not a section");
    refuse_argument(&l, "--config=/nowhere/at/all", "/nowhere/at/all: ");
}

/* Reading a device or a pipe might never end. */
START_TEST(only_a_regular_file_of_at_most_1_mb_is_read)
{
    static char large[(1 << 20) + 2];
    char path[] = "/tmp/claimd-config-XXXXXX", pipe[64];
    struct loading l;

    refuse_argument(&l, "--config=/dev/zero",
                    "/dev/zero: is a device or a socket. --config takes a regular file");
    refuse_argument(&l, "--config=/tmp",
                    "/tmp: is a directory. --config takes a regular file");
    ck_assert_ptr_nonnull(mkdtemp(path));
    (void)snprintf(pipe, sizeof(pipe), "%s/pipe", path);
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    begin_with(&l, "--config", pipe);
    expect_error(&l, "/pipe: is a pipe. --config takes a regular file");
    ck_assert_int_eq(unlink(pipe), 0);
    ck_assert_int_eq(rmdir(path), 0);
    memset(large, '\n', sizeof(large) - 1);
    refuse_file(&l, large, "is larger than 1048576 bytes, the maximum");
    ck_assert_uint_eq(l.errors, 1);
    large[1 << 20] = '\0';
    begin(&l);
    file(&l, large);
    ck_assert_msg(load(&l) == ST_OK, "%s", l.error);
}

START_TEST(limits_must_not_contradict_each_other)
{
    struct loading l;

    refuse_file(&l, "max_claim_ttl = 100\n",
                "default_claim_ttl (300, default) is more than max_claim_ttl "
                "(100, /tmp/claimd-config-");
    begin_with(&l, "--default-message-ttl=900", "--default-message-delay=900");
    expect_error(&l, "default_message_delay (900, command line) must be less than "
                     "default_message_ttl (900, command line)");
    refuse_argument(&l, "--min-length-client-id=37", "min_length_client_id");
    refuse_argument(&l, "--shards=24", "shards must be a power of two");
}

START_TEST(a_post_must_fit_into_a_frame_of_the_journal)
{
    struct loading l;

    begin_with(&l, "--journal=somewhere");
    file(&l, "max_messages_post_size = 8388609\n");
    expect_error(&l,
                 "max_messages_post_size must be at most 8M with a journal, not 8388609 "
                 "(/tmp/claimd-config-");
    accept(&l, "--journal=somewhere", "--max-messages-post-size=8M");
    accept(&l, "--max-messages-post-size=64M");
}

START_TEST(journal_max_bytes_has_a_minimum)
{
    struct loading l;

    begin_with(&l, "--journal=somewhere");
    file(&l, "journal_max_bytes = 33554431\n");
    expect_error(&l, "journal_max_bytes is 33554431 bytes (/tmp/claimd-config-");
    ck_assert_ptr_nonnull(strstr(l.error, ":1). It must be 0 or at least 32M\n"));
    begin(&l);
    arg(&l, "--journal-max-bytes=1"); /* also without a journal */
    expect_error(&l, "journal_max_bytes is 1 byte (command line). It must be 0 or at "
                     "least 32M. Did you mean 1G?");
    ck_assert_uint_eq(l.errors, 1);
    accept(&l, "--journal=somewhere", "--journal-max-bytes=32M");
    ck_assert_int_eq(l.config.journal_max_bytes, 32 << 20);
    accept(&l, "--journal=somewhere", "--journal-max-bytes=0");
}

START_TEST(sizes_have_suffixes_and_bounds)
{
    static const struct {
        const char *text;
        int64_t size; /* -1: an error */
    } rows[] = {
        {"--max-memory=0", 0},
        {"--max-memory=1048576", 1048576},
        {"--max-memory=1048575", -1},
        {"--max-memory=1024k", 1024 * 1024},
        {"--max-memory=512M", 512 * 1024 * 1024},
        {"--max-memory=2G", INT64_C(2) << 30},
        {"--max-memory=8388607T", INT64_C(8388607) << 40},
        {"--max-memory=8388608T", -1},
        {"--max-memory=-1", -1},
        {"--max-memory=-1K", -1},
        {"--max-memory=M", -1},
        {"--max-memory=1.5G", -1},
        {"--max-memory=1GB", -1},
        {"--max-memory=", -1},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct loading l;

        begin_with(&l, rows[i].text);
        ck_assert_msg(load(&l) == (rows[i].size < 0 ? ST_BAD_VALUE : ST_OK), "%s: %s",
                      rows[i].text, l.error);
        if (rows[i].size >= 0)
            ck_assert_int_eq(l.config.max_memory, rows[i].size);
    }
}

START_TEST(a_size_that_lacks_its_suffix_is_refused)
{
    static const struct {
        const char *text, *error; /* NULL: fine */
    } rows[] = {
        {"--max-memory=2",
         "claimd: max_memory is 2 bytes (command line). It must be 0 or "
         "at least 1M. Did you mean 2G?\n"},
        {"--max-memory=512", "at least 1M. Did you mean 512M?\n"},
        {"--max-memory=3k", "max_memory is 3072 bytes (command line). It must be 0 or at "
                            "least 1M\n"},
        {"--project-max-bytes=1023", "It must be 0 or at least 1K. Did you mean 1023M?"},
        {"--project-max-bytes=1K", NULL},
        {"--subscription-backlog=64", "It must be 0 or at least 1K. Did you mean 64M?"},
        {"--subscription-backlog=0", NULL},
        {"--max-messages-post-size=4", "must be 256 to 67108864 bytes (received \"4\")"},
        {"--max-queue-metadata=64", "must be 256 to 67108864 bytes (received \"64\")"},
        {"--max-queue-metadata=256", NULL},
        {"--max-header-size=16", "must be 1024 to 1048576 bytes (received \"16\")"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct loading l;

        begin_with(&l, rows[i].text);
        if (rows[i].error != NULL)
            expect_error(&l, rows[i].error);
        else
            ck_assert_msg(load(&l) == ST_OK, "%s: %s", rows[i].text, l.error);
    }
}

START_TEST(a_printed_configuration_reads_back_as_it_was)
{
    struct loading l, again;
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(out);
    accept(&l, "--max-memory=1536M", "--listen=unix:/run/claimd.sock", "--socket-mode=70",
           "--access-log", "--log-level=debug");
    config_print(&l.config, out);
    ck_assert_int_eq(fclose(out), 0);
    begin(&again);
    file(&again, text);
    ck_assert_msg(load(&again) == ST_OK, "%s", again.error);
    ck_assert_int_eq(again.config.max_memory, INT64_C(1536) << 20);
    ck_assert_str_eq(again.config.listen, "unix:/run/claimd.sock");
    ck_assert_int_eq(again.config.socket_mode, 070);
    ck_assert_int_eq(again.config.log_level, l.config.log_level);
    ck_assert(again.config.access_log);
    free(text);
}

START_TEST(help_comes_before_the_errors_behind_it)
{
    struct loading l;

    accept(&l, "--help", "--nonsense");
    ck_assert_int_eq(l.action, ACTION_HELP);
}

START_TEST(every_option_has_a_name_of_its_own_and_a_default_within_its_bounds)
{
    for (size_t i = 0; i < option_count; i++) {
        struct config config;
        char why[CONFIG_ERROR_CAP], initial[CONFIG_TEXT_CAP] = "";
        FILE *to = fmemopen(initial, sizeof(initial), "w");

        ck_assert_ptr_nonnull(to);
        option_print_default(&options[i], to);
        ck_assert_int_eq(fclose(to), 0);
        ck_assert_ptr_eq(option_find(bytes_str(options[i].name)), &options[i]);
        ck_assert_int_eq(option_set(&options[i], &config, bytes_str(initial), why),
                         ST_OK);
    }
    ck_assert_ptr_null(option_find(bytes_str("config")));
}

START_TEST(a_profile_sets_options_that_no_source_has_set)
{
    struct loading l;

    begin(&l);
    variable(&l, "CLAIMD_PROFILE=rackspace");
    variable(&l, "CLAIMD_MAX_QUEUES_PER_PAGE=20");
    ck_assert_int_eq(load(&l), ST_OK);
    ck_assert_int_eq(l.config.limits.max_messages_per_claim_or_pop, 100);
    ck_assert_int_eq(l.config.limits.max_queues_per_page, 20);
    ck_assert_int_eq(l.config.limits.max_messages_per_page, 20);
    ck_assert(!l.config.limits.client_id_strict);
    ck_assert_int_eq(l.config.limits.min_length_client_id, 1);
    ck_assert_int_eq(l.config.limits.max_length_client_id, 1024);

    accept(&l, "--profile=rackspace", "--profile=zaqar");
    ck_assert_int_eq(l.config.limits.max_messages_per_claim_or_pop, 20);
    ck_assert(l.config.limits.client_id_strict);
}

/* The TTL of messages without one, and where it comes from. */
#define ck_default_ttl(seconds, place)                                                   \
    do {                                                                                 \
        const struct config_place where = config_where(&l.config, ttl);                  \
                                                                                         \
        ck_assert_int_eq(l.config.limits.default_message_ttl, seconds);                  \
        ck_assert_str_eq(where.text, place);                                             \
    } while (0)

START_TEST(messages_of_a_durable_store_live_for_two_weeks)
{
    const struct option *ttl = option_find(bytes_str("default_message_ttl"));
    struct loading l;

    accept(&l, "--shards=8");
    ck_default_ttl(3600, "default");
    accept(&l, "--journal=/j");
    ck_default_ttl(1209600, "default with a journal");
    accept(&l, "--store=redis://r:1");
    ck_default_ttl(1209600, "default with a store on Redis");
    accept(&l, "--journal=/j", "--max-message-ttl=86400");
    ck_default_ttl(86400, "default with a journal");
    accept(&l, "--journal=/j", "--max-message-ttl=2000000");
    ck_default_ttl(1209600, "default with a journal");
    accept(&l, "--journal=/j", "--ci");
    ck_default_ttl(3600, "default");
    accept(&l, "--journal=/j", "--journal=none");
    ck_default_ttl(3600, "default");
    ck_assert_str_eq(option_durable_default(ttl), "1209600");
    ck_assert_str_eq(option_durable_default(options), "");
}

START_TEST(a_ttl_that_is_set_wins_over_that_of_a_durable_store)
{
    const struct option *ttl = option_find(bytes_str("default_message_ttl"));
    struct loading l;

    accept(&l, "--journal=/j", "--default-message-ttl=3600");
    ck_default_ttl(3600, "command line");
    begin_with(&l, "--journal=/j");
    variable(&l, "CLAIMD_DEFAULT_MESSAGE_TTL=900");
    ck_assert_int_eq(load(&l), ST_OK);
    ck_default_ttl(900, "environment");
    begin(&l);
    file(&l, "journal = /j\ndefault_message_ttl = 600\n");
    ck_assert_int_eq(load(&l), ST_OK);
    ck_assert_int_eq(l.config.limits.default_message_ttl, 600);
    begin_with(&l, "--journal=/j", "--max-message-ttl=600", "--default-message-ttl=900");
    expect_error(&l, "default_message_ttl (900, command line) is more than");
}

START_TEST(the_identity_stub_stays_on_the_loopback_unless_forced)
{
    static const char *const near[] = {"--listen=127.0.0.1:0", "--listen=127.1.2.3:1",
                                       "--listen=127.1:80",    "--listen=[::1]:80",
                                       "--listen=localhost:1", "--listen=unix:/x"};
    static const char *const far[] = {
        "--listen=0.0.0.0:0",         "--listen=[::]:80",
        "--listen=192.168.127.1:1",   "--listen=localhost.example:1",
        "--listen=127.example.org:1", "--listen=127.0.0.1.example.org:1",
        "--listen=127.0.0.1:1,[::]:2"};
    struct loading l;

    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
        accept(&l, near[i], "--identity-stub");
    }
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        begin_with(&l, far[i], "--identity-stub");
        expect_error(&l, "identity_stub_anywhere");
        arg(&l, "--identity-stub-anywhere");
        ck_assert_int_eq(load(&l), ST_OK);
    }
}

START_TEST(ci_needs_a_loopback_listener_unless_forced)
{
    static const char *const far[] = {"--listen=0.0.0.0:0", "--listen=queues.example:1",
                                      "--listen=unix:/x, metrics:[::]:2"};
    struct loading l;

    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        begin_with(&l, far[i], "--ci", "--insecure-listen");
        expect_error(&l, "ci lets every client move the clock and delete everything");
        arg(&l, "--ci-anywhere");
        ck_assert_msg(load(&l) == ST_OK, "%s", l.error);
        ck_assert(l.config.ci_anywhere);
        begin_with(&l, far[i]);
        arg(&l, "--ci"); /* without --insecure-listen */
        arg(&l, "--ci-anywhere");
        ck_assert_msg(load(&l) == ST_OK, "%s", l.error);
    }
    refuse_argument(&l, "--ci-anywhere", "ci_anywhere has no effect without ci");
    accept(&l, "--listen=unix:/x, [::1]:80", "--ci");
    ck_assert(l.config.ci);
}

START_TEST(ci_short_lowers_the_minimum_times)
{
    struct loading l;

    refuse_argument(&l, "--ci-short", "ci_short has no effect without ci");
    arg(&l, "--ci");
    arg(&l, "--min-claim-ttl=30");
    ck_assert_int_eq(load(&l), ST_OK);
    ck_assert_int_eq(l.config.limits.min_message_ttl, 1);
    ck_assert_int_eq(l.config.limits.min_claim_ttl, 30);
    ck_assert_int_eq(l.config.limits.min_claim_grace, 1);
}

START_TEST(open_listeners_need_auth_or_insecure_listen)
{
    static const char *const far[] = {
        "--listen=0.0.0.0:0",
        "--listen=[::]:80",
        "--listen=queues.example:1",
        "--listen=127.0.0.1:1, 0.0.0.0:2",
        "--listen=unix:/x, 127.0.0.1:1, metrics:0.0.0.0:2",
    };
    struct loading l;

    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        refuse_argument(&l, far[i], "every client that reaches");
        accept(&l, far[i], "--insecure-listen");
        accept(&l, far[i], "--auth=tokens");
    }
    accept(&l, "--listen=unix:/run/claimd, 127.0.0.1:80, metrics:[::1]:90");
}

START_TEST(the_page_needs_auth_or_a_loopback_listener)
{
    struct loading l;

    begin_with(&l, "--listen=0.0.0.0:80", "--ui", "--insecure-listen");
    expect_error(&l, "ui lets every client that reaches 0.0.0.0:80");
    accept(&l, "--listen=0.0.0.0:80", "--ui", "--auth=tokens");
    ck_assert(l.config.limits.ui);
    /* A listener for metrics does not serve the page. */
    accept(&l, "--listen=127.0.0.1:80, metrics:0.0.0.0:90", "--ui", "--insecure-listen");
}

START_TEST(allowed_hosts_are_names)
{
    struct loading l;

    accept(&l, "--allowed-hosts=mq.example.org, host.docker.internal");
    refuse_argument(&l, "--allowed-hosts=mq.example.org:8888",
                    "allowed_hosts must be names without ports, joined by commas, not "
                    "\"mq.example.org:8888\" (command line)");
}

START_TEST(trusted_proxies_are_addresses)
{
    struct loading l;

    accept(&l, "--trusted-proxies=10.0.0.0/8, ::1,unix");
    accept(&l, "--trusted-proxies=none");
    refuse_argument(&l, "--trusted-proxies=127.0.0.1,nginx",
                    "trusted_proxies (command line) has \"nginx\", but each item must be "
                    "ADDRESS, ADDRESS/BITS or unix");
}

START_TEST(identity_stub_and_auth_exclude_each_other)
{
    struct loading l;

    begin_with(&l, "--auth=tokens", "--identity-stub");
    expect_error(&l, "identity_stub and auth cannot be used together");
}

START_TEST(one_start_reports_all_errors)
{
    static const char *const expected[] = {
        ":2: workers must be 0 to 128",
        ":3: workrs is not an option",
        ":4: this is neither a key",
        ":5: shards is set a second time",
        ":6: the line is too long",
        ":7: this is neither a key",
        ":8: this is neither a key",
        ":9: other is not a section",
        ":10: idle_seconds must be",
        ":12: max_memory must be",
        "CLAIMD_LOG_LEVEL must be one of",
        "CLAIMD_NONSENSE is not an option",
        "--max-claim-ttl must be",
        "--nonsense is not an option",
        "7 is not an option",
        "min_message_ttl (4000, command line) is more than default_message_ttl",
        "min_claim_grace (61, environment) is more than default_claim_grace",
        "shards must be a power of two, not 3 (/tmp/claimd-config-",
        "--drain-seconds needs a value",
    };
    char text[1024];
    struct loading l;

    begin(&l);
    (void)snprintf(text, sizeof(text),
                   "shards = 3\nworkers = 129\nworkrs = 7\nnonsense\nshards = 4\n"
                   "listen = %0300d\n[broken = 1\nagain\n[other]\nidle_seconds = x\n"
                   "[claimd]\nmax_memory = much\n; end\n",
                   0);
    file(&l, text);
    variable(&l, "CLAIMD_LOG_LEVEL=loud");
    variable(&l, "CLAIMD_NONSENSE=1");
    variable(&l, "CLAIMD_MIN_CLAIM_GRACE=61");
    arg(&l, "--max-claim-ttl=soon"); /* therefore no error about default_claim_ttl */
    arg(&l, "--nonsense");
    arg(&l, "7");
    arg(&l, "--min-message-ttl=4000");
    arg(&l, "--default-claim-ttl=43201");
    arg(&l, "--drain-seconds");
    ck_assert_int_eq(load(&l), ST_BAD_VALUE);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        ck_assert_msg(strstr(l.error, expected[i]) != NULL, "\"%s\" is not in\n%s",
                      expected[i], l.error);
    ck_assert_msg(l.errors == sizeof(expected) / sizeof(expected[0]), "%zu:\n%s",
                  l.errors, l.error);
}

START_TEST(an_unreadable_value_does_not_hide_other_errors)
{
    struct loading l;

    begin(&l);
    arg(&l, "--config=/nowhere/at/all");
    arg(&l, "--workers=many");
    arg(&l, "--max-claim-ttl=100"); /* not an error: the file may set the others */
    ck_assert_int_eq(load(&l), ST_BAD_VALUE);
    ck_assert_uint_eq(l.errors, 2);
    ck_assert_ptr_nonnull(strstr(l.error, "/nowhere/at/all: "));
    ck_assert_ptr_nonnull(strstr(l.error, "--workers "));
}

START_TEST(an_error_is_one_line_for_any_value)
{
    struct loading l;

    begin_with(&l, "--lis\nten\033=1");
    ck_assert_int_eq(load(&l), ST_BAD_VALUE);
    ck_assert_str_eq(l.error, "claimd: command line: --lis?ten? is not an option (did "
                              "you mean the option listen?). See claimd --help all\n");
}

START_TEST(a_bad_address_to_listen_on_is_an_error_of_its_source)
{
    struct loading l;

    refuse_file(&l, "\nlisten = 127.0.0.1:74424\n",
                ":2: listen must have a port from 0 to 65535 after the last colon");
    refuse_variable(&l, "CLAIMD_LISTEN=nonsense",
                    "CLAIMD_LISTEN must be ADDRESS:PORT, [IPv6]:PORT or unix:PATH");
    refuse_argument(
        &l, "--listen=unix:", "--listen must have a path of 1 to 107 bytes after unix:");
    accept(&l, "--listen=not-looked-up.invalid:65535", "--insecure-listen");
}

START_TEST(permissions_are_octal)
{
    static const struct {
        const char *text;
        int64_t mode; /* -1: an error */
    } rows[] = {
        {"--socket-mode=0660", 0660}, {"--socket-mode=660", 0660},
        {"--socket-mode=0", 0},       {"--socket-mode=777", 0777},
        {"--socket-mode=1000", -1},   {"--socket-mode=668", -1},
        {"--socket-mode=00660", -1},  {"--socket-mode=-1", -1},
        {"--socket-mode=", -1},       {"--socket-mode=0x1", -1},
        {"--socket-mode=rw", -1},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct loading l;

        begin_with(&l, rows[i].text);
        if (rows[i].mode < 0) {
            expect_error(&l, "--socket-mode must be octal permissions from 0 to 0777");
        } else {
            ck_assert_int_eq(load(&l), ST_OK);
            ck_assert_int_eq(l.config.socket_mode, rows[i].mode);
        }
    }
}

START_TEST(a_file_may_begin_with_a_byte_order_mark_and_end_without_a_newline)
{
    struct loading l;

    begin(&l);
    file(&l, "\xEF\xBB\xBF# comment\n\n [claimd] \nworkers: 7\nshards = 4");
    ck_assert_msg(load(&l) == ST_OK, "%s", l.error);
    ck_assert_int_eq(l.config.workers, 7);
    ck_assert_int_eq(l.config.shards, 4);
}
