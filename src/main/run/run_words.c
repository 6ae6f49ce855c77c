#include "main/run/run_words.h"

#include "claimd/base/bytes.h"
#include "main/command.h"
#include "main/run/run_server.h"

#include <stdlib.h>
#include <string.h>

/* What every server is started with; options behind these win. */
static const char *const first_words[] = {"claimd",
                                          "--ci",
                                          "--identity-stub",
                                          "--listen",
                                          RUN_SERVER_LISTEN,
                                          "--drain-seconds",
                                          "1",
                                          "--ready-fd",
                                          RUN_SERVER_READY,
                                          "--log-level",
                                          "warn"};

/* Without the last two: what a log in a file has. */
enum {
    FIRST_WORDS = sizeof(first_words) / sizeof(first_words[0]),
    FIRST_WORDS_LOGGED = FIRST_WORDS - 2
};

/*
 * If the word at *at is this option: its value, perhaps the next word, to which *at goes on. *is:
 * it is the option; NULL: it has no value.
 */
static const char *
take(char *const **at, const char *option, bool *is)
{
    const size_t len = strlen(option);
    const char *word = **at;

    *is = strncmp(word, option, len) == 0 && (word[len] == '\0' || word[len] == '=');
    if (!*is)
        return NULL;
    if (word[len] == '=')
        return word + len + 1;
    if ((*at)[1] == NULL || strcmp((*at)[1], "--") == 0)
        return NULL;
    return *++*at;
}

static int
take_instances(const char *value, struct run_words *out)
{
    int64_t count;

    if (!bytes_to_i64(bytes_str(value), &count) || count < 1 ||
        count > RUN_INSTANCES_MOST)
        return command_misused(
            &command_run_tests,
            "--instances is \"%s\". It must be an integer between 1 and %d", value,
            RUN_INSTANCES_MOST);
    out->instances = (size_t)count;
    out->numbered = true;
    return COMMAND_GOOD;
}

/* One word, or two, in front of "--". */
static int
take_word(char *const **at, struct run_words *out)
{
    const char *value;
    bool is;

    value = take(at, "--instances", &is);
    if (is && value != NULL)
        return take_instances(value, out);
    if (is)
        return command_misused(&command_run_tests, "--instances needs a value");
    value = take(at, "--log", &is);
    if (is && value == NULL)
        return command_misused(&command_run_tests, "--log needs a value");
    if (is)
        out->log = value;
    else if (strcmp(**at, "--fail-on-leak") == 0)
        out->fail_on_leak = true;
    else
        out->server[out->server_count++] = **at;
    return COMMAND_GOOD;
}

/* All words, and in front of them room for what comes first. */
static int
take_words(char *const *at, struct run_words *out)
{
    int status = COMMAND_GOOD;

    out->server_count = FIRST_WORDS;
    for (; *at != NULL && strcmp(*at, "--") != 0 && status == COMMAND_GOOD; at++)
        status = take_word(&at, out);
    if (status != COMMAND_GOOD)
        return status;
    if (*at == NULL || at[1] == NULL)
        return command_misused(&command_run_tests, "run needs a command behind --");
    out->command = at + 1;
    return COMMAND_GOOD;
}

static void
put_first_words(struct run_words *out)
{
    const size_t count = out->log == NULL ? FIRST_WORDS : FIRST_WORDS_LOGGED;

    out->server_count -= FIRST_WORDS - count;
    memmove(out->server + count, out->server + FIRST_WORDS,
            (out->server_count - count) * sizeof(*out->server));
    for (size_t i = 0; i < count; i++)
        out->server[i] = (char *)first_words[i]; /* as execv() wants it */
    out->server[out->server_count] = NULL;
}

int
run_words_read(char *const *argv, struct run_words *out)
{
    size_t count = 0;
    int status;

    while (argv[count] != NULL)
        count++;
    *out = (struct run_words){.instances = 1};
    out->server = calloc(FIRST_WORDS + count + 1, sizeof(*out->server));
    if (out->server == NULL)
        return command_fails(COMMAND_FAILED, "out of memory");
    status = take_words(argv, out);
    if (status == COMMAND_GOOD)
        put_first_words(out);
    else
        run_words_free(out);
    return status;
}

void
run_words_free(struct run_words *words)
{
    free(words->server);
    words->server = NULL;
}
