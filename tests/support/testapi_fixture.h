/*
 * testapi_fixture: an api_fixture with the test API in `f`, fresh in each test.
 *
 * A test program includes this once and begins its cases with TESTAPI_CASE.
 */
#ifndef TESTS_SUPPORT_TESTAPI_FIXTURE_H
#define TESTS_SUPPORT_TESTAPI_FIXTURE_H

#include "support/api_fixture.h"

static struct api_fixture f;

static inline void
testapi_fixture_open(void)
{
    api_fixture_open_testapi(&f, &api_limits_default);
}

static inline void
testapi_fixture_close(void)
{
    api_fixture_close(&f);
}

#define TESTAPI_CASE(name)                                                               \
    TEST_CASE(name, .setup = testapi_fixture_open, .teardown = testapi_fixture_close)

#endif
