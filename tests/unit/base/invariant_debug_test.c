/* Without NDEBUG, whatever the build. */
#undef NDEBUG
#include "claimd/base/invariant.h"

#include "support/invariant_fixture.h"

static void
break_what_is_expensive(void)
{
    int count = 3;

    ENSURE_DEBUG(count < 3);
}

START_TEST(a_debug_build_looks_at_what_is_expensive_too)
{
    expect_broken(break_what_is_expensive, "count < 3", "in break_what_is_expensive()\n");
}
