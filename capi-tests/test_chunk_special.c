/* Special chunks, chunks with blocks of variable length, dictionaries, masks. */

#include "test.h"

#include <blosc2.h>

static blosc2_dparams dparams_defaults(void) {
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  return dparams;
}

/* ---- Chunks of one value ---- */

static void test_constructors(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  const int32_t nitems = 1000, size = 8 * 1000;
  uint8_t chunk[64];
  double *back = (double *)test_alloc((size_t)size), value = 2.5;
  int32_t i;
  blosc2_context *dctx = blosc2_create_dctx(dparams_defaults());
  cparams.typesize = 8;

  CHECK_INT(blosc2_chunk_zeros(cparams, size, chunk, 32), 32);
  memset(back, 1, (size_t)size);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, 32, back, size), size);
  for (i = 0; i < nitems; i++) {
    CHECK(back[i] == 0);
  }
  back[0] = 1;
  CHECK_INT(blosc2_getitem_ctx(dctx, chunk, 32, 500, 1, back, size), 8);
  CHECK(back[0] == 0);

  CHECK_INT(blosc2_chunk_nans(cparams, size, chunk, 32), 32);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, 32, back, size), size);
  for (i = 0; i < nitems; i++) {
    CHECK(back[i] != back[i]);
  }

  CHECK_INT(blosc2_chunk_repeatval(cparams, size, chunk, 40, &value), 40);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, 40, back, size), size);
  for (i = 0; i < nitems; i++) {
    CHECK(back[i] == 2.5);
  }
  back[0] = 0;
  CHECK_INT(blosc2_getitem_ctx(dctx, chunk, 40, 999, 1, back, 8), 8);
  CHECK(back[0] == 2.5);

  CHECK_INT(blosc2_chunk_uninit(cparams, size, chunk, 32), 32);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, 32, back, size), size);

  /* too small, not whole items, no NaN of this size */
  CHECK(blosc2_chunk_zeros(cparams, size, chunk, 31) < 0);
  CHECK(blosc2_chunk_repeatval(cparams, size, chunk, 39, &value) < 0);
  CHECK(blosc2_chunk_zeros(cparams, size + 1, chunk, 64) < 0);
  CHECK(blosc2_chunk_zeros(cparams, -8, chunk, 64) < 0);
  cparams.use_dict = 1;
  cparams.compcode = BLOSC_ZLIB;
  CHECK_INT(blosc2_chunk_zeros(cparams, size, chunk, 32), 32);
  /* the destination is looked at first */
  cparams.filters[0] = 10;
  CHECK_INT(blosc2_chunk_zeros(cparams, size, chunk, 32), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(blosc2_chunk_zeros(cparams, size, chunk, 31), BLOSC2_ERROR_DATA);
  CHECK_INT(blosc2_chunk_nans(cparams, -8, chunk, 31), BLOSC2_ERROR_DATA);
  CHECK_INT(blosc2_chunk_uninit(cparams, size, chunk, 31), BLOSC2_ERROR_DATA);
  CHECK_INT(blosc2_chunk_repeatval(cparams, size, chunk, 39, &value), BLOSC2_ERROR_DATA);
  blosc2_free_ctx(dctx);
  free(back);
}

/* A handmade chunk of zeros whose size is not a multiple of its typesize. */
static void test_handmade_zeros(void) {
  uint8_t chunk[32] = {5, 1, 0x25, 4, 103, 0, 0, 0, 100, 0, 0, 0, 32, 0, 0, 0};
  uint8_t back[104];
  int i;
  blosc2_context *dctx = blosc2_create_dctx(dparams_defaults());
  chunk[BLOSC2_CHUNK_BLOSC2_FLAGS] = BLOSC2_SPECIAL_ZERO << 4;
  memset(back, 7, sizeof back);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, 32, back, 103), 103);
  for (i = 0; i < 103; i++) {
    CHECK_INT(back[i], 0);
  }
  CHECK_INT(back[103], 7);
  blosc2_free_ctx(dctx);
}

/* A version from the future is read unless it uses what nobody knows yet. */
static void test_future_versions(void) {
  uint8_t *data = test_make_data(TEST_RAMP, 4000), chunk[4032], back[4000];
  int cbytes = blosc2_compress(5, 1, 4, data, 4000, chunk, sizeof chunk);
  blosc2_context *dctx = blosc2_create_dctx(dparams_defaults());
  CHECK(cbytes > 0);
  chunk[BLOSC2_CHUNK_VERSION] = BLOSC2_VERSION_FORMAT + 1;
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, 4000), 4000);
  CHECK_BYTES(back, data, 4000);
  CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 5, 2, back, 8), 8);
  chunk[BLOSC2_CHUNK_BLOSC2_FLAGS2] = 2;
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, 4000), BLOSC2_ERROR_VERSION_SUPPORT);
  blosc2_free_ctx(dctx);
  free(data);
}

/* ---- Blocks of variable length ---- */

static void test_vlblocks(void) {
  static const char *const blocks[3] = {"red", "green and blue", "a somewhat longer block, a somewhat longer block"};
  const void *srcs[3];
  int32_t sizes[3], nblocks = -1, total = 0, i, got_sizes[3];
  uint8_t chunk[512], all[256], *block = NULL;
  void *dests[3] = {NULL, NULL, NULL};
  int32_t size = -1;
  int cbytes, nthreads;
  for (i = 0; i < 3; i++) {
    srcs[i] = blocks[i];
    sizes[i] = (int32_t)strlen(blocks[i]);
    total += sizes[i];
  }
  for (nthreads = 1; nthreads <= 3; nthreads += 2) {
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_context *cctx, *dctx;
    cparams.typesize = 1;
    cparams.compcode = BLOSC_ZSTD;
    cparams.nthreads = dparams.nthreads = (int16_t)nthreads;
    cctx = blosc2_create_cctx(cparams);
    dctx = blosc2_create_dctx(dparams);
    cbytes = blosc2_vlcompress_ctx(cctx, srcs, sizes, 3, chunk, sizeof chunk);
    CHECK(cbytes > 0);
    CHECK_INT(chunk[BLOSC2_CHUNK_VERSION], BLOSC2_VERSION_FORMAT_VL_BLOCKS);
    CHECK(chunk[BLOSC2_CHUNK_BLOSC2_FLAGS2] & BLOSC2_VL_BLOCKS);
    CHECK_INT(chunk[BLOSC2_CHUNK_BLOCKSIZE], 3);
    CHECK_INT(blosc2_vlchunk_get_nblocks(chunk, cbytes, &nblocks), 0);
    CHECK_INT(nblocks, 3);
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, all, total - 1), BLOSC2_ERROR_WRITE_BUFFER);
    blosc2_ctx_get_cparams(dctx, &cparams);
    CHECK_INT(cparams.blocksize, 0);
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, all, sizeof all), total);
    CHECK_BYTES(all, "redgreen and blue", 17);
    blosc2_ctx_get_cparams(dctx, &cparams);
    CHECK_INT(cparams.blocksize, sizes[2]); /* the longest one */
    CHECK_INT(blosc2_vldecompress_ctx(dctx, chunk, cbytes, dests, got_sizes, 3), 3);
    for (i = 0; i < 3; i++) {
      CHECK_INT(got_sizes[i], sizes[i]);
      CHECK_BYTES(dests[i], blocks[i], (size_t)sizes[i]);
      free(dests[i]);
      dests[i] = NULL;
      CHECK_INT(blosc2_vldecompress_block_ctx(dctx, chunk, cbytes, i, &block, &size), sizes[i]);
      CHECK_INT(size, sizes[i]);
      CHECK_BYTES(block, blocks[i], (size_t)sizes[i]);
      free(block);
    }
    CHECK(blosc2_vldecompress_block_ctx(dctx, chunk, cbytes, -1, &block, &size) < 0);
    CHECK(blosc2_vldecompress_block_ctx(dctx, chunk, cbytes, 3, &block, &size) < 0);
    CHECK(blosc2_vldecompress_block_ctx(dctx, chunk, cbytes, 0, NULL, &size) < 0);
    CHECK(blosc2_vldecompress_block_ctx(dctx, chunk, cbytes, 0, &block, NULL) < 0);
    /* what is refused leaves the caller's pointers alone */
    dests[0] = srcs;
    CHECK(blosc2_vldecompress_ctx(dctx, chunk, cbytes, dests, got_sizes, 2) < 0);
    CHECK(blosc2_vldecompress_ctx(dctx, chunk, cbytes - 1, dests, got_sizes, 3) < 0);
    CHECK(blosc2_vldecompress_ctx(cctx, chunk, cbytes, dests, got_sizes, 3) < 0);
    CHECK(dests[0] == srcs);
    dests[0] = NULL;
    CHECK(blosc2_vlchunk_get_nblocks(chunk, cbytes, NULL) < 0);
    chunk[BLOSC2_CHUNK_FLAGS] |= BLOSC_MEMCPYED;
    CHECK(blosc2_decompress_ctx(dctx, chunk, cbytes, all, sizeof all) < 0);
    /* a regular chunk is none of these */
    cbytes = blosc2_compress_ctx(cctx, blocks[2], sizes[2], chunk, sizeof chunk);
    CHECK(cbytes > 0);
    CHECK(blosc2_vlchunk_get_nblocks(chunk, cbytes, &nblocks) < 0);
    CHECK(blosc2_vldecompress_block_ctx(dctx, chunk, cbytes, 0, &block, &size) < 0);
    blosc2_free_ctx(cctx);
    blosc2_free_ctx(dctx);
  }
}

/* Destinations of every size: it fits, it is 0, or it is an error; nothing is written past the end. */
static void test_vl_small_destinations(void) {
  uint8_t *data = test_make_data(TEST_NOISE, 600), chunk[1200];
  const void *srcs[4];
  int32_t sizes[4] = {1, 100, 300, 199}, i;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_context *cctx;
  srcs[0] = data;
  srcs[1] = data + 1;
  srcs[2] = data + 101;
  srcs[3] = data + 401;
  cparams.typesize = 1;
  cctx = blosc2_create_cctx(cparams);
  for (i = 0; i <= 900; i++) {
    int cbytes;
    memset(chunk, 0x77, sizeof chunk);
    cbytes = blosc2_vlcompress_ctx(cctx, srcs, sizes, 4, chunk, i);
    CHECK(cbytes <= i);
    CHECK_INT(chunk[i], 0x77);
  }
  blosc2_free_ctx(cctx);
  free(data);
}

/* ---- Dictionaries ---- */

static void test_dictionaries(void) {
  enum { BLOCKS = 64, BLOCK = 350 };
  static const uint8_t codecs[] = {BLOSC_ZSTD, BLOSC_LZ4, BLOSC_LZ4HC};
  const int32_t size = 200000;
  uint8_t *data = test_make_data(TEST_TEXT, (size_t)size), *back = test_alloc((size_t)size);
  uint8_t *chunk = test_alloc((size_t)size + BLOSC2_MAX_OVERHEAD);
  char *records = (char *)test_alloc(BLOCKS * BLOCK);
  const void *srcs[BLOCKS];
  int32_t sizes[BLOCKS], i;
  size_t c;
  for (i = 0; i < BLOCKS; i++) {
    char *record = records + i * BLOCK;
    srcs[i] = record;
    sizes[i] = (int32_t)snprintf(record, BLOCK,
                                 "{\"id\": %d, \"name\": \"user %d\", \"email\": \"user%d@example.org\", \"active\": %s, "
                                 "\"roles\": [\"reader\", \"writer\", \"role %d\"], \"address\": {\"street\": "
                                 "\"%d Main Street\", \"city\": \"Springfield\", \"zip\": \"%05d\"}}",
                                 i, i * 7, i * 7, i % 3 ? "true" : "false", i % 5, i * 3, i * 37);
  }
  for (c = 0; c < sizeof codecs; c++) {
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_context *cctx, *dctx = blosc2_create_dctx(dparams_defaults());
    uint8_t *block = NULL;
    int32_t block_size = 0;
    int cbytes;
    cparams.compcode = codecs[c];
    cparams.typesize = 1;
    cparams.use_dict = 1;
    cparams.blocksize = 4096;
    cctx = blosc2_create_cctx(cparams);
    cbytes = blosc2_compress_ctx(cctx, data, size, chunk, size + BLOSC2_MAX_OVERHEAD);
    CHECK(cbytes > 0 && cbytes < size);
    CHECK(chunk[BLOSC2_CHUNK_BLOSC2_FLAGS] & BLOSC2_USEDICT);
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, size), size);
    CHECK_BYTES(back, data, (size_t)size);
    CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 150000, 100, back, 100), 100);
    CHECK_BYTES(back, data + 150000, 100);

    cbytes = blosc2_vlcompress_ctx(cctx, srcs, sizes, BLOCKS, chunk, size);
    CHECK(cbytes > 0);
    CHECK(chunk[BLOSC2_CHUNK_BLOSC2_FLAGS] & BLOSC2_USEDICT);
    for (i = 0; i < BLOCKS; i++) {
      CHECK_INT(blosc2_vldecompress_block_ctx(dctx, chunk, cbytes, i, &block, &block_size), sizes[i]);
      CHECK_BYTES(block, srcs[i], (size_t)sizes[i]);
      free(block);
    }
    blosc2_free_ctx(cctx);
    blosc2_free_ctx(dctx);
  }
  free(data);
  free(back);
  free(chunk);
  free(records);
}

/* Noise and tiny data with a dictionary asked for: whatever is made can be read. */
static void test_dictionary_without_use(void) {
  static const int32_t sizes[] = {1, 40, 300, 5000, 100000};
  uint8_t *data = test_make_data(TEST_NOISE, 100000), *back = test_alloc(100000), *chunk = test_alloc(100032);
  size_t s;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_context *cctx, *dctx = blosc2_create_dctx(dparams_defaults());
  cparams.compcode = BLOSC_ZSTD;
  cparams.typesize = 4;
  cparams.use_dict = 1;
  cctx = blosc2_create_cctx(cparams);
  for (s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    int cbytes = blosc2_compress_ctx(cctx, data, sizes[s], chunk, sizes[s] + BLOSC2_MAX_OVERHEAD);
    CHECK(cbytes > 0);
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, sizes[s]), sizes[s]);
    CHECK_BYTES(back, data, (size_t)sizes[s]);
  }
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
  free(data);
  free(back);
  free(chunk);
}

/* ---- Masks ---- */

static void test_maskout(void) {
  enum { BLOCK = 32768, COUNT = 16, SIZE = BLOCK * COUNT };
  uint8_t *data = test_make_data(TEST_FLOATS, SIZE), *back = test_alloc(SIZE);
  uint8_t *chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  int nthreads, i, round;
  for (nthreads = 1; nthreads <= 2; nthreads++) {
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_context *cctx, *dctx;
    int cbytes;
    cparams.blocksize = BLOCK;
    dparams.nthreads = (int16_t)nthreads;
    cctx = blosc2_create_cctx(cparams);
    dctx = blosc2_create_dctx(dparams);
    cbytes = blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
    CHECK(cbytes > 0);
    for (round = 0; round < 2; round++) {
      bool mask[COUNT];
      for (i = 0; i < COUNT; i++) {
        mask[i] = i % (round + 2) == 1;
      }
      memset(back, 0xee, SIZE);
      CHECK_INT(blosc2_set_maskout(dctx, mask, COUNT), 0);
      CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, SIZE), SIZE);
      for (i = 0; i < COUNT; i++) {
        if (mask[i]) {
          CHECK(back[i * BLOCK] == 0xee && back[i * BLOCK + BLOCK - 1] == 0xee);
        } else {
          CHECK_BYTES(back + i * BLOCK, data + i * BLOCK, BLOCK);
        }
      }
      /* the mask was for one call */
      CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, SIZE), SIZE);
      CHECK_BYTES(back, data, SIZE);
    }
    /* a mask for another number of blocks */
    {
      bool mask[COUNT - 1] = {false};
      CHECK_INT(blosc2_set_maskout(dctx, mask, COUNT - 1), 0);
      CHECK(blosc2_decompress_ctx(dctx, chunk, cbytes, back, SIZE) < 0);
    }
    blosc2_free_ctx(cctx);
    blosc2_free_ctx(dctx);
  }
  free(data);
  free(back);
  free(chunk);
}

int main(void) {
  blosc2_init();
  test_constructors();
  test_handmade_zeros();
  test_future_versions();
  test_vlblocks();
  test_vl_small_destinations();
  test_dictionaries();
  test_dictionary_without_use();
  test_maskout();
  blosc2_destroy();
  return test_end();
}
