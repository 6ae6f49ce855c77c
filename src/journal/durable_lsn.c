#include "journal/durable_lsn.h"

#include "claimd/base/crc32c.h"
#include "journal/wire.h"

/* Where things stand. They are in one sector, which a power cut leaves old or new. */
enum { AT_VERSION = 8, AT_JOURNAL = 16, AT_LSN = 32, AT_SEGMENT = 40, AT_CRC = 60 };
enum { VERSION = 1 };

static const uint8_t magic[8] = {'c', 'l', 'a', 'i', 'm', 'd', 'D', '\n'};

static bool
mark_decode(const uint8_t *from, size_t len, struct durable_lsn *out)
{
    if (len < DURABLE_LSN_BYTES || memcmp(from, magic, sizeof(magic)) != 0 ||
        wire_u32(from + AT_VERSION) != VERSION ||
        wire_u32(from + AT_CRC) != crc32c(0, from, AT_CRC))
        return false;
    memcpy(out->journal, from + AT_JOURNAL, NONCE_BYTES);
    out->lsn = wire_u64(from + AT_LSN);
    out->segment = wire_u64(from + AT_SEGMENT);
    return true;
}

static void
mark_encode(uint8_t to[DURABLE_LSN_BYTES], const struct durable_lsn *mark)
{
    memset(to, 0, DURABLE_LSN_BYTES);
    memcpy(to, magic, sizeof(magic));
    (void)wire_put_u32(to + AT_VERSION, VERSION);
    (void)wire_put(to + AT_JOURNAL, mark->journal, NONCE_BYTES);
    (void)wire_put_u64(to + AT_LSN, mark->lsn);
    (void)wire_put_u64(to + AT_SEGMENT, mark->segment);
    (void)wire_put_u32(to + AT_CRC, crc32c(0, to, AT_CRC));
}

int
durable_lsn_read(struct disk *disk, struct durable_lsn *out)
{
    uint8_t bytes[DURABLE_LSN_BYTES];
    struct disk_file *f;
    size_t got = 0;
    int error = disk_file_open(disk, DURABLE_LSN_NAME, DISK_READ, &f);

    *out = (struct durable_lsn){.lsn = 0};
    if (error != 0)
        return error == ENOENT ? 0 : error;
    error = disk_read(disk, f, 0, bytes, DURABLE_LSN_BYTES, &got);
    disk_close(disk, f);
    if (error == 0 && !mark_decode(bytes, got, out))
        *out = (struct durable_lsn){.lsn = 0};
    return error;
}

int
durable_lsn_write(struct disk *disk, const struct durable_lsn *mark)
{
    uint8_t bytes[DURABLE_LSN_BYTES];
    struct disk_file *f;
    int error = disk_file_open(disk, DURABLE_LSN_NAME, DISK_WRITE, &f);

    if (error == ENOENT)
        error = disk_file_open(disk, DURABLE_LSN_NAME, DISK_NEW, &f);
    if (error != 0)
        return error;
    mark_encode(bytes, mark);
    error = disk_write(disk, f, 0, bytes, DURABLE_LSN_BYTES);
    if (error == 0)
        error = disk_sync(disk, f);
    disk_close(disk, f);
    return error;
}
