/*
 * Headers and names that identify the client, the project and the queue.
 *
 * Input: sections Accept, Client-ID, X-Project-ID, queue name, Content-Type,
 * Claimd-Fault.
 */
#include "fuzz/fuzz.h"

#include "api/caller.h"
#include "api/testapi/handlers.h"
#include "claimd/testapi/testapi.h"

enum { ACCEPT, CLIENT_ID, PROJECT, QUEUE, CONTENT_TYPE, FAULT, SECTIONS };

/* The same UUID in capitals without hyphens is the same client. */
static void
check_spellings(struct bytes text)
{
    uint64_t client, same;
    char digits[32], upper[45] = "urn:uuid:{";
    size_t len = 0;

    if (caller_client(text, &api_limits_default, &client) != ST_OK)
        return;
    /* Of prefix and digits together: the last 32 are those of the UUID. */
    for (size_t i = text.len; i-- > 0 && len < sizeof(digits);)
        if (hex_value(text.data[i]) >= 0)
            digits[sizeof(digits) - ++len] = text.data[i];
    fuzz_check(len == sizeof(digits), "a UUID of %zu digits", len);
    for (size_t i = 0; i < len; i++)
        upper[10 + i] = (char)(digits[i] >= 'a' ? digits[i] - 'a' + 'A' : digits[i]);
    upper[10 + len] = '}';
    fuzz_check(caller_client(bytes_of(upper, 43), &api_limits_default, &same) == ST_OK,
               "another spelling is refused");
    fuzz_check(same == client, "another spelling is another client");
}

static void
check_lengths(struct bytes text)
{
    struct api_limits loose = api_limits_default;
    uint64_t client;

    loose.client_id_strict = false;
    if (caller_client(text, &loose, &client) == ST_OK)
        fuzz_check(text.len >= (size_t)loose.min_length_client_id &&
                       text.len <= (size_t)loose.max_length_client_id,
                   "a client of %zu bytes", text.len);
}

static void
check_names(struct bytes project, struct bytes queue)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.";

    if (caller_project(project, false) == ST_OK)
        fuzz_check(project.len > 0 && project.len <= CALLER_PROJECT_MAX,
                   "a project of %zu bytes", project.len);
    if (caller_queue_name(queue) != ST_OK)
        return;
    fuzz_check(queue.len >= 1 && queue.len <= CALLER_QUEUE_NAME_MAX,
               "a name of %zu bytes", queue.len);
    for (size_t i = 0; i < queue.len; i++)
        fuzz_check(queue.data[i] != '\0' && strchr(allowed, queue.data[i]) != NULL,
                   "a name with byte %02x", (unsigned char)queue.data[i]);
}

/* A range that names application/json behind all others is enough. */
static void
check_accept(struct bytes accept, struct arena *arena)
{
    struct bytes more = arena_printf(arena, "%.*s,application/json", (int)accept.len,
                                     accept.len == 0 ? "" : accept.data);

    (void)caller_accept(accept);
    if (accept.len == 0 || memchr(accept.data, '\0', accept.len) == NULL)
        fuzz_check(caller_accept(more) == ST_OK, "refused: %s", more.data);
}

/* A fault is read completely: its words say the same. */
static void
check_fault(struct bytes text)
{
    char words[FAULT_TEXT_CAP], again[FAULT_TEXT_CAP];
    struct fault fault, same;
    struct reason why;

    reason_init(&why);
    if (fault_read(text, &fault, &why) != ST_OK) {
        fuzz_check(why.text[0] != '\0', "refused without a reason");
        return;
    }
    fault_text(&fault, words);
    fuzz_check(fault_read(bytes_str(words), &same, &why) == ST_OK, "%s", words);
    fault_text(&same, again);
    fuzz_check(strcmp(words, again) == 0, "%s, then %s", words, again);
    fuzz_check(fault.ms >= 0 && fault.ms <= 600000 && fault.bytes >= 0 &&
                   fault.bytes <= 65536 && fault.seconds >= 0 &&
                   fault.seconds <= TESTAPI_STEP_MOST_S,
               "out of range: %s", words);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_input(data, size), copies[SECTIONS];
    struct fuzz_memory m;

    for (size_t i = 0; i < SECTIONS; i++)
        copies[i] = fuzz_copy(fuzz_section(&rest));
    fuzz_memory_open(&m);
    check_accept(copies[ACCEPT], &m.arena);
    check_spellings(copies[CLIENT_ID]);
    check_lengths(copies[CLIENT_ID]);
    check_names(copies[PROJECT], copies[QUEUE]);
    (void)caller_content_type(copies[CONTENT_TYPE], true);
    (void)caller_patch_type(copies[CONTENT_TYPE]);
    check_fault(copies[FAULT]);
    fuzz_memory_close(&m);
    for (size_t i = 0; i < SECTIONS; i++)
        fuzz_free(copies[i]);
    return 0;
}
