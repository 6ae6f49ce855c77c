/*
 * commands: the commands that the program claimd-client implements. claimd runs that
 * program for them, and lists them in its help.
 */
#ifndef CLAIMD_CLIENT_COMMANDS_H
#define CLAIMD_CLIENT_COMMANDS_H

/* Name of the program. */
#define CLIENT_PROGRAM "claimd-client"

/* X(name, synopsis, summary): in the order of the help. */
#define CLIENT_COMMANDS(X)                                                               \
    X(queues, "queues [OPTION]...", "Show queues and what waits in them.")               \
    X(create, "create QUEUE [MEMBER=VALUE...]", "Create a queue with settings.")         \
    X(set, "set QUEUE [MEMBER=VALUE...]", "Change the settings of a queue.")             \
    X(post, "post QUEUE [BODY...|-]", "Post messages.")                                  \
    X(claim, "claim QUEUE", "Claim messages by hand.")                                   \
    X(delete, "delete QUEUE ID...", "Delete messages by hand.")                          \
    X(release, "release QUEUE CLAIM [ID...]", "Release messages of a claim.")            \
    X(work, "work QUEUE... -- COMMAND", "Run a command for each message.")               \
    X(peek, "peek QUEUE", "Show messages of a queue.")                                   \
    X(claims, "claims QUEUE", "Show the claims of a queue and their clients.")           \
    X(why, "why QUEUE ID", "Explain a message and what happens next.")                   \
    X(purge, "purge QUEUE", "Delete all messages of a queue.")                           \
    X(pause, "pause QUEUE", "Pause claims from a queue, or posts to it.")                \
    X(resume, "resume QUEUE", "Resume claims and posts of a queue.")                     \
    X(redrive, "redrive QUEUE", "Move dead letters back to their queues.")               \
    X(schedule, "schedule ACTION [QUEUE [NAME]]", "Post messages at due times.")         \
    X(top, "top", "Show queues on a full screen.")                                       \
    X(check, "check [QUEUE...]", "Check queues, for Nagios and the like.")

#endif
