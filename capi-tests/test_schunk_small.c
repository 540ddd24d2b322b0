/* Small chunks, whose reading is over in less time than a lock takes: in a process with one thread and with more, alone
 * and with help, everything read is what was written. */

#define NAME "test_schunk_small"
#include "schunks.h"

#include <pthread.h>

#define CHUNKS 5
#define LARGEST 12000
#define MARGIN 40

/* What the super-chunk of the moment holds, and how many bytes these are. */
static uint8_t data[CHUNKS * LARGEST];
static int32_t nbytes;

static void fill_data(int kind, int typesize) {
  uint32_t random = 1;
  int i;
  for (i = 0; i < CHUNKS * LARGEST; i++) {
    random = random * 1103515245U + 12345U;
    if (kind == 0) {
      data[i] = (uint8_t)(i % typesize == 0 ? i / typesize : 0);
    } else if (kind == 1) {
      data[i] = (uint8_t)(random >> 24);
    } else {
      data[i] = (uint8_t)(i % typesize == 0 ? random >> 24 : (random >> 30 == 0));
    }
  }
}

/* Reads into the middle of a buffer; whatever is around stays as it is. */
static void check_read(int rc, int expected_rc, const uint8_t *buffer, const uint8_t *expected, int32_t len) {
  static const uint8_t around[MARGIN] = {0};
  CHECK_INT(rc, expected_rc);
  CHECK_BYTES(buffer, around, MARGIN);
  CHECK_BYTES(buffer + MARGIN, expected, (size_t)len);
  CHECK_BYTES(buffer + MARGIN + len, around, MARGIN);
}

static void chunks_are_read_whole(blosc2_schunk *schunk, int place, int32_t chunksize) {
  static uint8_t buffer[LARGEST + 2 * MARGIN];
  int nchunk;
  for (nchunk = 0; nchunk < CHUNKS; nchunk++) {
    int32_t start = nchunk * chunksize;
    int32_t len = nbytes - start < chunksize ? nbytes - start : chunksize;
    int rc;
    memset(buffer, 0, sizeof buffer);
    rc = blosc2_schunk_decompress_chunk(schunk, nchunk, buffer + MARGIN, len);
    check_read(rc, len, buffer, data + start, len);
    CHECK_INT(schunk->current_nchunk, nchunk);
    memset(buffer, 0, sizeof buffer);
    rc = blosc2_schunk_decompress_chunk(schunk, nchunk, buffer + MARGIN, len + MARGIN);
    check_read(rc, len, buffer, data + start, len);
    memset(buffer, 0, sizeof buffer);
    rc = blosc2_schunk_decompress_chunk(schunk, nchunk, buffer + MARGIN, len - 1);
    CHECK_INT(rc, places[place].contiguous || places[place].urlpath != NULL ? BLOSC2_ERROR_WRITE_BUFFER
                                                                          : BLOSC2_ERROR_INVALID_PARAM);
  }
  CHECK(blosc2_schunk_decompress_chunk(schunk, CHUNKS, buffer, LARGEST) < 0);
  CHECK(blosc2_schunk_decompress_chunk(schunk, -1, buffer, LARGEST) < 0);
  CHECK(blosc2_schunk_decompress_chunk(schunk, 0, buffer, -1) < 0);
}

static void check_slice(blosc2_schunk *schunk, int64_t start, int64_t stop) {
  static uint8_t buffer[CHUNKS * LARGEST + 2 * MARGIN];
  int typesize = schunk->typesize;
  int32_t len = (int32_t)(stop - start) * typesize;
  memset(buffer, 0, (size_t)len + 2 * MARGIN);
  check_read(blosc2_schunk_get_slice_buffer(schunk, start, stop, buffer + MARGIN), 0, buffer, data + start * typesize,
             len);
  CHECK_INT(schunk->current_nchunk, (stop * typesize - 1) / schunk->chunksize);
}

static void slices_are_read(blosc2_schunk *schunk) {
  static uint8_t buffer[100];
  int64_t nitems = nbytes / schunk->typesize;
  int64_t in_chunk = schunk->chunksize / schunk->typesize;
  int64_t i;
  for (i = 0; i < CHUNKS; i++) {
    int64_t first = i * in_chunk;
    int64_t last = first + in_chunk < nitems ? first + in_chunk : nitems;
    check_slice(schunk, first, last);
    check_slice(schunk, first, first + 1);
    check_slice(schunk, last - 1, last);
    check_slice(schunk, first + (last - first) / 3, last - (last - first) / 4);
    check_slice(schunk, first + (last - first) / 2, nitems);
  }
  check_slice(schunk, 0, nitems);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, nitems - 1, nitems + 1, buffer), BLOSC2_ERROR_FAILURE);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, -1, 1, buffer), BLOSC2_ERROR_FAILURE);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 1, 1, buffer), 0);
}

/* A super-chunk with the data, whose last chunk is shorter than the others. */
static blosc2_schunk *make_of(int place, blosc2_cparams *cparams, int32_t chunksize) {
  blosc2_schunk *schunk = make_empty(place, cparams);
  int32_t start;
  nbytes = chunksize * CHUNKS - chunksize / cparams->typesize / 3 * cparams->typesize;
  for (start = 0; start < nbytes; start += chunksize) {
    int32_t len = nbytes - start < chunksize ? nbytes - start : chunksize;
    CHECK_INT(blosc2_schunk_append_buffer(schunk, data + start, len), start / chunksize + 1);
  }
  return schunk;
}

static void check_super_chunk(int place, blosc2_cparams *cparams, int32_t chunksize) {
  blosc2_schunk *schunk = make_of(place, cparams, chunksize);
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  int16_t nthreads;
  dparams.schunk = schunk;
  for (nthreads = 1; nthreads <= 2; nthreads++) {
    dparams.nthreads = nthreads;
    blosc2_free_ctx(schunk->dctx);
    schunk->dctx = blosc2_create_dctx(dparams);
    chunks_are_read_whole(schunk, place, chunksize);
    slices_are_read(schunk);
  }
  release(place, schunk);
}

static void check_all(int place) {
  static const int32_t items[] = {1, 7, 60, 333, 1024};
  static const uint8_t codecs[] = {BLOSC_BLOSCLZ, BLOSC_LZ4, BLOSC_ZLIB, BLOSC_ZSTD};
  static const uint8_t filters[] = {BLOSC_NOFILTER, BLOSC_SHUFFLE, BLOSC_BITSHUFFLE, BLOSC_DELTA};
  static const int32_t typesizes[] = {1, 3, 4, 8};
  int i, codec, filter, kind;
  for (i = 0; i < 4; i++) {
    for (kind = 0; kind < 3; kind++) {
      fill_data(kind, typesizes[i]);
      for (codec = 0; codec < 4; codec++) {
        for (filter = 0; filter < 4; filter++) {
          blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
          int size = (codec + filter + kind + i) % 5;
          cparams.typesize = typesizes[i];
          cparams.compcode = codecs[codec];
          cparams.filters[BLOSC2_MAX_FILTERS - 1] = filters[filter];
          check_super_chunk(place, &cparams, items[size] * typesizes[i]);
          check_super_chunk(place, &cparams, items[4] * typesizes[i]);
          cparams.blocksize = 512;
          check_super_chunk(place, &cparams, items[3] * typesizes[i]);
        }
      }
    }
  }
}

/* A postfilter that reads the super-chunk for which it is called, and another one. */
static blosc2_schunk *other;
static int calls;

static int read_others(blosc2_postfilter_params *params) {
  int32_t items[ITEMS], wanted[ITEMS];
  fill(wanted, 2);
  CHECK_INT(blosc2_schunk_decompress_chunk(other, 2, items, BYTES), BYTES);
  CHECK_BYTES(items, wanted, BYTES);
  CHECK_INT(blosc2_schunk_get_slice_buffer(other, 2 * ITEMS + 5, 2 * ITEMS + 9, items), 0);
  CHECK_BYTES(items, wanted + 5, 16);
  memcpy(params->output, params->input, (size_t)params->size);
  calls++;
  return 0;
}

static void callbacks_read_small_chunks(int place) {
  blosc2_schunk *schunk = make(place, 3);
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_postfilter_params postparams = {0};
  int32_t items[ITEMS], wanted[ITEMS];
  other = make(0, 3);
  dparams.postfilter = read_others;
  dparams.postparams = &postparams;
  dparams.schunk = schunk;
  blosc2_free_ctx(schunk->dctx);
  schunk->dctx = blosc2_create_dctx(dparams);
  calls = 0;
  fill(wanted, 1);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, items, BYTES), BYTES);
  CHECK_BYTES(items, wanted, BYTES);
  CHECK_INT(calls, 1);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, ITEMS, ITEMS + 4, items), 0);
  CHECK_INT(calls, 2);
  release(0, other);
  release(place, schunk);
}

/* A typesize that the client assigns counts from then on. */
static void an_assigned_typesize_counts(int place) {
  blosc2_schunk *schunk = make(place, 3);
  int32_t items[ITEMS], wanted[ITEMS];
  fill(wanted, 1);
  schunk->typesize = 8;
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, ITEMS / 2, ITEMS / 2 + 2, items), 0);
  CHECK_BYTES(items, wanted, 16);
  release(place, schunk);
}

static void check_places(void) {
  int place;
  for (place = 0; place < NPLACES; place++) {
    /* Of what is on disk, a part: the rest is about memory. */
    if (places[place].urlpath == NULL) {
      check_all(place);
    } else {
      blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
      cparams.typesize = 4;
      fill_data(0, 4);
      check_super_chunk(place, &cparams, 800);
    }
    callbacks_read_small_chunks(place);
    an_assigned_typesize_counts(place);
  }
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_the_end(void *unused) {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  return unused;
}

int main(void) {
  pthread_t thread;
  blosc2_init();
  check_places();
  pthread_mutex_lock(&mutex);
  CHECK_INT(pthread_create(&thread, NULL, wait_for_the_end, NULL), 0);
  check_places();
  pthread_mutex_unlock(&mutex);
  CHECK_INT(pthread_join(thread, NULL), 0);
  blosc2_destroy();
  return test_end();
}
