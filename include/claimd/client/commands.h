/*
 * commands: the commands that the program claimd-client implements. claimd runs that program for them,
 * and lists them in its help.
 */
#ifndef CLAIMD_CLIENT_COMMANDS_H
#define CLAIMD_CLIENT_COMMANDS_H

/* Name of the program. */
#define CLIENT_PROGRAM "claimd-client"

/* X(name, synopsis, summary): in the order of the help. */
#define CLIENT_COMMANDS(X)                                                               \
    X(post, "post QUEUE [BODY...|-]", "Post messages.")                                  \
    X(claim, "claim QUEUE", "Claim messages by hand.")                                   \
    X(delete, "delete QUEUE ID...", "Delete messages by hand.")                          \
    X(work, "work QUEUE... -- COMMAND [ARGUMENT]...", "Run a command for each message.")

#endif
