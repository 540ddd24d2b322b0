/* Written by `cargo xtask headers` from cbindgen/ and src/capi/; edit those. */
/* The two file back-ends of the Blosc2 library: plain and memory-mapped files. */

#ifndef BLOSC_BLOSC2_BLOSC2_STDIO_H
#define BLOSC_BLOSC2_BLOSC2_STDIO_H

#include "blosc2-export.h"

#if defined(_MSC_VER)
#include <io.h>
#else
#include <unistd.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(_WIN32)
#include <windows.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Plain files ---- */

/**
 * The stream of the plain-file back-end.
 */
typedef struct blosc2_stdio_file {
  /**
   * The open file.
   */
  FILE *file;
} blosc2_stdio_file;

/**
 * The parameters of the plain-file back-end. They must outlive the super-chunks opened with them.
 */
typedef struct blosc2_stdio_params {
  /**
   * Whether accesses are serialised with those of other handles and processes, by a lock file beside the frame.
   * The environment variable `BLOSC_LOCKING` does the same for every frame.
   */
  bool locking;
} blosc2_stdio_params;

/** The defaults of `blosc2_stdio_params`: no locking. */
static const blosc2_stdio_params BLOSC2_STDIO_PARAMS_DEFAULTS = {false};

/* ---- Memory-mapped files ---- */

/**
 * The parameters of the memory-mapping back-end, and the state of the mapping.
 *
 * The caller sets the first three fields and takes the others from `BLOSC2_STDIO_MMAP_DEFAULTS`. One struct serves
 * one super-chunk, and lives at least as long.
 */
typedef struct blosc2_stdio_mmap {
  /**
   * `"r"` to read a file, `"r+"` to change it, `"w+"` to create it, `"c"` to change it in memory only.
   */
  const char *mode;
  /**
   * Bytes to map at first, where the file can grow (modes `r+`, `w+`, `c`).
   */
  size_t initial_mapping_size;
  /**
   * Whether the library releases this struct with `free()` together with the super-chunk.
   */
  bool needs_free;
  /**
   * State: start of the mapping.
   */
  char *addr;
  /**
   * State: the path.
   */
  char *urlpath;
  /**
   * State: bytes in the file.
   */
  size_t file_size;
  /**
   * State: bytes mapped.
   */
  size_t mapping_size;
  /**
   * State: whether changes stay in memory (mode `c`).
   */
  bool is_memory_only;
  /**
   * State: the open file.
   */
  FILE *file;
  /**
   * State: its descriptor.
   */
  int fd;
  /**
   * State: access flags of the mapping.
   */
  int64_t access_flags;
  /**
   * State: other flags of the mapping.
   */
  int64_t map_flags;
} blosc2_stdio_mmap;

/** The defaults of `blosc2_stdio_mmap`: an existing file, to read. */
static const blosc2_stdio_mmap BLOSC2_STDIO_MMAP_DEFAULTS = {
    "r", ((size_t)1 << 30), false, NULL, NULL, 0, 0, false, NULL, -1, -1, -1
#if defined(_WIN32)
    , INVALID_HANDLE_VALUE
#endif
};

#ifdef __cplusplus
}
#endif

#endif /* BLOSC_BLOSC2_BLOSC2_STDIO_H */
