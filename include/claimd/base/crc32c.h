/*
 * crc32c: the CRC of iSCSI (RFC 3720, polynomial 0x1edc6f41), with the processor's
 * instruction if it has one (SSE4.2, or the CRC extension of ARMv8).
 *
 *   Cost     about 20 GB/s with the instruction, 1 GB/s without
 */
#ifndef CLAIMD_BASE_CRC32C_H
#define CLAIMD_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues from `crc`, which is 0 at the beginning. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

/* The same without the instruction; for tests. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len);

#endif
