/*
 * options: the only command of claimd-bench (claimd/base/command.h), and the values of
 * its options.
 */
#ifndef LOAD_OPTIONS_H
#define LOAD_OPTIONS_H

#include "claimd/base/command.h"
#include "load/protocol.h"

enum storm { STORM_NONE, STORM_CLAIMS, STORM_MESSAGES };

struct options {
    const char *endpoint;
    const char *protocol_name;
    const char *scenario_name;
    const char *deleting_name; /* NULL: one by one for batch 1, else in bulk */
    const char *storm_name;    /* NULL: none */
    const char *queue;
    const char *project;
    const char *client_id;
    const char *token_file; /* NULL: requests carry no token */
    char token[256];        /* from that file; "": none */
    const char *label;      /* name of the run in reports; NULL: the protocol's name */
    const char *json, *csv; /* file names; NULL: not written */
    int64_t batch;
    int64_t connections;
    int64_t threads;
    int64_t queues;
    int64_t body_bytes;
    int64_t backlog; /* messages posted before measuring, over all queues */
    int64_t held;    /* messages of the backlog to claim before measuring */
    int64_t message_ttl;
    int64_t claim_ttl;
    int64_t claim_grace;
    int64_t wait;      /* long polling of claims, seconds; 0: none */
    int64_t poll;      /* DELIVERY: pause after an empty claim, ms */
    int64_t producers; /* DELIVERY: number of connections that post */
    int64_t storm_count;
    int64_t storm_lead; /* seconds from the start of filling to the storm */
    int64_t storm_queues;
    double duration; /* seconds */
    double warmup;
    double rate; /* requests a second; 0: closed loop */
    bool quiet;
    bool spin; /* never sleep while waiting for responses */
    bool keep; /* keep the queues and their messages */
    struct process_list server;

    /* Derived from the names above. */
    const struct protocol *protocol;
    enum scenario scenario;
    enum delete_mode deleting;
    enum storm storm;
};

extern const struct command command_bench;

/*
 * Reads the arguments of command_bench. False after a message on standard error if a
 * value is out of range, or does not fit another one. Texts are borrowed from `args`.
 */
bool options_parse(struct options *o, const struct command_args *args);

/* Writes a message to standard error. Returns false. */
bool bench_error(const char *what, const char *why);

#endif
