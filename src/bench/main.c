/*
 * claimd-bench: a load generator for servers that speak the Zaqar API v2, beanstalkd's protocol
 * or redis lists. docs/performance.md says how it measures.
 *
 * Its exit status is 0 if it measured, 1 if the run failed or requests were refused, 2 for wrong
 * arguments.
 */
#include "bench/report.h"
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

static bool
write_all(const struct options *o, const struct result *r)
{
    bool json = write_file(o->json, report_json, o, r);
    bool csv = write_file(o->csv, report_csv, o, r);
    bool svg = write_file(o->svg, plot_svg, o, r);

    if (!o->quiet)
        report_text(o, r, stdout);
    return json && csv && svg;
}

/* As many open files as the system allows: each connection is one. */
static void
raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* a failure shows when connecting */
}

int
main(int argc, char **argv)
{
    struct options options;
    struct result result;
    bool fine;

    if (!options_parse(&options, argc, argv))
        return 2;
    if (options.help) {
        options_help("claimd-bench");
        return 0;
    }
    raise_file_limit();
    fine = run_all(&options, &result);
    if (fine)
        fine = write_all(&options, &result);
    if (fine)
        fine = op_stats_errors(&result.stats->calm) == 0 &&
               op_stats_errors(&result.stats->storm) == 0;
    result_fini(&result);
    return fine ? 0 : 1;
}
