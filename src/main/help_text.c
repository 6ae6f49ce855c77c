#include "main/help.h"

const struct help_entry help_arguments[] = {
    {"--config FILE", "Read options from an INI file with lines such as "
                      "max_claim_ttl = 43200."},
    {"--print-config",
     "Print all options with the values in force, in the form of such a file, and exit."},
    {"--check-config",
     "Check the options, the file, and the files and groups that they name, and exit. "
     "The exit status is 0 if all is well. Otherwise it is 2, and standard error has a "
     "line for each fault. claimd does not look up names of hosts."},
    {"--version", "Print the version, the commit, and the libraries, and exit."},
    {"--help [GROUP|all]", "Print the usage, the options of a group, or everything, and "
                           "exit."},
    {NULL, NULL},
};

const struct help_entry help_signals[] = {
    {"SIGTERM, SIGINT",
     "Stop accepting connections, finish the requests in progress within "
     "`drain_seconds`, and exit. A second signal, at least one second later, exits at "
     "once with 128 plus its number. claimd ignores and logs an earlier one, because "
     "tools such as `timeout` send two."},
    {"SIGHUP",
     "Read the options again from the same file, environment and command line, and also "
     "the tokens, the policy, the list of certificates and the TLS pair. claimd puts "
     "all of it in force, or nothing. It also clears the cache of Keystone. The log has "
     "`reloaded` or `reload_failed`. claimd.conf(5) marks the options that SIGHUP "
     "changes. For any other option with a new value, claimd logs `restart_needed` and "
     "keeps the old value."},
    {"SIGUSR1",
     "Turn maintenance on or off. During maintenance, claimd responds to posts and to "
     "/readyz with 503. Claims and deletes continue, so workers can empty the queues."},
    {NULL, NULL},
};

const struct help_entry help_exits[] = {
    {"0", "A signal stopped claimd."},
    {"1", "claimd could not start."},
    {"2", "The configuration is wrong. Standard error has a line for each fault."},
    {"3", "claimd refuses the directory of the journal: it is damaged, it was written by "
          "a newer claimd, it belongs to another journal, or the clock is too far ahead "
          "of it."},
    {"4", "claimd could not write the journal while serving."},
    {"128+N", "A second signal, with the number N, interrupted the stop."},
    {NULL, NULL},
};

const struct help_entry help_variables[] = {
    {"CLAIMD_CONFIG", "The file that --config would name."},
    {"CLAIMD_...",
     "Each option in capitals, such as CLAIMD_MAX_CLAIM_TTL for `max_claim_ttl`. An "
     "unknown option is an error. claimd ignores the variables that Kubernetes and "
     "Docker set for a service called claimd (CLAIMD_SERVICE_..., CLAIMD_PORT...) and "
     "those of `claimd run` (CLAIMD_URL...)."},
    {"CLAIMD_LISTEN", "Also the address that `claimd health` asks."},
    {"NOTIFY_SOCKET", "Socket of a supervisor that claimd notifies of its state."},
    {"JOURNAL_STREAM", "If it names standard error, journald reads the log, and claimd "
                       "adds priorities to the lines."},
    {"LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES",
     "Sockets of a supervisor, which claimd serves instead of `listen`."},
    {"WATCHDOG_USEC, WATCHDOG_PID",
     "Interval at which a supervisor expects a sign of life."},
    {"PATH", "Where `claimd bench` looks for claimd-bench if it is not beside claimd."},
    {NULL, NULL},
};

const struct help_entry help_files[] = {
    {"/etc/claimd/claimd.conf", "The configuration of the service."},
    {"/etc/claimd/tokens",
     "The tokens, with `auth` tokens, unless `tokens` names another file."},
    {"/etc/claimd/keystone-token", "The service token, with `auth` keystone, unless "
                                   "`keystone_token_file` names another file."},
    {"/etc/default/claimd", "Environment variables of the service, if the file exists."},
    {NULL, NULL},
};
