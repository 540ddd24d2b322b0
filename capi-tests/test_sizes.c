/* Sizes at their limits and beyond 32 bits: buffers, files, super-chunks and arrays of special values. */

#ifndef _WIN32
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#endif

#include <b2nd.h>
#include <limits.h>

#include "test.h"

#ifdef __linux__
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* The largest buffers are compressed, larger ones are not, whatever the destination has room for. */
static void largest_buffers(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_context *cctx, *dctx;
  static uint8_t chunk[1 << 20];
  uint8_t items[80], zeros[80] = {0};
  int32_t nbytes, cbytes, blocksize;
  /* Zeros without memory. */
  void *data = mmap(NULL, INT_MAX, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    test_skip("the largest buffers, for which there is no room");
    return;
  }
  cctx = blosc2_create_cctx(cparams);
  dctx = blosc2_create_dctx(dparams);
  CHECK_INT(blosc2_compress_ctx(cctx, data, INT_MAX, chunk, sizeof chunk), BLOSC2_ERROR_MAX_BUFSIZE_EXCEEDED);
  CHECK_INT(blosc2_compress_ctx(cctx, data, BLOSC2_MAX_BUFFERSIZE + 1, chunk, sizeof chunk),
            BLOSC2_ERROR_MAX_BUFSIZE_EXCEEDED);
  CHECK_INT(blosc2_compress(5, 1, 8, data, BLOSC2_MAX_BUFFERSIZE + 1, chunk, sizeof chunk),
            BLOSC2_ERROR_MAX_BUFSIZE_EXCEEDED);
  CHECK_INT(blosc2_compress_ctx(cctx, data, BLOSC2_MAX_BUFFERSIZE, chunk, sizeof chunk), BLOSC_EXTENDED_HEADER_LENGTH);
  CHECK_INT(blosc2_cbuffer_sizes(chunk, &nbytes, &cbytes, &blocksize), 0);
  CHECK_INT(nbytes, BLOSC2_MAX_BUFFERSIZE);
  memset(items, 1, sizeof items);
  CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, BLOSC2_MAX_BUFFERSIZE / 8 - 10, 10, items, sizeof items), 80);
  CHECK_BYTES(items, zeros, sizeof items);
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
  munmap(data, INT_MAX);
}

#define LARGE "test_sizes.b2frame"

/* Frames behind 5 GiB of a file, which has holes there. */
static void far_frames(void) {
  static const int64_t start = (int64_t)5 << 30;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  uint8_t *data = test_make_data(TEST_RAMP, 100000), *back = (uint8_t *)test_alloc(100000);
  blosc2_schunk *schunk;
  int32_t item = 0;
  int file = open(LARGE, O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(file >= 0);
  if (ftruncate(file, start) != 0) {
    test_skip("files of 5 GiB, for which there is no room");
  } else {
    cparams.typesize = 4;
    storage.cparams = &cparams;
    storage.contiguous = true;
    schunk = blosc2_schunk_new(&storage);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 100000), 1);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 100000), 2);
    CHECK_INT(blosc2_vlmeta_add(schunk, "name", data, 100, NULL), 0);
    CHECK_INT(blosc2_schunk_append_file(schunk, LARGE), start);
    blosc2_schunk_free(schunk);
    schunk = blosc2_schunk_open_offset(LARGE, start);
    if (CHECK(schunk != NULL)) {
      CHECK_INT(schunk->nchunks, 2);
      CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, back, 100000), 100000);
      CHECK_BYTES(back, data, 100000);
      CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 49999, 50000, &item), 0);
      CHECK_BYTES(&item, data + 99996, 4);
      CHECK_INT(blosc2_vlmeta_exists(schunk, "name"), 0);
      blosc2_schunk_free(schunk);
    }
  }
  close(file);
  CHECK(unlink(LARGE) == 0);
  free(data);
  free(back);
}
#endif

/* Super-chunks of more items than 32 bits count, and more bytes than there are. */
static void long_super_chunks(void) {
  static const int64_t lengths[] = {((int64_t)1 << 31) + 1, ((int64_t)1 << 33) + 5, (int64_t)1 << 37};
  int64_t items[4], written[] = {1, 2, 3};
  size_t i;
  int contiguous;
  for (contiguous = 0; contiguous < 2; contiguous++) {
    for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
      int64_t n = lengths[i];
      blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
      blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
      blosc2_schunk *schunk;
      cparams.typesize = 8;
      storage.cparams = &cparams;
      storage.contiguous = contiguous != 0;
      schunk = blosc2_schunk_new(&storage);
      REQUIRE(schunk != NULL);
      CHECK_INT(blosc2_schunk_fill_special(schunk, n, BLOSC2_SPECIAL_ZERO, 1 << 24), (n * 8 + (1 << 24) - 1) >> 24);
      CHECK_INT(schunk->nbytes, n * 8);
      CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, n - 3, n, written), 0);
      memset(items, 9, sizeof items);
      CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, n - 4, n, items), 0);
      CHECK_INT(items[0], 0);
      CHECK_BYTES(items + 1, written, sizeof written);
      blosc2_schunk_free(schunk);
    }
  }
}

/* Zeros of the given shape, and whether its far corner is written and read. */
static void far_corner(int8_t ndim, const int64_t *shape, const int32_t *chunkshape, const int32_t *blockshape) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  int64_t start[B2ND_MAX_DIM], one[B2ND_MAX_DIM], larger[B2ND_MAX_DIM], last;
  uint8_t item = 7, back = 0;
  int8_t i;
  cparams.typesize = 1;
  storage.cparams = &cparams;
  storage.contiguous = true;
  ctx = b2nd_create_ctx(&storage, ndim, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
  REQUIRE_INT(b2nd_zeros(ctx, &array), 0);
  last = 1;
  for (i = 0; i < ndim; i++) {
    last *= shape[i];
    start[i] = shape[i] - 1;
    one[i] = 1;
    larger[i] = shape[i];
  }
  last -= 1;
  CHECK_INT(array->nitems, last + 1);
  CHECK_INT(b2nd_set_slice_cbuffer(&item, one, 1, start, shape, array), 0);
  CHECK_INT(b2nd_get_slice_cbuffer(array, start, shape, &back, one, 1), 0);
  CHECK_INT(back, 7);
  back = 0;
  CHECK_INT(b2nd_get_sparse_cbuffer(array, 1, &last, &back, 1), 0);
  CHECK_INT(back, 7);
  larger[0] = INT64_MAX;
  CHECK_INT(b2nd_resize(array, larger, NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(array->shape[0], shape[0]);
  larger[0] = shape[0] + chunkshape[0];
  CHECK_INT(b2nd_resize(array, larger, NULL), 0);
  CHECK_INT(array->shape[0], larger[0]);
  back = 0;
  CHECK_INT(b2nd_get_slice_cbuffer(array, start, shape, &back, one, 1), 0);
  CHECK_INT(back, 7);
  CHECK_INT(b2nd_free(array), 0);
  b2nd_free_ctx(ctx);
}

/* Arrays of terabytes, and of as many dimensions as there can be. */
static void huge_arrays(void) {
  int64_t shape[B2ND_MAX_DIM];
  int32_t chunkshape[B2ND_MAX_DIM], blockshape[B2ND_MAX_DIM];
  int i;
  shape[0] = shape[1] = 1000000;
  chunkshape[0] = chunkshape[1] = 10000;
  blockshape[0] = blockshape[1] = 100;
  far_corner(2, shape, chunkshape, blockshape);
  shape[0] = (int64_t)1 << 40;
  chunkshape[0] = 1 << 27;
  blockshape[0] = 1 << 12;
  far_corner(1, shape, chunkshape, blockshape);
  for (i = 0; i < B2ND_MAX_DIM; i++) {
    shape[i] = 4;
    chunkshape[i] = i < 12 ? 4 : 1;
    blockshape[i] = i < 4 ? 4 : 1;
  }
  far_corner(B2ND_MAX_DIM, shape, chunkshape, blockshape);
}

int main(void) {
  blosc2_init();
#ifdef __linux__
  if (!test_is_watched()) {
    largest_buffers();
  }
  far_frames();
#endif
  /* Elsewhere, no program counts that far. */
  if (sizeof(size_t) > 4) {
    long_super_chunks();
    huge_arrays();
  }
  blosc2_destroy();
  return test_end();
}
