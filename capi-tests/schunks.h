/* Super-chunks for tests: small, of 32-bit items, in each place where one can be kept. Define NAME, the prefix of the
 * paths, before including this. */

#ifndef CAPI_TESTS_SCHUNKS_H
#define CAPI_TESTS_SCHUNKS_H

#include "test.h"

#include <blosc2.h>

/* Items and bytes of a chunk. */
#define ITEMS 100
#define BYTES (ITEMS * 4)

#define FILE_PATH NAME ".b2frame"
#define DIR_PATH NAME "_dir.b2frame"

/* The four places. */
static const struct {
  const char *name;
  bool contiguous;
  const char *urlpath;
} places[] = {
    {"sparse in memory", false, NULL},
    {"contiguous in memory", true, NULL},
    {"file", true, FILE_PATH},
    {"directory", false, DIR_PATH},
};
#define NPLACES ((int)(sizeof places / sizeof places[0]))

/* The items of chunk `nchunk`. */
static inline void fill(int32_t *items, int nchunk) {
  int i;
  for (i = 0; i < ITEMS; i++) {
    items[i] = nchunk * ITEMS * 1000 + i * i;
  }
}

static inline void append_chunks(blosc2_schunk *schunk, int nchunks) {
  int32_t items[ITEMS];
  int i;
  for (i = 0; i < nchunks; i++) {
    fill(items, i);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), i + 1);
  }
}

/* A super-chunk without chunks; what was at its place before is removed. */
static inline blosc2_schunk *make_empty(int place, blosc2_cparams *cparams) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  storage.cparams = cparams;
  storage.contiguous = places[place].contiguous;
  storage.urlpath = (char *)places[place].urlpath;
  blosc2_remove_urlpath(storage.urlpath);
  schunk = blosc2_schunk_new(&storage);
  if (!CHECK(schunk != NULL)) {
    printf("cannot make a super-chunk: %s\n", places[place].name);
    exit(EXIT_FAILURE);
  }
  return schunk;
}

static inline blosc2_schunk *make(int place, int nchunks) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_schunk *schunk;
  cparams.typesize = 4;
  schunk = make_empty(place, &cparams);
  append_chunks(schunk, nchunks);
  return schunk;
}

static inline void release(int place, blosc2_schunk *schunk) {
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  blosc2_remove_urlpath(places[place].urlpath);
}

#endif /* CAPI_TESTS_SCHUNKS_H */
