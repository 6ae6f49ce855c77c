#include "support/dead_letters.h"

void
make_dead_lettering(struct fixture *f, const char *name, int64_t count,
                    const char *dead_letter, int64_t ttl_s)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.max_claim_count = count;
    settings.dead_letter = bytes_str(dead_letter);
    settings.dead_letter_ttl_s = ttl_s;
    use(f, name);
    make_queue(f, &settings);
}

void
wear_out(struct fixture *f, size_t limit, int times)
{
    for (int i = 0; i < times; i++)
        release(f, take(f, limit));
}

void
expect_only_in(struct fixture *f, int number, const char *name)
{
    static const char *const names[] = {"q", "failed", "deeper"};
    struct bytes back = f->queue.name;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        use(f, names[i]);
        get(f, number);
        ck_assert_uint_eq(f->seen.count, strcmp(names[i], name) == 0);
    }
    f->queue.name = back;
}
