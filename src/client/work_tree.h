/*
 * work_tree: ends the children of this process, and with them all descendants.
 *
 * The caller is a child subreaper (prctl(2)). If a process dies, its children become
 * children of the caller. So each call kills the children, and the caller repeats it
 * until no child is left. The number of a child cannot belong to another process before
 * the caller has reaped it. A call also kills the descendants that it finds, so that a
 * deep tree ends at once, and not level by level.
 *
 * The list of children comes from /proc. Without it, or if it lists nothing although
 * there are children, the call asks the kernel about each possible number of a process.
 * That takes milliseconds, or a second if /proc does not say how many there are.
 *
 *   Cost     one system call without children
 *   Threads  one. No allocation: it runs in a process that was forked
 */
#ifndef CLIENT_WORK_TREE_H
#define CLIENT_WORK_TREE_H

#include <stdbool.h>
#include <sys/types.h>

enum tree_state {
    TREE_EMPTY,   /* no child is left */
    TREE_BUSY,    /* children got SIGKILL, or are zombies. Reap, and call again */
    TREE_FOREIGN, /* only children of other users are left, which it may not signal */
};

/* True: the child stays, and does not count. */
typedef bool tree_keep_fn(const void *ctx, pid_t pid);

/* Sends SIGKILL to all children. keep: NULL for all. */
enum tree_state tree_kill(tree_keep_fn *keep, const void *ctx);

/* The same without /proc, for tests. */
enum tree_state tree_kill_by_number(tree_keep_fn *keep, const void *ctx);

#endif
