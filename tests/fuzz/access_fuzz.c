/*
 * A list of tokens and a policy: read whole or not at all, and what was read is what
 * was written. A caller that is not in the list is denied, for any content of it.
 *
 * Input: the list, and behind a line "%%" the policy, and behind another one a list of
 * certificates.
 */
#include "claimd/auth/access.h"
#include "fuzz/fuzz.h"
#include "fuzz/reference.h"

static size_t
count_tokens(struct bytes list)
{
    size_t count = 0;

    while (bytes_present(list))
        count += !token_line_blank(bytes_cut(&list, '\n'));
    return count;
}

/* A line that is written from a read line reads as the same. */
static void
check_line(struct fuzz_memory *m, struct bytes text)
{
    struct token_line line, again;
    struct reason why;

    reason_init(&why);
    if (token_line_blank(text))
        return;
    if (token_line_read(text, &line, &why) != ST_OK) {
        fuzz_check(why.text[0] != '\0', "refused without a reason");
        return;
    }
    buf_reset(&m->out, SIZE_MAX);
    token_line_write(&m->out, &line);
    fuzz_check(token_line_read(buf_view(&m->out), &again, &why) == ST_OK, "%s", why.text);
    fuzz_check(bytes_equal(line.name, again.name) && line.role == again.role &&
                   bytes_equal(line.projects, again.projects) &&
                   line.expires_ms == again.expires_ms &&
                   memcmp(&line.digest, &again.digest, sizeof(line.digest)) == 0,
               "another line");
}

static void
check_stranger(struct access *a, struct fuzz_memory *m, struct bytes token)
{
    const struct access_request request = {
        .token = token, .project = bytes_str("p"), .action = ACTION_HOME_GET};
    struct access_caller caller;
    struct reason why;

    reason_init(&why);
    fuzz_check(access_ask(a, &request, &m->arena, &caller, &why) == ST_UNAUTHORIZED,
               "a stranger is in");
    fuzz_check(why.text[0] != '\0', "kept out without a reason");
}

/* Does a rule name the role, read by its words? */
static bool
rule_has(struct bytes rule, enum role role)
{
    rule = bytes_trim(rule);
    if (bytes_equal_str(rule, "@") || bytes_equal_str(rule, "!"))
        return rule.data[0] == '@';
    while (bytes_present(rule)) {
        struct bytes name = bytes_cut(&rule, ' '), kind = bytes_cut(&name, ':');

        if (bytes_equal_str(kind, "role") && bytes_present(name) &&
            bytes_equal_str(name, role_name(role)))
            return true;
    }
    return false;
}

/* A policy says what the tree of jansson says, and of all else what it said before. */
static void
check_policy(const struct policy *p, struct bytes text)
{
    bool comparable;
    json_t *tree = reference_tree(text, &comparable);

    fuzz_check(tree != NULL || !comparable, "a policy that is no JSON");
    for (int action = 0; comparable && action < ACTION_COUNT; action++) {
        const json_t *rule = json_object_get(tree, action_name((enum action)action));

        for (int role = 0; role < ROLE_COUNT; role++) {
            bool may = policy_allows(p, (enum role)role, (enum action)action);
            bool said =
                policy_allows(&policy_default, (enum role)role, (enum action)action);

            if (rule != NULL)
                said = rule_has(bytes_str(json_string_value(rule)), (enum role)role);
            fuzz_check(may == said, "%s of a %s: %d", action_name((enum action)action),
                       role_name((enum role)role), may);
        }
    }
    json_decref(tree);
}

/* The names in a line find it, and no other names do. */
static void
check_certificates(struct fuzz_memory *m, struct access *a, struct bytes list)
{
    struct token_list *c;
    struct reason why;
    size_t bad_line = 0, count = 0;

    reason_init(&why);
    if (token_list_read(m->mem, list, certificate_line_read, &c, &bad_line, &why) !=
        ST_OK) {
        fuzz_check(bad_line > 0 && why.text[0] != '\0', "refused without line or reason");
        return;
    }
    for (struct bytes lines = list; bytes_present(lines);) {
        struct bytes text = bytes_cut(&lines, '\n');
        struct token_line line;
        struct certificate shown = {.good = true};

        if (token_line_blank(text))
            continue;
        count++;
        fuzz_check(certificate_line_read(text, &line, &why) == ST_OK, "%s", why.text);
        shown.names = line.subject;
        fuzz_check(token_list_find_certificate(c, &shown) != NULL ||
                       memcmp(line.subject.data, "dns:", 4) == 0, /* in small letters */
                   "a line is not found");
        shown.names = bytes_of(line.subject.data, line.subject.len - 1);
        fuzz_check(shown.names.len == 0 ||
                       token_list_find_certificate(c, &shown) == NULL ||
                       token_list_count(c) > 1,
                   "found by less than it says");
    }
    fuzz_check(token_list_count(c) == count, "%zu lines of %zu", token_list_count(c),
               count);
    access_use_certificates(a, c);
    check_stranger(a, m, list);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_input(data, size), list, policy_text, certificates_text;
    struct policy policy = policy_default;
    struct fuzz_memory m;
    struct reason why;
    struct access *a;
    size_t bad_line = 0;

    list = fuzz_copy(fuzz_section(&rest));
    policy_text = fuzz_copy(fuzz_section(&rest));
    certificates_text = fuzz_copy(rest);
    fuzz_memory_open(&m);
    fuzz_check(access_new(m.mem, &a) == ST_OK, "no memory");
    reason_init(&why);
    if (policy_read(&policy, policy_text, &why) != ST_OK)
        fuzz_check(why.text[0] != '\0' &&
                       memcmp(&policy, &policy_default, sizeof(policy)) == 0,
                   "a refused policy has no reason, or an effect");
    else
        check_policy(&policy, policy_text);
    reason_init(&why);
    if (access_replace(a, list, &policy, &bad_line, &why) == ST_OK)
        fuzz_check(access_count(a) == count_tokens(list), "%zu tokens of %zu",
                   access_count(a), count_tokens(list));
    else
        fuzz_check(access_count(a) == 0 && bad_line > 0 && why.text[0] != '\0',
                   "a refused list has an effect, no line, or no reason");
    check_stranger(a, &m, list); /* a digest of the list gives no access */
    for (struct bytes lines = list; bytes_present(lines);) {
        struct bytes line = bytes_cut(&lines, '\n');

        check_line(&m, line);
        check_stranger(a, &m, line);
    }
    check_certificates(&m, a, certificates_text);
    access_free(a);
    fuzz_memory_close(&m);
    fuzz_free(list);
    fuzz_free(policy_text);
    fuzz_free(certificates_text);
    return 0;
}
