#include "main/fact.h"

#include <stddef.h>

const struct fact fact_arguments[] = {
    {"--config FILE", "read options from an INI file: max_claim_ttl = 43200"},
    {"--print-config",
     "print all options with the values in force, as such a file, and exit"},
    {"--check-config", "check the options, the file, and the files and groups that they "
                       "name, and exit: 0 if all "
                       "is well, else 2 after a line on standard error for each thing "
                       "that is wrong. Names of "
                       "hosts are not looked up"},
    {"--version",
     "print the version, the commit it was built from, and the libraries, and exit"},
    {"--help", "print how it is used, and exit"},
    {NULL, NULL},
};

const struct fact fact_signals[] = {
    {"SIGTERM, SIGINT", "Stop accepting, finish the requests in flight within "
                        "`drain_seconds`, and exit. Another of "
                        "the two exits at once, with 128 and its number, if it comes a "
                        "second or more after the "
                        "first. One that comes sooner is ignored and logged: whoever "
                        "stops claimd once may well "
                        "send two, as `timeout` does."},
    {"SIGHUP",
     "Read the options again, from the same file, environment and command line, and "
     "tokens, policy, the list of certificates and the pair for TLS; put all or none of "
     "it in force, and forget what Keystone has said. Logged as `reloaded` or "
     "`reload_failed`. Which options it changes claimd.conf(5) says; each of the others "
     "that has another value now is logged as `restart_needed`, and stays as it is."},
    {"SIGUSR1", "Maintenance: posts are answered 503, and /readyz too; claims and "
                "deletes go on, so what is "
                "there can be worked off. Another one ends it."},
    {NULL, NULL},
};

const struct fact fact_exits[] = {
    {"0", "it was stopped by a signal"},
    {"1", "it could not start"},
    {"2", "the configuration is wrong; there is a line on standard error for each thing "
          "that is"},
    {"3",
     "what is in the directory of the journal must not be used as it is: it is damaged, "
     "newer than this claimd, of another journal, or the clock is too far ahead of it"},
    {"4", "the journal could not be written while serving"},
    {"128+N", "the signal with the number N has cut a stop short"},
    {NULL, NULL},
};

const struct fact fact_variables[] = {
    {"CLAIMD_CONFIG", "the file that --config would name"},
    {"CLAIMD_...", "each option, in capitals: CLAIMD_MAX_CLAIM_TTL for `max_claim_ttl`. "
                   "One that is no option "
                   "is an error, but for those that Kubernetes and Docker set for a "
                   "service called claimd "
                   "(CLAIMD_SERVICE_..., CLAIMD_PORT...), and those that `claimd run` "
                   "sets (CLAIMD_URL...)"},
    {"CLAIMD_LISTEN", "also where `claimd health` asks"},
    {"NOTIFY_SOCKET", "who is told how claimd is doing"},
    {"JOURNAL_STREAM",
     "whether standard error is journald's: then lines have priorities"},
    {"LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES",
     "sockets of a supervisor that are served instead of `listen`"},
    {"WATCHDOG_USEC, WATCHDOG_PID", "how often a supervisor wants to hear of claimd"},
    {"PATH", "where `claimd bench` looks for claimd-bench when it is not beside claimd"},
    {NULL, NULL},
};

const struct fact fact_files[] = {
    {"/etc/claimd/claimd.conf", "the configuration of the service"},
    {"/etc/claimd/tokens",
     "who may come in, with `auth` tokens, unless `tokens` names another"},
    {"/etc/claimd/keystone-token", "the service token, with `auth` keystone, unless "
                                   "`keystone_token_file` names another"},
    {"/etc/default/claimd",
     "variables for the service, if somebody has written them; its unit "
     "reads them"},
    {NULL, NULL},
};
