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

/**
 * Opens a file in the `fopen` mode `mode`; returns a handle, or NULL. `params` is not used.
 *
 * Requirements:
 *
 * `urlpath` and `mode` are NULL or strings.
 */
BLOSC_EXPORT void *blosc2_stdio_open(const char *urlpath, const char *mode, void *params);

/**
 * Closes a file; returns 0, or another value on failure.
 *
 * Requirements:
 *
 * `stream` is NULL or comes from `blosc2_stdio_open` and is not used any more.
 */
BLOSC_EXPORT int blosc2_stdio_close(void *stream);

/**
 * The size of a file in bytes, with what the buffer of the stream holds, or -1, also for pipes and their like. The
 * position of the stream stays.
 *
 * Requirements:
 *
 * `stream` is NULL or a `blosc2_stdio_file` with an open file.
 */
BLOSC_EXPORT
int64_t blosc2_stdio_size(void *stream);

/**
 * Writes `nitems` items of `size` bytes at byte `position`; returns the number of items written.
 *
 * Requirements:
 *
 * `stream` is NULL or a `blosc2_stdio_file` with an open file; `ptr` is NULL or readable for that many bytes.
 */
BLOSC_EXPORT
int64_t blosc2_stdio_write(const void *ptr,
                           int64_t size,
                           int64_t nitems,
                           int64_t position,
                           void *stream);

/**
 * Reads `nitems` items of `size` bytes at byte `position` into the buffer `*ptr`; returns the number of whole items
 * read.
 *
 * Requirements:
 *
 * `stream` is NULL or a `blosc2_stdio_file` with an open file; `ptr` is NULL or points to NULL or to a buffer for that
 * many bytes.
 */
BLOSC_EXPORT
int64_t blosc2_stdio_read(void **ptr,
                          int64_t size,
                          int64_t nitems,
                          int64_t position,
                          void *stream);

/**
 * Cuts or extends a file to `size` bytes; returns 0, or -1.
 *
 * Requirements:
 *
 * `stream` is NULL or a `blosc2_stdio_file` with an open file.
 */
BLOSC_EXPORT int blosc2_stdio_truncate(void *stream, int64_t size);

/**
 * Does nothing; returns 0.
 *
 * Requirements:
 *
 * None; it has the type of the callback.
 */
BLOSC_EXPORT int blosc2_stdio_destroy(void *params);

/* ---- Memory-mapped files ---- */

/**
 * The parameters of the memory-mapping back-end, and the state of the mapping.
 *
 * The caller sets the first three fields and takes the others from `BLOSC2_STDIO_MMAP_DEFAULTS`. One struct serves
 * one super-chunk, and lives at least as long.
 *
 * `mode` becomes NULL when the file was mapped; set it again before the struct is used for another file. A call that
 * fails to open has ended the mapping, and released the struct if `needs_free` is set; after a call that fails to make
 * or copy a super-chunk, end the mapping with `blosc2_stdio_mmap_destroy`.
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
#if defined(_WIN32)
  /**
   * State: the handle of the mapping.
   */
  void *mmap_handle;
#endif
} blosc2_stdio_mmap;

/** The defaults of `blosc2_stdio_mmap`: an existing file, to read. */
static const blosc2_stdio_mmap BLOSC2_STDIO_MMAP_DEFAULTS = {
    "r", ((size_t)1 << 30), false, NULL, NULL, 0, 0, false, NULL, -1, -1, -1
#if defined(_WIN32)
    , INVALID_HANDLE_VALUE
#endif
};

/**
 * Maps the file `urlpath` as the `blosc2_stdio_mmap` behind `params` says; returns `params`, or NULL. `mode` is not
 * used.
 *
 * A file that is mapped already is not mapped again.
 *
 * Requirements:
 *
 * `urlpath` is NULL or a string; `params` is NULL or a `blosc2_stdio_mmap` that outlives its use.
 */
BLOSC_EXPORT
void *blosc2_stdio_mmap_open(const char *urlpath,
                             const char *mode,
                             void *params);

/**
 * Does nothing, since the mapping stays until it is destroyed; returns 0.
 *
 * Requirements:
 *
 * None; it has the type of the callback.
 */
BLOSC_EXPORT int blosc2_stdio_mmap_close(void *stream);

/**
 * The size of the mapped file in bytes, or -1.
 *
 * Requirements:
 *
 * `stream` is NULL or a `blosc2_stdio_mmap`.
 */
BLOSC_EXPORT int64_t blosc2_stdio_mmap_size(void *stream);

/**
 * Writes `nitems` items of `size` bytes at byte `position`; returns `nitems`, or 0.
 *
 * Requirements:
 *
 * `stream` is NULL or a `blosc2_stdio_mmap` that no other thread uses; `ptr` is NULL or readable for that many bytes.
 */
BLOSC_EXPORT
int64_t blosc2_stdio_mmap_write(const void *ptr,
                                int64_t size,
                                int64_t nitems,
                                int64_t position,
                                void *stream);

/**
 * Stores the address of `nitems` items of `size` bytes at byte `position` in `*ptr`; returns `nitems`, or 0 with NULL
 * stored if the file has not that many.
 *
 * Requirements:
 *
 * `stream` is NULL or a `blosc2_stdio_mmap` that no other thread changes; `ptr` is NULL or writable.
 */
BLOSC_EXPORT
int64_t blosc2_stdio_mmap_read(void **ptr,
                               int64_t size,
                               int64_t nitems,
                               int64_t position,
                               void *stream);

/**
 * Cuts or extends the mapped file to `size` bytes; returns 0, or -1.
 *
 * Requirements:
 *
 * `stream` is NULL or a `blosc2_stdio_mmap` that no other thread uses.
 */
BLOSC_EXPORT int blosc2_stdio_mmap_truncate(void *stream, int64_t size);

/**
 * Ends a mapping: writes it to the file, unless it is private, and closes that. The struct is released if its
 * `needs_free` is set. Returns 0, or -1, also if nothing was mapped.
 *
 * Requirements:
 *
 * `params` is NULL or a `blosc2_stdio_mmap` that nobody uses any more, from `malloc` if its `needs_free` is set.
 */
BLOSC_EXPORT
int blosc2_stdio_mmap_destroy(void *params);

#ifdef __cplusplus
}
#endif

#endif /* BLOSC_BLOSC2_BLOSC2_STDIO_H */
