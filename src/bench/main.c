/*
 * claimd-bench: a load generator for servers that speak the Zaqar API v2, beanstalkd's protocol
 * or redis lists. docs/performance.md says how it measures.
 *
 * Its exit status is 0 if it measured, 1 if the run failed or requests were refused, 2 for wrong
 * arguments.
 */
#include "bench/run.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

typedef void report_fn(const struct options *o, const struct result *r, FILE *out);

/* True when nothing was asked for or everything was written. */
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
    bool fine, json, csv;

    if (!options_parse(&options, argc, argv))
        return 2;
    if (options.help) {
        options_help("claimd-bench");
        return 0;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) { /* each connection is an open file */
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* a failure shows when connecting */
    }
    fine = run_all(&options, &result);
    if (fine) {
        json = write_file(options.json, report_json, &options, &result);
        csv = write_file(options.csv, report_csv, &options, &result);
        fine = write_file(options.svg, plot_svg, &options, &result) && json && csv;
        if (!options.quiet)
            report_text(&options, &result, stdout);
    }
    fine = fine && stats_errors(result.stats) == 0;
    result_fini(&result);
    return fine ? 0 : 1;
}
