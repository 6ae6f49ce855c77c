#include "support/sim_disk.h"

#include "claimd/base/lock.h"
#include "support/check_main.h"
#include "support/sim_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (UINT64_C(1) << 40) /* a longer file is a mistake */
#define PLENTY   (UINT64_C(1) << 42) /* of space, where there is no limit */
#define NEVER    0                   /* no operation has this number */

enum life { ALIVE, SHUT, DEAD };

/* A process that uses the disk. It is kept to the end, so that calls after its death are
 * found. */
struct process {
    struct disk disk; /* first: the seam's handle */
    struct sim_disk *sd;
    struct process *next;
    struct disk_file *files; /* all that it ever had open */
    enum life life;
};

struct disk_file {
    struct disk_file *next;
    struct process *process;
    struct sim_node *node; /* NULL: closed */
    bool writes;
};

struct fault {
    uint64_t at; /* which operation of its kind; NEVER: none */
    int error;
};

struct sim_disk {
    struct lock lock; /* guards all of it */
    struct sim_folder folder;
    struct process *processes;
    struct random dice;
    struct fault faults[SIM_OPS];
    uint64_t dies_at;  /* which operation; NEVER: none */
    uint64_t capacity; /* in bytes */
    unsigned short_percent;
    bool lying, strict;
    const char *misuse;            /* in the call that is under way; NULL: none */
    const struct disk_file *owner; /* the lock of the directory; NULL: none */
    struct sim_disk_stats stats;
};

/* ------------------------------------------------------------------ each operation */

static struct process *
process_of(struct disk *d)
{
    return (struct process *)d;
}

static struct sim_disk *
enter(struct disk *d)
{
    struct sim_disk *sd = process_of(d)->sd;

    lock_acquire(&sd->lock);
    return sd;
}

static int
leave(struct sim_disk *sd, int error)
{
    const char *misuse = sd->misuse;
    bool strict = sd->strict;

    sd->misuse = NULL;
    lock_release(&sd->lock);
    if (misuse != NULL && strict) /* not under the lock: it does not come back */
        ck_abort_msg("misuse of the disk: %s", misuse);
    return error;
}

static int
misused(struct sim_disk *sd, const char *how)
{
    sd->misuse = sd->stats.misuse = how;
    return EBADF;
}

/* Nothing reaches it any more, nor does it drop anything. */
static bool
is_dead(const struct sim_disk *sd)
{
    return sd->dies_at != NEVER && sd->stats.operations >= sd->dies_at;
}

static int
count(struct sim_disk *sd, enum sim_op op)
{
    const struct fault *fault = &sd->faults[op];

    sd->stats.operations++;
    sd->stats.ops[op]++;
    if (is_dead(sd))
        return EIO;
    return fault->at == sd->stats.ops[op] ? fault->error : 0;
}

/* 0: the process lives. */
static int
check_process(struct disk *d)
{
    const struct process *p = process_of(d);

    if (p->life == SHUT)
        return misused(p->sd, "it goes on after disk_shut()");
    return p->life == DEAD ? EIO : 0;
}

/* 0: it may do so with the file. */
static int
check_file(struct disk *d, const struct disk_file *f, bool writes)
{
    struct sim_disk *sd = process_of(d)->sd;
    int error = check_process(d);

    if (error != 0)
        return error;
    if (f->process != process_of(d))
        return misused(sd, "a file of another process");
    if (f->node == NULL)
        return misused(sd, "a file that was closed");
    if (writes && !f->writes)
        return misused(sd, "writing to a file that is only read");
    return 0;
}

/* Counts the operation of a process that lives, with names (NULL: none); 0: it may do
 * it. */
static int
admit(struct disk *d, enum sim_op op, const char *name, const char *other)
{
    int error = check_process(d);

    if (error == 0 && name != NULL)
        error = disk_name_check(name);
    if (error == 0 && other != NULL)
        error = disk_name_check(other);
    return error == 0 ? count(process_of(d)->sd, op) : error;
}

/* The same with a file. */
static int
admit_file(struct disk *d, enum sim_op op, const struct disk_file *f)
{
    int error = check_file(d, f, op == SIM_WRITE || op == SIM_ALLOCATE);

    return error == 0 ? count(process_of(d)->sd, op) : error;
}

/* ------------------------------------------------------------------ space */

static uint64_t
bytes_used(const struct sim_disk *sd)
{
    uint64_t bytes = 0;

    for (const struct sim_node *n = sd->folder.nodes; n != NULL; n = n->next) {
        if (n->now != NULL || n->opens > 0)
            bytes += n->file.size;
    }
    return bytes;
}

static uint64_t
space_left(const struct sim_disk *sd)
{
    uint64_t used;

    if (sd->capacity == SIM_NO_LIMIT)
        return PLENTY;
    used = bytes_used(sd);
    return sd->capacity > used ? sd->capacity - used : 0;
}

/* How many of the bytes at offset fit. */
static size_t
fitting(const struct sim_disk *sd, const struct sim_file *f, uint64_t offset, size_t len)
{
    uint64_t end;

    if (offset + len <= f->size)
        return len;
    end = f->size + space_left(sd);
    if (offset + len <= end)
        return len;
    return offset < end ? (size_t)(end - offset) : 0;
}

static size_t
shorten(struct sim_disk *sd, size_t len)
{
    if (len < 2 || sd->short_percent == 0 || !random_chance(&sd->dice, sd->short_percent))
        return len;
    return 1 + (size_t)random_below(&sd->dice, len - 1);
}

static bool
beyond_files(uint64_t offset, size_t len)
{
    return offset > FILE_MAX || len > FILE_MAX - offset;
}

/* ------------------------------------------------------------------ files */

static void
add_file(struct disk *d, struct sim_node *node, bool writes, struct disk_file **out)
{
    struct process *p = process_of(d);
    struct disk_file *f = sim_alloc(sizeof(*f));

    *f = (struct disk_file){
        .next = p->files, .process = p, .node = node, .writes = writes};
    p->files = f;
    node->opens++;
    *out = f;
}

static void
end_file(struct disk_file *f)
{
    if (f->node == NULL)
        return;
    if (f->node->locked == f)
        f->node->locked = NULL;
    if (f->process->sd->owner == f)
        f->process->sd->owner = NULL;
    f->node->opens--;
    f->node = NULL;
}

static int
sim_open(struct disk *d, const char *name, enum disk_mode mode, struct disk_file **out)
{
    struct sim_disk *sd = enter(d);
    int error = admit(d, SIM_OPEN, name, NULL);
    struct sim_node *node = NULL;

    if (error == 0) {
        node = sim_folder_find(&sd->folder, name);
        if (mode == DISK_NEW)
            error = node == NULL ? 0 : EEXIST;
        else
            error = node == NULL ? ENOENT : 0;
    }
    if (error == 0 && node == NULL)
        node = sim_folder_make(&sd->folder, name);
    if (error == 0)
        add_file(d, node, mode != DISK_READ, out);
    return leave(sd, error);
}

static void
sim_close(struct disk *d, struct disk_file *f)
{
    struct sim_disk *sd = enter(d);

    /* A dead process still closes files, which it has no more. */
    if (check_file(d, f, false) == 0)
        end_file(f);
    (void)leave(sd, 0);
}

static int
sim_read(struct disk *d, struct disk_file *f, uint64_t offset, void *to, size_t len,
         size_t *got)
{
    struct sim_disk *sd = enter(d);
    int error = admit_file(d, SIM_READ, f);

    if (error == 0 && beyond_files(offset, len))
        error = EINVAL;
    if (error == 0)
        *got = sim_file_read(&f->node->file, offset, to, shorten(sd, len));
    return leave(sd, error);
}

static int
sim_write(struct disk *d, struct disk_file *f, uint64_t offset, const void *from,
          size_t len, size_t *done)
{
    struct sim_disk *sd = enter(d);
    int error = admit_file(d, SIM_WRITE, f);
    size_t part = 0;

    if (error == 0 && beyond_files(offset, len))
        error = EFBIG;
    if (error == 0) {
        part = fitting(sd, &f->node->file, offset, shorten(sd, len));
        error = part == 0 && len > 0 ? ENOSPC : 0;
    }
    if (error == 0) {
        sim_file_write(&f->node->file, offset, from, part);
        sd->stats.bytes_written += part;
        *done = part;
    }
    return leave(sd, error);
}

static int
sim_sync(struct disk *d, struct disk_file *f)
{
    struct sim_disk *sd = enter(d);
    int error = check_file(d, f, false);

    if (error == 0) {
        error = count(sd, SIM_SYNC);
        if (error == 0)
            sim_file_sync(&f->node->file);
        else if (!is_dead(sd))
            sim_file_drop(&f->node->file, sd->lying);
    }
    return leave(sd, error);
}

static int
sim_allocate(struct disk *d, struct disk_file *f, uint64_t size)
{
    struct sim_disk *sd = enter(d);
    int error = admit_file(d, SIM_ALLOCATE, f);

    if (error == 0 && size > FILE_MAX)
        error = EFBIG;
    if (error == 0 && size > f->node->file.size) {
        if (size - f->node->file.size > space_left(sd))
            error = ENOSPC;
        else
            sim_file_grow(&f->node->file, size);
    }
    return leave(sd, error);
}

static int
sim_cut(struct disk *d, struct disk_file *f, uint64_t size)
{
    struct sim_disk *sd = enter(d);
    int error = admit_file(d, SIM_CUT, f);

    if (error == 0 && (size % SIM_SECTOR != 0 || !sim_file_cut(&f->node->file, size)))
        error = misused(sd, "what is cut off is not zeros");
    return leave(sd, error);
}

static int
sim_size(struct disk *d, struct disk_file *f, uint64_t *out)
{
    struct sim_disk *sd = enter(d);
    int error = admit_file(d, SIM_SIZE, f);

    if (error == 0)
        *out = f->node->file.size;
    return leave(sd, error);
}

static void
sim_forget(struct disk *d, struct disk_file *f)
{
    struct sim_disk *sd = enter(d);

    if (check_file(d, f, false) == 0) {
        sd->stats.forgets++;
        sim_file_forget(&f->node->file);
    }
    (void)leave(sd, 0);
}

/* ------------------------------------------------------------------ names */

static int
sim_rename(struct disk *d, const char *from, const char *to)
{
    struct sim_disk *sd = enter(d);
    int error = admit(d, SIM_RENAME, from, to);
    struct sim_node *node = NULL;

    if (error == 0) {
        node = sim_folder_find(&sd->folder, from);
        error = node == NULL ? ENOENT : 0;
    }
    if (error == 0)
        sim_folder_rename(&sd->folder, node, to);
    return leave(sd, error);
}

static int
sim_unlink(struct disk *d, const char *name)
{
    struct sim_disk *sd = enter(d);
    int error = admit(d, SIM_UNLINK, name, NULL);
    struct sim_node *node = NULL;

    if (error == 0) {
        node = sim_folder_find(&sd->folder, name);
        error = node == NULL ? ENOENT : 0;
    }
    if (error == 0)
        sim_folder_unlink(&sd->folder, node);
    return leave(sd, error);
}

/* Copies of all names, in a random order, owned. */
static char (*copy_names(struct sim_disk *sd, size_t *out))[DISK_NAME_CAP]
{
    char(*names)[DISK_NAME_CAP] = sim_alloc((sim_disk_files(sd) + 1) * sizeof(*names));
    size_t n = 0;

    for (const struct sim_name *at = sd->folder.names; at != NULL; at = at->next) {
        size_t place = (size_t)random_below(&sd->dice, n + 1);

        if (at->now == NULL)
            continue;
        memcpy(names[n++], names[place], sizeof(*names));
        memcpy(names[place], at->text, sizeof(*names));
    }
    *out = n;
    return names;
}

static int
sim_list(struct disk *d, void (*each)(void *arg, const char *name), void *arg)
{
    struct sim_disk *sd = enter(d);
    int error = admit(d, SIM_LIST, NULL, NULL);
    char(*names)[DISK_NAME_CAP] = NULL;
    size_t n = 0;

    if (error == 0)
        names = copy_names(sd, &n);
    error = leave(sd, error);
    for (size_t i = 0; i < n; i++)
        each(arg, names[i]);
    free(names);
    return error;
}

static int
sim_sync_names(struct disk *d)
{
    struct sim_disk *sd = enter(d);
    int error = check_process(d);

    if (error == 0) {
        error = count(sd, SIM_SYNC_NAMES);
        if (error == 0)
            sim_folder_sync(&sd->folder);
        else if (!is_dead(sd))
            sim_folder_drop(&sd->folder, &sd->dice);
    }
    return leave(sd, error);
}

static int
sim_lock(struct disk *d, const char *name, struct disk_file **out)
{
    struct sim_disk *sd = enter(d);
    int error = admit(d, SIM_LOCK, name, NULL);
    struct sim_node *node = NULL;

    if (error == 0) {
        node = sim_folder_find(&sd->folder, name);
        if (node == NULL)
            node = sim_folder_make(&sd->folder, name);
        error = node->locked == NULL && sd->owner == NULL ? 0 : EWOULDBLOCK;
    }
    if (error == 0) {
        add_file(d, node, true, out);
        sd->owner = node->locked = *out;
    } else if (sd->owner != NULL && sd->owner->process == process_of(d)) {
        (void)misused(sd, "a second lock");
    }
    return leave(sd, error);
}

static int
sim_check_lock(struct disk *d, const char *name, const struct disk_file *f)
{
    struct sim_disk *sd = enter(d);
    int error = check_file(d, f, false);

    if (error == 0)
        error = count(sd, SIM_LOCK);
    if (error == 0 && sim_folder_find(&sd->folder, name) != f->node)
        error = ESTALE;
    return leave(sd, error);
}

static int
sim_free_bytes(struct disk *d, uint64_t *out)
{
    struct sim_disk *sd = enter(d);
    int error = admit(d, SIM_FREE_BYTES, NULL, NULL);

    if (error == 0)
        *out = space_left(sd);
    return leave(sd, error);
}

/* ------------------------------------------------------------------ processes */

static void
end_process(struct process *p, enum life life)
{
    for (struct disk_file *f = p->files; f != NULL; f = f->next)
        end_file(f);
    p->life = life;
}

static bool
has_open_files(const struct process *p)
{
    const struct disk_file *f = p->files;

    while (f != NULL && f->node == NULL)
        f = f->next;
    return f != NULL;
}

static void
sim_shut(struct disk *d)
{
    struct sim_disk *sd = enter(d);
    struct process *p = process_of(d);

    if (check_process(d) == 0) {
        if (has_open_files(p))
            (void)misused(sd, "files are open at disk_shut()");
        end_process(p, SHUT);
    }
    (void)leave(sd, 0);
}

static const struct disk_vtable sim_ops = {
    .open = sim_open,
    .close = sim_close,
    .read = sim_read,
    .write = sim_write,
    .sync = sim_sync,
    .allocate = sim_allocate,
    .cut = sim_cut,
    .size = sim_size,
    .forget = sim_forget,
    .rename = sim_rename,
    .unlink = sim_unlink,
    .list = sim_list,
    .sync_names = sim_sync_names,
    .lock = sim_lock,
    .check_lock = sim_check_lock,
    .free_bytes = sim_free_bytes,
    .shut = sim_shut,
};

struct disk *
sim_disk_open(struct sim_disk *sd)
{
    struct process *p = sim_alloc(sizeof(*p));

    lock_acquire(&sd->lock);
    p->disk.vtable = &sim_ops;
    p->sd = sd;
    p->next = sd->processes;
    sd->processes = p;
    lock_release(&sd->lock);
    return &p->disk;
}

struct sim_disk *
sim_disk_new(uint64_t seed)
{
    struct sim_disk *sd = sim_alloc(sizeof(*sd));

    lock_init(&sd->lock);
    sd->dice.state = seed;
    sd->strict = true;
    sim_disk_mend(sd);
    return sd;
}

static void
process_free(struct process *p)
{
    end_process(p, DEAD);
    while (p->files != NULL) {
        struct disk_file *f = p->files;

        p->files = f->next;
        free(f);
    }
    free(p);
}

void
sim_disk_free(struct sim_disk *sd)
{
    if (sd == NULL)
        return;
    while (sd->processes != NULL) {
        struct process *p = sd->processes;

        sd->processes = p->next;
        process_free(p);
    }
    sim_folder_fini(&sd->folder);
    lock_fini(&sd->lock);
    free(sd);
}

void
sim_disk_kill(struct sim_disk *sd)
{
    /* Newest first: behind a dead one all are dead. */
    for (struct process *p = sd->processes; p != NULL && p->life != DEAD; p = p->next) {
        if (p->life == ALIVE)
            end_process(p, DEAD);
    }
}

static void
crash(struct sim_disk *sd, struct random *dice)
{
    sim_disk_kill(sd);
    sim_folder_crash(&sd->folder, dice);
    for (struct sim_node *n = sd->folder.nodes; n != NULL; n = n->next)
        sim_file_crash(&n->file, dice);
}

void
sim_disk_crash(struct sim_disk *sd)
{
    crash(sd, &sd->dice);
}

void
sim_disk_crash_losing_all(struct sim_disk *sd)
{
    crash(sd, NULL);
}

struct sim_disk *
sim_disk_copy(struct sim_disk *sd, uint64_t seed)
{
    struct sim_disk *copy = sim_disk_new(seed);

    sim_folder_copy(&sd->folder, &copy->folder);
    return copy;
}

/* ------------------------------------------------------------------ faults */

void
sim_disk_fail(struct sim_disk *sd, enum sim_op op, uint64_t nth, int error)
{
    sd->faults[op] = (struct fault){nth == 0 ? NEVER : sd->stats.ops[op] + nth, error};
}

void
sim_disk_die(struct sim_disk *sd, uint64_t nth)
{
    sd->dies_at = nth == 0 ? NEVER : sd->stats.operations + nth;
}

void
sim_disk_set_space(struct sim_disk *sd, uint64_t bytes)
{
    sd->capacity = bytes == SIM_NO_LIMIT ? SIM_NO_LIMIT : bytes_used(sd) + bytes;
}

void
sim_disk_set_short(struct sim_disk *sd, unsigned percent)
{
    sd->short_percent = percent;
}

void
sim_disk_set_lying(struct sim_disk *sd, bool lying)
{
    sd->lying = lying;
}

void
sim_disk_mend(struct sim_disk *sd)
{
    memset(sd->faults, 0, sizeof(sd->faults));
    sd->dies_at = NEVER;
    sd->capacity = SIM_NO_LIMIT;
    sd->short_percent = 0;
    sd->lying = false;
}

/* The file that this name has after a crash which leaves nothing else. */
static struct sim_node *
find_durable(const struct sim_disk *sd, const char *text)
{
    const struct sim_name *name = sd->folder.names;

    while (name != NULL && strcmp(name->text, text) != 0)
        name = name->next;
    return name == NULL ? NULL : name->durable;
}

void
sim_disk_flip(struct sim_disk *sd, const char *name, uint64_t offset, unsigned bit)
{
    struct sim_node *node = find_durable(sd, name);

    ck_assert_ptr_nonnull(node);
    ck_assert_uint_lt(offset, node->file.durable_size);
    ck_assert_uint_lt(bit, 8);
    sim_file_flip(&node->file, offset, bit);
}

void
sim_disk_set_strict(struct sim_disk *sd, bool strict)
{
    sd->strict = strict;
}

/* ------------------------------------------------------------------ contents */

const struct sim_disk_stats *
sim_disk_stats(const struct sim_disk *sd)
{
    return &sd->stats;
}

size_t
sim_disk_files(const struct sim_disk *sd)
{
    size_t n = 0;

    for (const struct sim_name *at = sd->folder.names; at != NULL; at = at->next)
        n += at->now != NULL;
    return n;
}

uint64_t
sim_disk_bytes(const struct sim_disk *sd)
{
    return bytes_used(sd);
}

bool
sim_disk_durable_size(const struct sim_disk *sd, const char *name, uint64_t *out)
{
    const struct sim_node *node = find_durable(sd, name);

    if (node != NULL)
        *out = node->file.durable_size;
    return node != NULL;
}

void
sim_disk_put(struct sim_disk *sd, const char *name, const void *data, size_t len)
{
    struct sim_node *node = sim_folder_find(&sd->folder, name);

    ck_assert_int_eq(disk_name_check(name), 0);
    if (node != NULL)
        sim_folder_unlink(&sd->folder, node);
    node = sim_folder_make(&sd->folder, name);
    sim_folder_sync(&sd->folder);
    sim_file_write(&node->file, 0, data, len);
    sim_file_sync(&node->file);
}

void *
sim_disk_get(struct sim_disk *sd, const char *name, size_t *len)
{
    const struct sim_node *node = sim_folder_find(&sd->folder, name);
    void *data;

    if (node == NULL)
        return NULL;
    data = sim_alloc((size_t)node->file.size + 1);
    *len = sim_file_read(&node->file, 0, data, (size_t)node->file.size);
    return data;
}
