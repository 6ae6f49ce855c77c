/*
 * sim_folder: the names of the simulated disk, as they are and as a crash would leave
 * them.
 *
 * Files made, renamed and unlinked since names were synced are a list of changes. At a
 * crash each of them has happened or not, on its own, but: a change that took a name
 * happens only with those that had freed it. So a file is never under neither of its
 * names because another has taken the place that it had left.
 *
 *   Cost     O(names); a crash O(names + changes squared)
 *   Memory   ends the program when there is none
 *   Threads  none: the lock of the disk guards it
 */
#ifndef TESTS_SUPPORT_SIM_FOLDER_H
#define TESTS_SUPPORT_SIM_FOLDER_H

#include "claimd/journal/disk.h"
#include "support/sim_file.h"

struct sim_name;
struct sim_change;

/* A file, for as long as it has a name, is open, or a crash could bring it back. */
struct sim_node {
    struct sim_file file;
    struct sim_node *next;
    struct sim_name *now, *durable; /* its name; NULL: none */
    unsigned opens;                 /* open files of it */
    const struct disk_file *locked; /* its holder; NULL: none */
    struct sim_node *copy;          /* while the folder is copied */
};

struct sim_name {
    struct sim_name *next;
    struct sim_node *now, *durable; /* the file of the name; NULL: none */
    struct sim_name *copy;
    char text[DISK_NAME_CAP];
};

struct sim_folder { /* zeroed: an empty one */
    struct sim_name *names;
    struct sim_node *nodes;
    struct sim_change *changes;
    size_t count, capacity; /* of changes */
};

void sim_folder_fini(struct sim_folder *fo);

/* The file of this name; NULL: there is none. */
struct sim_node *sim_folder_find(const struct sim_folder *fo, const char *name);

/* Makes a file; there is none of this name. */
struct sim_node *sim_folder_make(struct sim_folder *fo, const char *name);

/* The file has a name; what has the other one loses it. */
void sim_folder_rename(struct sim_folder *fo, struct sim_node *node, const char *to);
void sim_folder_unlink(struct sim_folder *fo, struct sim_node *node);

/* All changes are durable. */
void sim_folder_sync(struct sim_folder *fo);

/*
 * Each change is durable or will never be, by dice (NULL: none is). The names that are
 * seen stay as they are: this is also what a failed sync does.
 */
void sim_folder_drop(struct sim_folder *fo, struct random *dice);

/* The same, and only what is durable is seen from then on. No file is open. */
void sim_folder_crash(struct sim_folder *fo, struct random *dice);

/* Makes `to`, which is empty, the same, with all that is not durable, and no file
 * open. */
void sim_folder_copy(struct sim_folder *fo, struct sim_folder *to);

#endif
