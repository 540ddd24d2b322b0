/* Chunk functions called in unusual ways: the code that comes back, and what the context shows after it. */

#include <blosc2.h>

#include <limits.h>

#include "test.h"

enum { BYTES = 40000, BLOCK = 4000, COUNT = BYTES / BLOCK };

/* Members of the context that plugins know, by their offsets on 64-bit machines. */
enum {
  SOURCE = 0,
  DEST = 8,
  SOURCESIZE = 20,
  NBLOCKS = 28,
  BLOCKSIZE = 36,
  DESTSIZE = 56,
  TYPESIZE = 60
};

static uint8_t *data, chunk[BYTES + BLOSC2_MAX_OVERHEAD], back[BYTES];
static blosc2_context *cctx, *dctx;

static void make_contexts(int compcode, int use_dict) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  cparams.compcode = (uint8_t)compcode;
  cparams.typesize = 4;
  cparams.blocksize = BLOCK;
  cparams.use_dict = use_dict;
  cctx = blosc2_create_cctx(cparams);
  dctx = blosc2_create_dctx(dparams);
  CHECK(cctx != NULL && dctx != NULL);
}

static void free_contexts(void) {
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
}

static int32_t number(const blosc2_context *ctx, int offset) {
  int32_t value;
  memcpy(&value, (const char *)ctx + offset, sizeof value);
  return value;
}

static const void *address(const blosc2_context *ctx, int offset) {
  const void *value;
  memcpy(&value, (const char *)ctx + offset, sizeof value);
  return value;
}

/* What a context for decompression shows after a call that went through the general functions. */
static void check_shown(const void *source, const void *dest, int32_t destsize, int32_t nbytes, int32_t nblocks) {
  if (sizeof(void *) != 8) {
    return;
  }
  CHECK(address(dctx, SOURCE) == source);
  CHECK(address(dctx, DEST) == dest);
  CHECK_INT(number(dctx, DESTSIZE), destsize);
  CHECK_INT(number(dctx, SOURCESIZE), nbytes);
  CHECK_INT(number(dctx, NBLOCKS), nblocks);
}

static void test_members(void) {
  const void *sources[3];
  int32_t sizes[3] = {1000, 4000, 300};
  void *blocks[3] = {NULL, NULL, NULL};
  int cbytes, i;
  make_contexts(BLOSC_LZ4, 0);
  cbytes = blosc2_compress_ctx(cctx, data, BYTES, chunk, sizeof chunk);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, BYTES), BYTES);
  check_shown(chunk, back, BYTES, BYTES, COUNT);
  CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 10, 5, back + 8, 500), 20);
  check_shown(chunk, back + 8, 500, BYTES, COUNT);
  CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 10, 0, back, 600), 0);
  check_shown(chunk, back, 600, BYTES, COUNT);
  for (i = 0; i < 3; i++) {
    sources[i] = data + 5000 * i;
  }
  cbytes = blosc2_vlcompress_ctx(cctx, sources, sizes, 3, chunk, sizeof chunk);
  CHECK_INT(blosc2_vldecompress_ctx(dctx, chunk, cbytes, blocks, sizes, 3), 3);
  check_shown(chunk, NULL, 5300, 5300, 3);
  for (i = 0; i < 3; i++) {
    free(blocks[i]);
  }
  free_contexts();
}

/* A codec that is not there is found out when the blocks are known. */
/* What a prefilter of blocks of variable length finds in its context. */
static int32_t seen_nblocks, seen_typesize, seen_calls;

static int look(blosc2_prefilter_params *params) {
  seen_nblocks = number(params->ctx, NBLOCKS);
  seen_typesize = number(params->ctx, TYPESIZE);
  seen_calls++;
  memcpy(params->output, params->input, (size_t)params->output_size);
  return 0;
}

static void test_members_of_variable_blocks(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_prefilter_params params;
  const void *sources[2] = {data, data + 1200};
  const int32_t sizes[2] = {1200, 600};
  blosc2_context *context;
  memset(&params, 0, sizeof params);
  cparams.typesize = 300;
  cparams.prefilter = look;
  cparams.preparams = &params;
  context = blosc2_create_cctx(cparams);
  CHECK(blosc2_vlcompress_ctx(context, sources, sizes, 2, chunk, sizeof chunk) > 0);
  CHECK_INT(seen_calls, 2);
  if (sizeof(void *) == 8) {
    CHECK_INT(seen_nblocks, 2);
    CHECK_INT(seen_typesize, 1);
  }
  blosc2_free_ctx(context);
}

static void test_members_after_failure(void) {
  make_contexts(31, 0);
  CHECK_INT(blosc2_compress_ctx(cctx, data, BYTES, chunk, sizeof chunk), BLOSC2_ERROR_CODEC_SUPPORT);
  if (sizeof(void *) == 8) {
    CHECK_INT(number(cctx, BLOCKSIZE), BLOCK);
    CHECK_INT(number(cctx, NBLOCKS), COUNT);
  }
  free_contexts();
}

/* Which of several mistakes is told. */
static void test_order(void) {
  const void *sources[2];
  int32_t sizes[2] = {10, 10};
  bool mask[1] = {true};
  sources[0] = sources[1] = data;
  make_contexts(BLOSC_LZ4, 0);
  CHECK_INT(blosc2_compress_ctx(cctx, data, -1, chunk, 31), BLOSC2_ERROR_MAX_BUFSIZE_EXCEEDED);
  CHECK_INT(blosc2_compress_ctx(cctx, data, -1, chunk, -1), BLOSC2_ERROR_MAX_BUFSIZE_EXCEEDED);
  CHECK_INT(blosc2_compress_ctx(cctx, data, -1, chunk, 32), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_compress_ctx(dctx, data, BYTES, chunk, 31), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_compress(5, 1, 4, data, -1, chunk, 31), BLOSC2_ERROR_MAX_BUFSIZE_EXCEEDED);
  CHECK_INT(blosc2_vlcompress_ctx(cctx, sources, sizes, 2, chunk, 31), BLOSC2_ERROR_MAX_BUFSIZE_EXCEEDED);
  CHECK_INT(blosc2_vlcompress_ctx(dctx, sources, sizes, 2, chunk, 31), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_set_maskout(dctx, mask, -1), BLOSC2_ERROR_MEMORY_ALLOC);
  free_contexts();
}

/* A negative size is too small for an empty chunk, too, but not for no items. */
static void test_negative_room(void) {
  int cbytes;
  make_contexts(BLOSC_LZ4, 0);
  cbytes = blosc2_compress_ctx(cctx, data, 0, chunk, sizeof chunk);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, 0), 0);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, -1), BLOSC2_ERROR_WRITE_BUFFER);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, 5, back, -1), BLOSC2_ERROR_READ_BUFFER);
  CHECK_INT(blosc2_decompress(chunk, cbytes, back, 0), 0);
  CHECK_INT(blosc2_decompress(chunk, cbytes, back, -1), BLOSC2_ERROR_WRITE_BUFFER);
  CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 0, 0, back, -1), 0);
  CHECK_INT(blosc2_getitem(chunk, cbytes, 0, 0, back, -1), 0);
  free_contexts();
}

/* Null stands for no bytes. */
static void test_null(void) {
  int cbytes;
  make_contexts(BLOSC_LZ4, 0);
  cbytes = blosc2_compress_ctx(cctx, data, BYTES, chunk, sizeof chunk);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, NULL, 10), BLOSC2_ERROR_WRITE_BUFFER);
  CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 0, 10, NULL, 10), BLOSC2_ERROR_WRITE_BUFFER);
  CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 0, 0, NULL, 10), 0);
  CHECK_INT(blosc2_getitem(chunk, cbytes, 0, 0, NULL, 10), 0);
  CHECK_INT(blosc2_decompress_ctx(dctx, NULL, 10, back, BYTES), BLOSC2_ERROR_READ_BUFFER);
  CHECK_INT(blosc2_decompress(NULL, 10, back, BYTES), BLOSC2_ERROR_READ_BUFFER);
  CHECK_INT(blosc2_getitem_ctx(dctx, NULL, 10, 0, 0, back, BYTES), BLOSC2_ERROR_READ_BUFFER);
  cbytes = blosc2_compress_ctx(cctx, data, 0, chunk, sizeof chunk);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, NULL, 10), 0);
  CHECK_INT(blosc2_decompress(chunk, cbytes, NULL, 10), 0);
  free_contexts();
}

/* A lazy chunk of a file with two of them, that was cut off before the dictionary of the first one if so wanted. */
static void test_lazy(int use_dict) {
  static const char path[] = "test_chunk_codes.b2frame";
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  uint8_t *lazy;
  bool mask[COUNT], needs_free;
  int length, i;
  cparams.compcode = BLOSC_ZSTD;
  cparams.typesize = 4;
  cparams.blocksize = BLOCK;
  cparams.use_dict = use_dict;
  storage.cparams = &cparams;
  storage.urlpath = (char *)path;
  blosc2_remove_urlpath(path);
  schunk = blosc2_schunk_new(&storage);
  if (!CHECK(schunk != NULL)) {
    return;
  }
  CHECK_INT(blosc2_schunk_append_buffer(schunk, data, BYTES), 1);
  length = blosc2_schunk_get_lazychunk(schunk, 0, &lazy, &needs_free);
  CHECK(length > 32 && (lazy[31] & 1) == use_dict);
  make_contexts(BLOSC_ZSTD, 0);
  for (i = 0; i < COUNT; i++) {
    mask[i] = true;
  }
  /* No super-chunk is needed to skip all blocks. */
  CHECK_INT(blosc2_set_maskout(dctx, mask, COUNT), 0);
  memset(back, 7, BYTES);
  CHECK_INT(blosc2_decompress_ctx(dctx, lazy, length, back, BYTES), BYTES);
  CHECK_INT(back[0], 7);
  mask[3] = false;
  CHECK_INT(blosc2_set_maskout(dctx, mask, COUNT), 0);
  CHECK_INT(blosc2_decompress_ctx(dctx, lazy, length, back, BYTES), BLOSC2_ERROR_INVALID_PARAM);
  {
    FILE *file = fopen("test_chunk_codes.b2frame/00000000.chunk", "wb");
    CHECK(file != NULL && fwrite(chunk, 1, 50, file) == 50 && fclose(file) == 0);
  }
  CHECK_INT(blosc2_decompress_ctx(schunk->dctx, lazy, length, back, BYTES),
            use_dict ? BLOSC2_ERROR_FILE_READ : BLOSC2_ERROR_READ_BUFFER);
  free(lazy);
  free_contexts();
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  blosc2_remove_urlpath(path);
}

static int calls;
static bool apart;

/* Fails, after a look at where it is to write and where it may keep things. */
static int wide_prefilter(blosc2_prefilter_params *params) {
  calls++;
  apart = apart && params->ttmp >= params->output + params->output_size;
  memset(params->output, 7, (size_t)params->output_size);
  return params->output_is_disposable ? -1 : 0;
}

/* Output of larger items has a place of its own, and where nobody wants the output, nobody cares about the code. */
static void test_outputs(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_prefilter_params preparams;
  int disposable;
  memset(&preparams, 0, sizeof preparams);
  cparams.typesize = 4;
  cparams.blocksize = BLOCK;
  cparams.prefilter = wide_prefilter;
  cparams.preparams = &preparams;
  preparams.output_typesize = 16;
  for (disposable = 0; disposable <= 1; disposable++) {
    preparams.output_is_disposable = disposable != 0;
    calls = 0;
    apart = true;
    cctx = blosc2_create_cctx(cparams);
    CHECK(blosc2_compress_ctx(cctx, data, BYTES, chunk, sizeof chunk) > 0);
    CHECK_INT(calls, COUNT);
    CHECK(apart);
    blosc2_free_ctx(cctx);
  }
}

static int make_zeros(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_cparams *params,
                      uint8_t id) {
  (void)src, (void)meta, (void)params, (void)id;
  memset(dest, 0, (size_t)length);
  return 0;
}

static int make_ones(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_dparams *params,
                     uint8_t id) {
  (void)src, (void)meta, (void)params, (void)id;
  memset(dest, 1, (size_t)length);
  return 0;
}

static int counting_prefilter(blosc2_prefilter_params *params) {
  calls++;
  memset(params->output, 1, (size_t)params->output_size);
  return 0;
}

/* Whether all is zeros is not found out by asking the prefilter again. */
static void test_zeros_after_prefilter(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_prefilter_params preparams;
  blosc2_filter filter;
  int cbytes, i;
  memset(&preparams, 0, sizeof preparams);
  memset(&filter, 0, sizeof filter);
  filter.id = 201;
  filter.name = (char *)"ones";
  filter.version = 1;
  filter.forward = make_zeros;
  filter.backward = make_ones;
  CHECK_INT(blosc2_register_filter(&filter), 0);
  make_contexts(BLOSC_LZ4, 0);
  blosc2_free_ctx(cctx);
  cparams.typesize = 4;
  cparams.blocksize = BLOCK;
  cparams.filters[BLOSC2_MAX_FILTERS - 1] = 201;
  cparams.prefilter = counting_prefilter;
  cparams.preparams = &preparams;
  cctx = blosc2_create_cctx(cparams);
  calls = 0;
  cbytes = blosc2_compress_ctx(cctx, data, BYTES, chunk, sizeof chunk);
  CHECK(cbytes > 0);
  CHECK_INT(calls, COUNT);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, BYTES), BYTES);
  for (i = 0; i < BYTES; i += BLOCK) {
    CHECK_INT(back[i], 1);
  }
  free_contexts();
}

static int counting_postfilter(blosc2_postfilter_params *params) {
  calls++;
  memset(params->output, 1, (size_t)params->size);
  return 0;
}

/* Measurements are no data: postfilters leave them alone, and contexts tell which of both they have decompressed. */
static void test_measurements(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS, shown;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_postfilter_params postparams;
  int instrumented, cbytes;
  memset(&postparams, 0, sizeof postparams);
  dparams.postfilter = counting_postfilter;
  dparams.postparams = &postparams;
  cparams.typesize = 4;
  cparams.blocksize = BLOCK;
  dctx = blosc2_create_dctx(dparams);
  for (instrumented = 1; instrumented >= 0; instrumented--) {
    cparams.instr_codec = instrumented != 0;
    cctx = blosc2_create_cctx(cparams);
    cbytes = blosc2_compress_ctx(cctx, data, BYTES, chunk, sizeof chunk);
    CHECK(cbytes > 0);
    calls = 0;
    CHECK(blosc2_decompress_ctx(dctx, chunk, cbytes, back, BYTES) > 0);
    CHECK_INT(calls, instrumented ? 0 : COUNT);
    memset(&shown, 0, sizeof shown);
    CHECK_INT(blosc2_ctx_get_cparams(dctx, &shown), 0);
    CHECK_INT(shown.instr_codec, instrumented);
    blosc2_free_ctx(cctx);
  }
  blosc2_free_ctx(dctx);
}

int main(void) {
  int i;
  blosc2_init();
  data = test_make_data(TEST_RAMP, BYTES);
  for (i = 0; i < BYTES; i += 4) {
    data[i] ^= (uint8_t)(i * 37 % 101);
  }
  test_members();
  test_members_of_variable_blocks();
  test_members_after_failure();
  test_order();
  test_negative_room();
  test_null();
  test_lazy(0);
  test_lazy(1);
  test_outputs();
  test_zeros_after_prefilter();
  test_measurements();
  free(data);
  blosc2_destroy();
  return test_end();
}
