#include "api/versions/version.h"

size_t
versions_served(const struct api_limits *limits, bool identity, bool testapi,
                const struct version *out[VERSIONS_MAX])
{
    const struct {
        const struct version *version;
        bool enabled;
    } known[VERSIONS_MAX] = {
        {&version_v2, true},
        {&version_v1_1, limits->enable_v1_1},
        {&version_v1, limits->enable_v1},
        {&version_claimd, true},
        {&version_operator, true},
        {&version_testapi, testapi},
        {&version_identity, identity},
    };
    size_t count = 0;

    for (size_t i = 0; i < VERSIONS_MAX; i++)
        if (known[i].enabled)
            out[count++] = known[i].version;
    return count;
}
