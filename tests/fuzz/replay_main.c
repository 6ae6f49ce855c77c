/*
 * Goes through files and folders of inputs with a fuzz target, once each: the regression
 * test that every build has, whatever its compiler.
 */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The whole file in a block of its size; ends the program if it cannot be read. */
static uint8_t *
read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re");
    struct stat st;
    uint8_t *data;

    fuzz_check(file != NULL && fstat(fileno(file), &st) == 0, "%s: %s", path,
               strerror(errno));
    *size = (size_t)st.st_size;
    data = malloc(*size == 0 ? 1 : *size);
    fuzz_check(data != NULL && fread(data, 1, *size, file) == *size, "%s: cannot be read",
               path);
    (void)fclose(file); /* nothing was written */
    return data;
}

static size_t
replay_file(const char *path)
{
    size_t size;
    uint8_t *data = read_file(path, &size);

    /* Known in time, should this input end the program. */
    (void)printf("%s\n", path);
    (void)fflush(stdout);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static int
visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static size_t
replay_folder(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, visible, alphasort);
    size_t done = 0;

    fuzz_check(count >= 0, "%s: %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        char file[4096];

        (void)snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name);
        done += replay_file(file);
        free(entries[i]);
    }
    free(entries);
    return done;
}

int
main(int argc, char **argv)
{
    size_t done = 0;

    for (int i = 1; i < argc; i++) {
        struct stat st;

        fuzz_check(stat(argv[i], &st) == 0, "%s: %s", argv[i], strerror(errno));
        done += S_ISDIR(st.st_mode) ? replay_folder(argv[i]) : replay_file(argv[i]);
    }
    (void)printf("%zu inputs\n", done);
    return done > 0 ? EXIT_SUCCESS : EXIT_FAILURE; /* a test of nothing is none */
}
