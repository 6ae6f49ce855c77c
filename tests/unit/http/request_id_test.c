#include "http/request_id.h"

#include "support/check_main.h"

START_TEST(ids_tell_run_source_and_number)
{
    struct request_ids ids;
    char id[REQUEST_ID_CAP];

    request_ids_init(&ids, "3f2a9c1e-4b5d-4c6e-8f70-123456789abc", 3);
    request_ids_next(&ids, id);
    ck_assert_str_eq(id, "3f2a9c1e-03-0000000001");
    for (int i = 0; i < 41; i++)
        request_ids_next(&ids, id);
    ck_assert_str_eq(id, "3f2a9c1e-03-000000002a");
}
END_TEST
