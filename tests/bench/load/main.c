/*
 * claimd-bench: a load generator for servers that speak the Zaqar API v2, beanstalkd's
 * protocol or redis lists. docs/performance.md describes how it measures.
 *
 * Exit status: 0 after a measurement, 1 if the run failed or the server refused requests,
 * 2 if the arguments are wrong.
 */
#include "claimd/base/version.h"
#include "load/run.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

typedef void report_fn(const struct options *o, const struct result *r, FILE *out);

/* Writes a report to a file. False after a message; true if path is NULL. */
static bool
write_file(const char *path, report_fn *write, const struct options *o,
           const struct result *r)
{
    FILE *out;
    bool bad;

    if (path == NULL)
        return true;
    out = fopen(path, "w");
    if (out != NULL) {
        write(o, r, out);
        bad = ferror(out) != 0;
        if (fclose(out) == 0 && !bad)
            return true;
    }
    fprintf(stderr, "claimd-bench: cannot write %s: %s\n", path, strerror(errno));
    return false;
}

int
main(int argc, char **argv)
{
    struct options options;
    struct result result;
    struct rlimit limit;
    bool good;

    if (!options_parse(&options, argc, argv))
        return 2;
    if (options.help) {
        options_help("claimd-bench");
        return 0;
    }
    if (options.version) {
        (void)printf("claimd-bench " CLAIMD_VERSION "\ncommit %s\n", version_commit);
        return 0;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) { /* each connection is an open file */
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* a failure shows when connecting */
    }
    good = run_all(&options, &result);
    if (good) {
        good = write_file(options.json, report_json, &options, &result);
        good = write_file(options.csv, report_csv, &options, &result) && good;
        if (!options.quiet)
            report_text(&options, &result, stdout);
    }
    good = good && stats_errors(result.stats) == 0;
    result_fini(&result);
    return good ? 0 : 1;
}
