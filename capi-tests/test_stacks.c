/* Threads with small stacks call the library, and functions of the application have large ones when the library calls
   them. */

#ifndef _WIN32
#define _GNU_SOURCE
#endif

#include <b2nd.h>

#include "test.h"

#ifdef __linux__
#include <blosc2/filters-registry.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SMALL_STACK = 64 << 10, SIZE = 200000, TYPESIZE = 4 };

/* Runs `work` in a thread with a small stack; some systems want it larger than others. */
static void in_small_thread(void *(*work)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  long least = sysconf(_SC_THREAD_STACK_MIN);
  pthread_attr_init(&attributes);
  CHECK(pthread_attr_setstacksize(&attributes, least > SMALL_STACK ? (size_t)least : SMALL_STACK) == 0);
  if (CHECK(pthread_create(&thread, &attributes, work, argument) == 0)) {
    pthread_join(thread, NULL);
  }
  pthread_attr_destroy(&attributes);
}

struct coding {
  int codec, clevel, filter, meta, use_dict, nthreads;
  bool is_lossy;
  const uint8_t *data;
};

/* Compresses, decompresses and reads a few items. */
static void *code(void *argument) {
  const struct coding *coding = (const struct coding *)argument;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_context *cctx, *dctx;
  uint8_t *chunk = (uint8_t *)test_alloc(SIZE + BLOSC2_MAX_OVERHEAD), *back = (uint8_t *)test_alloc(SIZE);
  int cbytes;
  cparams.compcode = (uint8_t)coding->codec;
  cparams.clevel = (uint8_t)coding->clevel;
  cparams.typesize = TYPESIZE;
  cparams.filters[BLOSC2_MAX_FILTERS - 1] = (uint8_t)coding->filter;
  cparams.filters_meta[BLOSC2_MAX_FILTERS - 1] = (uint8_t)coding->meta;
  cparams.use_dict = coding->use_dict;
  cparams.nthreads = dparams.nthreads = (int16_t)coding->nthreads;
  cctx = blosc2_create_cctx(cparams);
  dctx = blosc2_create_dctx(dparams);
  cbytes = blosc2_compress_ctx(cctx, coding->data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
  CHECK(cbytes > 0);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, SIZE), SIZE);
  CHECK(coding->is_lossy || memcmp(back, coding->data, SIZE) == 0);
  CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 1000, 50, back, SIZE), 50 * TYPESIZE);
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
  free(chunk);
  free(back);
  return NULL;
}

static void all_codecs_and_filters(void) {
  static const int codecs[] = {BLOSC_BLOSCLZ, BLOSC_LZ4, BLOSC_LZ4HC, BLOSC_ZLIB, BLOSC_ZSTD};
  static const int filters[] = {BLOSC_NOFILTER,   BLOSC_SHUFFLE,          BLOSC_BITSHUFFLE,
                                BLOSC_DELTA,      BLOSC_FILTER_BYTEDELTA, BLOSC_FILTER_INT_TRUNC,
                                BLOSC_TRUNC_PREC};
  struct coding coding;
  size_t i;
  int kind;
  memset(&coding, 0, sizeof coding);
  for (kind = 0; kind < TEST_KINDS; kind++) {
    uint8_t *data = test_make_data((enum test_data)kind, SIZE);
    coding.data = data;
    coding.is_lossy = false;
    coding.meta = 0;
    for (i = 0; i < sizeof codecs / sizeof *codecs; i++) {
      coding.codec = codecs[i];
      for (coding.clevel = 1; coding.clevel <= 9; coding.clevel += 4) {
        coding.filter = BLOSC_SHUFFLE;
        for (coding.nthreads = 1; coding.nthreads <= 2; coding.nthreads++) {
          in_small_thread(code, &coding);
        }
        coding.nthreads = 1;
        /* The others take no dictionaries. */
        coding.use_dict = coding.codec != BLOSC_BLOSCLZ && coding.codec != BLOSC_ZLIB;
        in_small_thread(code, &coding);
        coding.use_dict = 0;
      }
    }
    coding.codec = BLOSC_LZ4;
    coding.clevel = 5;
    for (i = 0; i < sizeof filters / sizeof *filters; i++) {
      coding.filter = filters[i];
      coding.is_lossy = filters[i] == BLOSC_FILTER_INT_TRUNC || filters[i] == BLOSC_TRUNC_PREC;
      coding.meta = coding.is_lossy ? 10 : TYPESIZE;
      in_small_thread(code, &coding);
    }
    free(data);
  }
}

#define ARRAY "test_stacks.b2nd"

enum { SIDE = 60, PART = SIDE - 2 };

/* Makes an array and does everything with it that arrays are for. */
static void *use_arrays(void *argument) {
  const struct coding *coding = (const struct coding *)argument;
  int64_t shape[] = {SIDE, SIDE}, start[] = {1, 1}, stop[] = {SIDE - 1, SIDE - 1}, part[] = {PART, PART};
  int64_t more[] = {SIDE + 5, SIDE}, index[] = {3, 50}, lengths[] = {2, 2}, coords[] = {5, 700};
  int64_t *selection[] = {index, index};
  int32_t chunkshape[] = {25, 25}, blockshape[] = {10, 10};
  int64_t size = SIDE * SIDE * TYPESIZE, part_size = PART * PART * TYPESIZE, few = 4 * TYPESIZE;
  uint8_t *back = (uint8_t *)test_alloc((size_t)size);
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS, in_memory = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx, *other;
  b2nd_array_t *array = NULL, *second = NULL;
  cparams.typesize = TYPESIZE;
  cparams.compcode = (uint8_t)coding->codec;
  cparams.nthreads = (int16_t)coding->nthreads;
  storage.cparams = in_memory.cparams = &cparams;
  storage.urlpath = (char *)ARRAY;
  storage.contiguous = coding->codec == BLOSC_ZLIB;
  blosc2_remove_urlpath(ARRAY);
  ctx = b2nd_create_ctx(&storage, 2, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
  other = b2nd_create_ctx(&in_memory, 2, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, coding->data, size), 0);
  CHECK_INT(b2nd_get_slice_cbuffer(array, start, stop, back, part, part_size), 0);
  CHECK_INT(b2nd_set_slice_cbuffer(back, part, part_size, start, stop, array), 0);
  CHECK_INT(b2nd_get_orthogonal_selection(array, selection, lengths, back, lengths, few), 0);
  CHECK_INT(b2nd_set_orthogonal_selection(array, selection, lengths, back, lengths, few), 0);
  CHECK_INT(b2nd_get_sparse_cbuffer(array, 2, coords, back, 2 * TYPESIZE), 0);
  CHECK_INT(b2nd_to_cbuffer(array, back, size), 0);
  CHECK_BYTES(back, coding->data, (size_t)size);
  REQUIRE_INT(b2nd_get_slice(other, &second, array, start, stop), 0);
  CHECK_INT(b2nd_free(second), 0);
  REQUIRE_INT(b2nd_concatenate(other, array, array, 1, true, &second), 0);
  CHECK_INT(b2nd_free(second), 0);
  REQUIRE_INT(b2nd_copy(other, array, &second), 0);
  CHECK_INT(b2nd_free(second), 0);
  CHECK_INT(b2nd_resize(array, more, NULL), 0);
  CHECK_INT(blosc2_vlmeta_add(array->sc, "name", back, 100, NULL), 0);
  CHECK_INT(b2nd_free(array), 0);
  REQUIRE_INT(b2nd_open(ARRAY, &array), 0);
  CHECK_INT(array->shape[0], SIDE + 5);
  CHECK_INT(b2nd_free(array), 0);
  b2nd_free_ctx(ctx);
  b2nd_free_ctx(other);
  CHECK_INT(blosc2_remove_urlpath(ARRAY), 0);
  free(back);
  return NULL;
}

static void arrays(void) {
  static const int codecs[] = {BLOSC_BLOSCLZ, BLOSC_ZLIB, BLOSC_ZSTD};
  uint8_t *data = test_make_data(TEST_RAMP, SIZE);
  struct coding coding;
  size_t i;
  memset(&coding, 0, sizeof coding);
  coding.data = data;
  for (i = 0; i < sizeof codecs / sizeof *codecs; i++) {
    coding.codec = codecs[i];
    coding.nthreads = 1 + (int)i;
    in_small_thread(use_arrays, &coding);
  }
  free(data);
}

enum { DEEP = 3 << 20, FRAME = 128 << 10, NTHREADS = 3 };

/* Uses `nbytes` bytes of the stack. */
static int dig(long nbytes) {
  volatile uint8_t frame[FRAME];
  frame[0] = 1;
  return nbytes > FRAME ? dig(nbytes - FRAME) + frame[0] : frame[0];
}

/* A prefilter that uses much of its stack. */
static int deep(blosc2_prefilter_params *params) {
  memset(params->output, dig(DEEP), (size_t)params->output_size);
  ((volatile bool *)params->user_data)[params->tid] = true;
  usleep(1000);
  return 0;
}

/* The library's threads have stacks like those of the application. */
static void stacks_of_workers(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_prefilter_params params;
  bool seen[NTHREADS] = {false, false, false};
  uint8_t *data = test_make_data(TEST_ZEROS, SIZE), *chunk = (uint8_t *)test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  blosc2_context *cctx;
  struct rlimit limit;
  pthread_attr_t attributes;
  size_t usual = 0;
  int tries;
  pthread_attr_init(&attributes);
  pthread_attr_getstacksize(&attributes, &usual);
  pthread_attr_destroy(&attributes);
  if (usual < 2 * DEEP || getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur < 2 * DEEP) {
    test_skip("stacks of workers: those of threads are smaller here");
    free(data);
    free(chunk);
    return;
  }
  memset(&params, 0, sizeof params);
  params.user_data = seen;
  cparams.nthreads = NTHREADS;
  cparams.typesize = 1;
  cparams.blocksize = SIZE / 20;
  cparams.prefilter = deep;
  cparams.preparams = &params;
  cctx = blosc2_create_cctx(cparams);
  for (tries = 0; tries < 100 && !(seen[1] && seen[2]); tries++) {
    CHECK(blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD) > 0);
  }
  CHECK(seen[1] && seen[2]);
  CHECK_INT(blosc1_getitem(chunk, SIZE - 1, 1, data), 1);
  CHECK_INT(data[0], DEEP / FRAME);
  blosc2_free_ctx(cctx);
  free(data);
  free(chunk);
}
#endif

int main(void) {
  blosc2_init();
#ifdef __linux__
  all_codecs_and_filters();
  arrays();
  stacks_of_workers();
#endif
  CHECK(1);
  blosc2_destroy();
  return test_end();
}
