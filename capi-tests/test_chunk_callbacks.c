/* Code of the application inside the library: prefilters, postfilters, codecs, filters, tuners, threads. And what goes
   on around it: many threads, fork, environment variables. */

#include "test.h"

#include <blosc2.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 400000 };

/* ---- Prefilters and postfilters ---- */

typedef struct {
  const int32_t *a, *b;
  int32_t nbytes;
} inputs;

/* The output is a, or a + b, or (without inputs) three times the source. */
static int prefilter(blosc2_prefilter_params *params) {
  const inputs *in = (const inputs *)params->user_data;
  int32_t n = params->output_size / 4, first = params->output_offset / 4, i;
  int32_t *out = (int32_t *)params->output;
  const int32_t *src = (const int32_t *)params->input;
  if (params->output_typesize != 4) {
    return -1;
  }
  for (i = 0; i < n; i++) {
    out[i] = in->a == NULL ? src[i] * 3 : in->a[first + i] + (in->b == NULL ? 0 : in->b[first + i]);
  }
  return 0;
}

/* Adds the position of each item, and the items of `a` if there are some. */
static int postfilter(blosc2_postfilter_params *params) {
  const inputs *in = (const inputs *)params->user_data;
  int32_t n = params->size / 4, first = params->offset / 4, i;
  for (i = 0; i < n; i++) {
    int32_t value;
    memcpy(&value, params->input + 4 * i, 4);
    value += first + i + (in->a == NULL ? 0 : in->a[first + i]);
    memcpy(params->output + 4 * i, &value, 4);
  }
  return 0;
}

/* Blocks of variable length are each filtered as a whole; afterwards, a block is at its number times the longest length. */
static void test_filters_of_vl_blocks(void) {
  static const int32_t sizes[3] = {1000, 300, 76};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_prefilter_params preparams = {0};
  blosc2_postfilter_params postparams = {0};
  inputs none = {NULL, NULL, 0};
  blosc2_context *cctx, *dctx;
  uint8_t chunk[3000], whole[1376], *block = NULL;
  void *blocks[3] = {NULL, NULL, NULL};
  const void *sources[3];
  int32_t got[3], nbytes, cbytes, n, i;
  int32_t *items = (int32_t *)test_make_data(TEST_RAMP, 1376);
  sources[0] = items;
  sources[1] = items + 250;
  sources[2] = items + 325;
  cparams.prefilter = prefilter;
  cparams.preparams = &preparams;
  cparams.typesize = 4;
  preparams.user_data = &none;
  dparams.postfilter = postfilter;
  dparams.postparams = &postparams;
  postparams.user_data = &none;
  cctx = blosc2_create_cctx(cparams);
  dctx = blosc2_create_dctx(dparams);
  cbytes = blosc2_vlcompress_ctx(cctx, sources, sizes, 3, chunk, sizeof chunk);
  CHECK(cbytes > 0);
  CHECK_INT(blosc2_vldecompress_ctx(dctx, chunk, cbytes, blocks, got, 3), 3);
  CHECK_INT(blosc2_vldecompress_block_ctx(dctx, chunk, cbytes, 1, &block, &nbytes), 300);
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, whole, sizeof whole), 1376);
  for (n = 0; n < 3; n++) {
    const uint8_t *there = whole + (n == 0 ? 0 : n == 1 ? 1000 : 1300);
    CHECK_INT(got[n], sizes[n]);
    CHECK_BYTES(blocks[n], there, (size_t)sizes[n]);
    for (i = 0; i < sizes[n] / 4; i++) {
      int32_t value;
      memcpy(&value, there + 4 * i, 4);
      CHECK_INT(value, ((const int32_t *)sources[n])[i] * 3 + n * 250 + i);
    }
    free(blocks[n]);
  }
  CHECK_BYTES(block, whole + 1000, 300);
  free(block);
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
  free(items);
}

static int failing_prefilter(blosc2_prefilter_params *params) {
  return params->nblock == 1 ? 1 : 0;
}

static int failing_postfilter(blosc2_postfilter_params *params) {
  return params->nblock == 0 ? -1 : 0;
}

static void test_prefilters(void) {
  static const int levels[] = {0, 1, 5, 9};
  int32_t *a = (int32_t *)test_make_data(TEST_RAMP, SIZE), *b = (int32_t *)test_make_data(TEST_RAMP, SIZE);
  int32_t *back = (int32_t *)test_alloc(SIZE);
  uint8_t *chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  size_t level;
  int count, nthreads, i;
  for (level = 0; level < sizeof levels / sizeof *levels; level++) {
    for (count = 0; count <= 2; count++) {
      for (nthreads = 1; nthreads <= 2; nthreads++) {
        blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
        blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
        blosc2_prefilter_params pre;
        blosc2_postfilter_params post;
        blosc2_context *cctx, *dctx;
        inputs in = {NULL, NULL, SIZE};
        int cbytes, differences = 0;
        memset(&pre, 0, sizeof pre);
        memset(&post, 0, sizeof post);
        in.a = count > 0 ? a : NULL;
        in.b = count > 1 ? b : NULL;
        pre.user_data = post.user_data = &in;
        cparams.typesize = 4;
        cparams.clevel = (uint8_t)levels[level];
        cparams.nthreads = dparams.nthreads = (int16_t)nthreads;
        cparams.prefilter = prefilter;
        cparams.preparams = &pre;
        dparams.postfilter = postfilter;
        dparams.postparams = &post;
        cctx = blosc2_create_cctx(cparams);
        dctx = blosc2_create_dctx(dparams);
        cbytes = blosc2_compress_ctx(cctx, a, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
        CHECK(cbytes > 0);
        CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, SIZE), SIZE);
        for (i = 0; i < SIZE / 4; i++) {
          int32_t stored = count == 0 ? a[i] * 3 : a[i] + (count > 1 ? b[i] : 0);
          differences += back[i] != stored + i + (count > 0 ? a[i] : 0);
        }
        CHECK_INT(differences, 0);
        CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 60000, 3, back, 12), 12);
        CHECK_INT(back[1], (count == 0 ? a[60001] * 3 : a[60001] + (count > 1 ? b[60001] : 0)) + 60001 +
                               (count > 0 ? a[60001] : 0));
        blosc2_free_ctx(cctx);
        blosc2_free_ctx(dctx);
      }
    }
  }
  free(a);
  free(b);
  free(back);
  free(chunk);
}

/* What a callback saw in its context. */
static blosc2_cparams seen_cparams;
static blosc2_dparams seen_dparams;

static int looking_prefilter(blosc2_prefilter_params *params) {
  memset(params->output, params->nblock + 1, (size_t)params->output_size);
  return blosc2_ctx_get_cparams(params->ctx, &seen_cparams);
}

static int looking_postfilter(blosc2_postfilter_params *params) {
  memcpy(params->output, params->input, (size_t)params->size);
  blosc2_ctx_get_cparams(params->ctx, &seen_cparams);
  return blosc2_ctx_get_dparams(params->ctx, &seen_dparams);
}

/* Callbacks that look at their context see the blocks and items at hand, not what was asked for or used before. */
static void test_looking_callbacks(void) {
  uint8_t *data = test_make_data(TEST_RAMP, SIZE), *chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_prefilter_params pre;
  blosc2_postfilter_params post;
  blosc2_context *cctx, *dctx;
  int cbytes, i;
  memset(&pre, 0, sizeof pre);
  memset(&post, 0, sizeof post);
  cparams.typesize = 300; /* recorded as 1 */
  cparams.compcode = BLOSC_LZ4;
  cparams.splitmode = BLOSC_NEVER_SPLIT;
  cparams.prefilter = looking_prefilter;
  cparams.preparams = &pre;
  dparams.postfilter = looking_postfilter;
  dparams.postparams = &post;
  cctx = blosc2_create_cctx(cparams);
  dctx = blosc2_create_dctx(dparams);
  for (i = 0; i < 2; i++) {
    int32_t size = i == 0 ? SIZE : 6000;
    memset(&seen_cparams, 0, sizeof seen_cparams);
    cbytes = blosc2_compress_ctx(cctx, data, size, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
    CHECK(cbytes > 0);
    CHECK_INT(seen_cparams.blocksize, i == 0 ? 131072 / 300 * 300 : 6000);
    CHECK_INT(seen_cparams.typesize, 1);
    memset(&seen_cparams, 0, sizeof seen_cparams);
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, data, size), size);
    CHECK_INT(seen_dparams.typesize, 1);
    CHECK_INT(seen_cparams.blocksize, i == 0 ? 131072 / 300 * 300 : 6000);
    CHECK_INT(seen_cparams.filters[5], BLOSC_SHUFFLE);
  }
  /* A chunk that turns out to be damaged has been looked at all the same. */
  chunk[BLOSC2_CHUNK_TYPESIZE] = 2;
  chunk[BLOSC2_CHUNK_FILTER_CODES + 5] = 31;
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, data, SIZE), BLOSC2_ERROR_FAILURE);
  CHECK_INT(blosc2_ctx_get_dparams(dctx, &seen_dparams), 0);
  CHECK_INT(seen_dparams.typesize, 2);
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
  free(data);
  free(chunk);
}

enum { DISPOSABLE_BLOCKS = 40 };

static int calls[DISPOSABLE_BLOCKS];

static int counting_prefilter(blosc2_prefilter_params *params) {
  __sync_fetch_and_add(&calls[params->nblock], 1);
  return 0;
}

/* A prefilter whose output nobody wants is called once for each block, whatever the filters and the threads. */
static void test_disposable_output(void) {
  enum { BLOCK = 10000, TOTAL = DISPOSABLE_BLOCKS * BLOCK, ROOM = 4096 };
  uint8_t *data = test_make_data(TEST_RAMP, TOTAL), *chunk = test_alloc(ROOM);
  int round, i;
  for (round = 0; round < 4; round++) {
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_prefilter_params pre;
    blosc2_context *cctx;
    memset(&pre, 0, sizeof pre);
    memset(calls, 0, sizeof calls);
    pre.output_is_disposable = true;
    cparams.typesize = 4;
    cparams.blocksize = BLOCK;
    cparams.splitmode = BLOSC_NEVER_SPLIT;
    cparams.prefilter = counting_prefilter;
    cparams.preparams = &pre;
    cparams.filters[4] = (round & 1) != 0 ? BLOSC_DELTA : BLOSC_NOFILTER;
    cparams.nthreads = (round & 2) != 0 ? 4 : 1;
    cctx = blosc2_create_cctx(cparams);
    CHECK_INT(blosc2_compress_ctx(cctx, data, TOTAL, chunk, ROOM), BLOSC_EXTENDED_HEADER_LENGTH);
    for (i = 0; i < DISPOSABLE_BLOCKS; i++) {
      CHECK_INT(calls[i], 1);
    }
    blosc2_free_ctx(cctx);
  }
  free(data);
  free(chunk);
}

static void test_failing_callbacks(void) {
  uint8_t *data = test_make_data(TEST_RAMP, SIZE), *chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_prefilter_params pre;
  blosc2_postfilter_params post;
  blosc2_context *cctx, *dctx;
  int cbytes;
  memset(&pre, 0, sizeof pre);
  memset(&post, 0, sizeof post);
  cparams.blocksize = 16384;
  cctx = blosc2_create_cctx(cparams);
  cbytes = blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
  CHECK(cbytes > 0);
  blosc2_free_ctx(cctx);
  dparams.postfilter = failing_postfilter;
  dparams.postparams = &post;
  dctx = blosc2_create_dctx(dparams);
  CHECK(blosc2_decompress_ctx(dctx, chunk, cbytes, data, SIZE) < 0);
  blosc2_free_ctx(dctx);
  cparams.prefilter = failing_prefilter;
  cparams.preparams = &pre;
  cctx = blosc2_create_cctx(cparams);
  CHECK(blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD) <= 0);
  blosc2_free_ctx(cctx);
  /* What malloc left in a member that the client did not know of. */
  pre.output_typesize = INT32_MAX;
  cctx = blosc2_create_cctx(cparams);
  CHECK(blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD) < 0);
  blosc2_free_ctx(cctx);
  free(data);
  free(chunk);
}

/* ---- Codecs and filters of the application ---- */

/* Stores one byte instead of a block of equal bytes; knows its meta byte. */
static int run_encoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                       blosc2_cparams *cparams, const void *chunk) {
  int32_t i;
  BLOSC_UNUSED_PARAM(chunk);
  if (cparams == NULL || meta != 111) {
    return BLOSC2_ERROR_CODEC_PARAM;
  }
  for (i = 1; i < input_len; i++) {
    if (input[i] != input[0]) {
      return 0;
    }
  }
  if (output_len < 1 || input_len < 1) {
    return 0;
  }
  output[0] = input[0];
  return 1;
}

static int run_decoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                       blosc2_dparams *dparams, const void *chunk) {
  BLOSC_UNUSED_PARAM(chunk);
  if (dparams == NULL || meta != 111 || input_len != 1) {
    return BLOSC2_ERROR_CODEC_PARAM;
  }
  memset(output, input[0], (size_t)output_len);
  return output_len;
}

static int add_forward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_cparams *cparams,
                       uint8_t id) {
  int32_t i;
  for (i = 0; i < length; i++) {
    dest[i] = (uint8_t)(src[i] + meta);
  }
  return cparams != NULL && id == 170 ? 0 : -1;
}

static int add_backward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_dparams *dparams,
                        uint8_t id) {
  int32_t i;
  for (i = 0; i < length; i++) {
    dest[i] = (uint8_t)(src[i] - meta);
  }
  return dparams != NULL && id == 170 ? 0 : -1;
}

static void test_registered(void) {
  static char codec_name[] = "runs", filter_name[] = "add";
  blosc2_codec codec;
  blosc2_filter filter;
  uint8_t *data = test_alloc(SIZE), *back = test_alloc(SIZE), *chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  const char *name = NULL;
  int i, nthreads;
  memset(&codec, 0, sizeof codec);
  memset(&filter, 0, sizeof filter);
  codec.compcode = 180;
  codec.compname = codec_name;
  codec.complib = 1;
  codec.encoder = run_encoder;
  codec.decoder = run_decoder;
  CHECK_INT(blosc2_register_codec(&codec), 0);
  CHECK_INT(blosc2_register_codec(&codec), 0);
  codec.compcode = 3;
  CHECK(blosc2_register_codec(&codec) < 0);
  CHECK(blosc2_register_codec(NULL) < 0);
  CHECK_INT(blosc2_compname_to_compcode("runs"), 180);
  CHECK_INT(blosc2_compcode_to_compname(180, &name), 180);
  CHECK(name != NULL && strcmp(name, "runs") == 0);
  filter.id = 170;
  filter.name = filter_name;
  filter.forward = add_forward;
  filter.backward = add_backward;
  CHECK_INT(blosc2_register_filter(&filter), 0);
  filter.id = 2;
  CHECK(blosc2_register_filter(&filter) < 0);
  CHECK(blosc2_register_filter(NULL) < 0);
  for (i = 0; i < SIZE; i++) {
    data[i] = (uint8_t)(i / 100000);
  }
  for (nthreads = 1; nthreads <= 3; nthreads += 2) {
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_context *cctx, *dctx;
    int cbytes;
    cparams.compcode = 180;
    cparams.compcode_meta = 111;
    cparams.typesize = 1;
    cparams.splitmode = BLOSC_NEVER_SPLIT;
    cparams.blocksize = 20000;
    cparams.nthreads = dparams.nthreads = (int16_t)nthreads;
    cparams.filters[4] = 170;
    cparams.filters_meta[4] = 13;
    cctx = blosc2_create_cctx(cparams);
    dctx = blosc2_create_dctx(dparams);
    cbytes = blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
    CHECK(cbytes > 0 && cbytes < 1000);
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, SIZE), SIZE);
    CHECK_BYTES(back, data, SIZE);
    /* a block that the codec gives up on is stored */
    data[30000] = 200;
    cbytes = blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
    CHECK(cbytes > 20000);
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, SIZE), SIZE);
    CHECK_BYTES(back, data, SIZE);
    data[30000] = data[29999];
    blosc2_free_ctx(cctx);
    blosc2_free_ctx(dctx);
  }
  free(data);
  free(back);
  free(chunk);
}

/* Of zeros, the filter of the application makes something else on the way back: what it made zeros of comes back, too. */
static void test_zeros_of_a_filter(void) {
  static const int32_t sizes[] = {32, 1000, 50000};
  uint8_t *data = test_alloc(50000), *back = test_alloc(50000), *chunk = test_alloc(50000 + BLOSC2_MAX_OVERHEAD);
  int i, meta, nthreads;
  for (i = 0; i < 3; i++) {
    for (meta = 0; meta < 14; meta += 13) {
      for (nthreads = 1; nthreads <= 2; nthreads++) {
        blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
        blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
        blosc2_context *cctx, *dctx;
        int cbytes;
        cparams.typesize = 4;
        cparams.blocksize = 20000;
        cparams.nthreads = dparams.nthreads = (int16_t)nthreads;
        cparams.filters[4] = 170;
        cparams.filters_meta[4] = (uint8_t)meta;
        cctx = blosc2_create_cctx(cparams);
        dctx = blosc2_create_dctx(dparams);
        memset(data, -meta, 50000);
        cbytes = blosc2_compress_ctx(cctx, data, sizes[i], chunk, sizes[i] + BLOSC2_MAX_OVERHEAD);
        /* only zeros are a chunk of zeros */
        CHECK_INT(cbytes == BLOSC_EXTENDED_HEADER_LENGTH, meta == 0);
        CHECK(cbytes > 0 && cbytes < 100);
        CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, sizes[i]), sizes[i]);
        CHECK_BYTES(back, data, sizes[i]);
        blosc2_free_ctx(cctx);
        blosc2_free_ctx(dctx);
      }
    }
  }
  free(data);
  free(back);
  free(chunk);
}

/* Buffers that a callback got where it could not have used vectors of 32 bytes. */
static int unaligned;

static void check_aligned(const void *buffer) {
  unaligned += (uintptr_t)buffer % 32 != 0;
}

static int xor_bytes(const uint8_t *src, uint8_t *dest, int32_t length) {
  int32_t i;
  check_aligned(src);
  check_aligned(dest);
  for (i = 0; i < length; i++) {
    dest[i] = src[i] ^ 0x55;
  }
  return 0;
}

static int xor_forward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_cparams *cparams,
                       uint8_t id) {
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(cparams);
  BLOSC_UNUSED_PARAM(id);
  return xor_bytes(src, dest, length);
}

static int xor_backward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_dparams *dparams,
                        uint8_t id) {
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(dparams);
  BLOSC_UNUSED_PARAM(id);
  return xor_bytes(src, dest, length);
}

static int aligned_prefilter(blosc2_prefilter_params *params) {
  check_aligned(params->output);
  check_aligned(params->ttmp);
  memcpy(params->output, params->input, (size_t)params->output_size);
  return 0;
}

static int aligned_postfilter(blosc2_postfilter_params *params) {
  check_aligned(params->input);
  check_aligned(params->output);
  check_aligned(params->ttmp);
  memcpy(params->output, params->input, (size_t)params->size);
  return 0;
}

/* Functions of the application can use vectors on buffers, whatever was stored: the C library aligns to 32 bytes. */
static void test_alignment(void) {
  enum { NBYTES = 32 * 1000, GAP = 64 };
  static const uint8_t pipelines[][BLOSC2_MAX_FILTERS] = {
      {0, 0, 0, 0, 0, 0},   {0, 0, 0, 0, 0, 171},
      {0, 0, 0, 0, 171, 171}, {0, 0, 0, 0, BLOSC_SHUFFLE, 171},
      {0, 0, 0, 171, 171, 171}, {0, 0, 171, BLOSC_DELTA, BLOSC_SHUFFLE, 171},
  };
  static const int32_t blocksizes[] = {32 * 10, 32 * 300, NBYTES};
  static char name[] = "xor";
  uint8_t *memory = test_alloc(2 * (NBYTES + GAP)), *chunk = test_alloc(NBYTES + BLOSC2_MAX_OVERHEAD);
  uint8_t *noise = test_make_data(TEST_NOISE, NBYTES), *data, *back;
  blosc2_filter filter;
  size_t p, b;
  int rounds;
  data = memory + (GAP - (uintptr_t)memory % GAP);
  back = data + NBYTES;
  memcpy(data, noise, NBYTES);
  memset(&filter, 0, sizeof filter);
  filter.id = 171;
  filter.name = name;
  filter.forward = xor_forward;
  filter.backward = xor_backward;
  CHECK_INT(blosc2_register_filter(&filter), 0);
  for (p = 0; p < sizeof pipelines / sizeof *pipelines; p++) {
    for (b = 0; b < sizeof blocksizes / sizeof *blocksizes; b++) {
      for (rounds = 0; rounds < 2; rounds++) {
        blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
        blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
        blosc2_prefilter_params preparams = {0};
        blosc2_postfilter_params postparams = {0};
        blosc2_context *cctx, *dctx;
        int cbytes;
        memcpy(cparams.filters, pipelines[p], sizeof cparams.filters);
        cparams.compcode = BLOSC_LZ4;
        cparams.typesize = 8;
        cparams.splitmode = BLOSC_NEVER_SPLIT;
        cparams.blocksize = blocksizes[b];
        memset(data, 0, (size_t)blocksizes[b] / 2); /* so that there are blocks at all, most of which are stored */
        if (rounds > 0) {
          cparams.prefilter = aligned_prefilter;
          cparams.preparams = &preparams;
          dparams.postfilter = aligned_postfilter;
          dparams.postparams = &postparams;
        }
        unaligned = 0;
        cctx = blosc2_create_cctx(cparams);
        dctx = blosc2_create_dctx(dparams);
        cbytes = blosc2_compress_ctx(cctx, data, NBYTES, chunk, NBYTES + BLOSC2_MAX_OVERHEAD);
        CHECK(cbytes > 0);
        CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, NBYTES), NBYTES);
        CHECK_BYTES(back, data, NBYTES);
        /* from the middle of a vector on, a whole block among others */
        CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 1, NBYTES / 8 - 2, back, NBYTES), NBYTES - 16);
        CHECK_BYTES(back, data + 8, NBYTES - 16);
        CHECK_INT(unaligned, 0);
        blosc2_free_ctx(cctx);
        blosc2_free_ctx(dctx);
        memcpy(data, noise, NBYTES);
      }
    }
  }
  free(memory);
  free(chunk);
  free(noise);
}

/* Pipelines of several filters leave the source alone and come back, in one block and in many. */
static void test_pipelines(void) {
  static const uint8_t pipelines[][BLOSC2_MAX_FILTERS] = {
      {0, 0, 0, 0, 170, BLOSC_DELTA},
      {0, 0, 0, 0, BLOSC_SHUFFLE, BLOSC_DELTA},
      {0, 0, 0, 0, BLOSC_BITSHUFFLE, BLOSC_DELTA},
      {0, 0, 0, 0, BLOSC_BITSHUFFLE, BLOSC_SHUFFLE},
      {0, 0, 0, 170, BLOSC_DELTA, BLOSC_SHUFFLE},
      {170, BLOSC_DELTA, BLOSC_SHUFFLE, 170, BLOSC_BITSHUFFLE, BLOSC_SHUFFLE},
  };
  static const int32_t sizes[] = {78, 1000, 100000};
  uint8_t *data = test_make_data(TEST_RAMP, 100000), *copy = test_make_data(TEST_RAMP, 100000);
  uint8_t *back = test_alloc(100000), *chunk = test_alloc(100000 + BLOSC2_MAX_OVERHEAD);
  size_t p, s;
  int nthreads;
  for (p = 0; p < sizeof pipelines / sizeof *pipelines; p++) {
    for (s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      for (nthreads = 1; nthreads <= 2; nthreads++) {
        blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
        blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
        blosc2_context *cctx, *dctx;
        int cbytes;
        memcpy(cparams.filters, pipelines[p], sizeof cparams.filters);
        cparams.typesize = 4;
        cparams.blocksize = 4096;
        cparams.nthreads = dparams.nthreads = (int16_t)nthreads;
        cctx = blosc2_create_cctx(cparams);
        dctx = blosc2_create_dctx(dparams);
        cbytes = blosc2_compress_ctx(cctx, data, sizes[s], chunk, sizes[s] + BLOSC2_MAX_OVERHEAD);
        CHECK(cbytes > 0);
        CHECK_BYTES(data, copy, (size_t)sizes[s]);
        CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, sizes[s]), sizes[s]);
        CHECK_BYTES(back, data, (size_t)sizes[s]);
        CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 10, 5, back, 20), 20);
        CHECK_BYTES(back, data + 40, 20);
        blosc2_free_ctx(cctx);
        blosc2_free_ctx(dctx);
      }
    }
  }
  free(data);
  free(copy);
  free(back);
  free(chunk);
}

/* ---- Threads ---- */

static int jobs_run;

/* The application's threads: here, the caller's own, backwards. */
static void run_jobs(void *callback_data, void (*dojob)(void *), int numjobs, size_t jobdata_elsize, void *jobdata) {
  int i;
  for (i = numjobs - 1; i >= 0; i--) {
    dojob((char *)jobdata + (size_t)i * jobdata_elsize);
  }
  *(int *)callback_data += numjobs;
}

static int round_trip(int nthreads, const uint8_t *data, uint8_t *chunk, uint8_t *back) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_context *cctx, *dctx;
  int cbytes, nbytes;
  cparams.typesize = 4;
  cparams.blocksize = 16384;
  cparams.nthreads = dparams.nthreads = (int16_t)nthreads;
  cctx = blosc2_create_cctx(cparams);
  dctx = blosc2_create_dctx(dparams);
  cbytes = blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
  nbytes = cbytes > 0 ? blosc2_decompress_ctx(dctx, chunk, cbytes, back, SIZE) : -1;
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
  return nbytes == SIZE && memcmp(back, data, SIZE) == 0;
}

static void test_threads_callback(void) {
  uint8_t *data = test_make_data(TEST_RAMP, SIZE), *back = test_alloc(SIZE), *chunk = test_alloc(SIZE + 32);
  blosc2_set_threads_callback(run_jobs, &jobs_run);
  CHECK(round_trip(3, data, chunk, back));
  CHECK(jobs_run > 0);
  blosc2_set_threads_callback(NULL, NULL);
  jobs_run = 0;
  CHECK(round_trip(3, data, chunk, back));
  CHECK_INT(jobs_run, 0);
  free(data);
  free(back);
  free(chunk);
}

/* A prefilter that uses the library for itself, and ends that. */
static int ending_prefilter(blosc2_prefilter_params *params) {
  memcpy(params->output, params->input, (size_t)params->output_size);
  if (params->nblock == 1) {
    usleep(20000); /* by when the threads wait for this block */
    blosc2_init();
    blosc2_destroy();
  }
  return 0;
}

static void test_end_inside_callback(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_prefilter_params params;
  uint8_t *data = test_make_data(TEST_RAMP, SIZE), *chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  uint8_t *back = test_alloc(SIZE);
  blosc2_context *context;
  int cbytes;
  memset(&params, 0, sizeof params);
  cparams.typesize = 4;
  cparams.nthreads = 4;
  cparams.blocksize = 8000;
  cparams.prefilter = ending_prefilter;
  cparams.preparams = &params;
  context = blosc2_create_cctx(cparams);
  REQUIRE(context != NULL);
  cbytes = blosc2_compress_ctx(context, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
  CHECK(cbytes > 0);
  CHECK_INT(blosc2_decompress(chunk, cbytes, back, SIZE), SIZE);
  CHECK(memcmp(data, back, SIZE) == 0);
  blosc2_free_ctx(context);
  free(data);
  free(chunk);
  free(back);
}

static void *worker(void *failures) {
  uint8_t *data = test_make_data(TEST_FLOATS, SIZE), *back = test_alloc(SIZE), *chunk = test_alloc(SIZE + 32);
  int i;
  for (i = 0; i < 20; i++) {
    *(int *)failures += !round_trip(1 + i % 4, data, chunk, back);
    blosc1_set_compressor(i % 2 ? "lz4" : "blosclz");
    *(int *)failures += blosc1_get_compressor() == NULL;
  }
  free(data);
  free(back);
  free(chunk);
  return NULL;
}

static void test_many_threads(void) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  int failures[THREADS] = {0}, i;
  for (i = 0; i < THREADS; i++) {
    CHECK_INT(pthread_create(&threads[i], NULL, worker, &failures[i]), 0);
  }
  for (i = 0; i < THREADS; i++) {
    CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_INT(failures[i], 0);
  }
}

/* A child of a process that used threads: contexts from before, new ones, and the global functions. */
static void test_fork(void) {
  uint8_t *data = test_make_data(TEST_RAMP, SIZE), *back = test_alloc(SIZE), *chunk = test_alloc(SIZE + 32);
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_context *cctx;
  pid_t child;
  int status = -1;
  cparams.nthreads = 3;
  cctx = blosc2_create_cctx(cparams);
  blosc2_set_nthreads(3);
  CHECK(blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD) > 0);
  CHECK(blosc2_compress(5, 1, 4, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD) > 0);
  fflush(stdout);
  child = fork();
  if (child == 0) {
    int ok;
    alarm(60); /* a child that hangs fails the test */
    ok = blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD) > 0;
    ok = ok && round_trip(3, data, chunk, back);
    ok = ok && blosc2_compress(5, 1, 4, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD) > 0;
    ok = ok && blosc2_decompress(chunk, SIZE + BLOSC2_MAX_OVERHEAD, back, SIZE) == SIZE;
    blosc2_free_ctx(cctx);
    free(data);
    free(back);
    free(chunk);
    _exit(ok ? 0 : 1);
  }
  CHECK(child > 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD) > 0);
  blosc2_free_ctx(cctx);
  blosc2_set_nthreads(1);
  free(data);
  free(back);
  free(chunk);
}

/* ---- Environment variables ---- */

/* Compresses with a variable set for this one call. */
static int compress_with(const char *name, const char *value, const int64_t *data, uint8_t *chunk) {
  const int32_t size = 8 * 100000;
  int cbytes;
  if (name != NULL) {
    setenv(name, value, 1);
  }
  cbytes = blosc2_compress(1, BLOSC_SHUFFLE, 8, data, size, chunk, size + BLOSC2_MAX_OVERHEAD);
  if (name != NULL) {
    unsetenv(name);
  }
  return cbytes;
}

static void test_environment(void) {
  const int32_t size = 8 * 100000;
  int64_t *data = (int64_t *)test_alloc((size_t)size), *back = (int64_t *)test_alloc((size_t)size), i;
  uint8_t *chunk = test_alloc((size_t)size + BLOSC2_MAX_OVERHEAD);
  int plain;
  for (i = 0; i < 100000; i++) {
    data[i] = i;
  }
  blosc1_set_compressor("lz4");
  plain = compress_with(NULL, NULL, data, chunk);
  CHECK(plain > 0);
  CHECK(compress_with("BLOSC_CLEVEL", "9", data, chunk) != plain);
  CHECK(compress_with("BLOSC_SHUFFLE", "NOSHUFFLE", data, chunk) > plain);
  CHECK_INT(compress_with("BLOSC_SHUFFLE", "SHUFFLE", data, chunk), plain);
  CHECK(compress_with("BLOSC_TYPESIZE", "9", data, chunk) > plain);
  CHECK(compress_with("BLOSC_NOLOCK", "1", data, chunk) > 0);
  CHECK_INT(blosc2_decompress(chunk, size + BLOSC2_MAX_OVERHEAD, back, size), size);
  CHECK_BYTES(back, data, (size_t)size);
  /* Of filters that nobody knows, only those of contexts for one call are the defaults. */
  setenv("BLOSC_NOLOCK", "1", 1);
  CHECK(blosc2_compress(1, 3, 8, data, size, chunk, size + BLOSC2_MAX_OVERHEAD) > 0);
  CHECK_INT(chunk[BLOSC2_CHUNK_FILTER_CODES + BLOSC2_MAX_FILTERS - 1], BLOSC_SHUFFLE);
  unsetenv("BLOSC_NOLOCK");
  CHECK(blosc2_compress(1, 3, 8, data, size, chunk, size + BLOSC2_MAX_OVERHEAD) > 0);
  CHECK_INT(chunk[BLOSC2_CHUNK_FILTER_CODES + BLOSC2_MAX_FILTERS - 1], BLOSC_NOFILTER);
  CHECK(compress_with("BLOSC_COMPRESSOR", "zstd", data, chunk) > 0);
  CHECK_STR(blosc1_get_compressor(), "zstd");
  CHECK_INT(blosc2_get_nthreads(), 1);
  CHECK(compress_with("BLOSC_NTHREADS", "3", data, chunk) > 0);
  CHECK_INT(blosc2_get_nthreads(), 3);
  setenv("BLOSC_NTHREADS", "-1", 1);
  CHECK(blosc2_decompress(chunk, size + BLOSC2_MAX_OVERHEAD, back, size) < 0);
  setenv("BLOSC_NTHREADS", "32768", 1);
  CHECK(blosc2_decompress(chunk, size + BLOSC2_MAX_OVERHEAD, back, size) < 0);
  unsetenv("BLOSC_NTHREADS");
  CHECK_INT(blosc2_decompress(chunk, size + BLOSC2_MAX_OVERHEAD, back, size), size);
  blosc2_set_nthreads(1);
  /* Of a variable that is there twice, the first one counts, as with getenv. */
  {
    extern char **environ;
    char *twice[] = {(char *)"BLOSC_SHUFFLE=SHUFFLE", (char *)"BLOSC_SHUFFLE=NOSHUFFLE", NULL}, **before = environ;
    blosc1_set_compressor("lz4");
    environ = twice;
    CHECK_INT(compress_with(NULL, NULL, data, chunk), plain);
    environ = before;
  }
  blosc1_set_compressor("blosclz");
  free(data);
  free(back);
  free(chunk);
}

/* ---- Contexts ---- */

static void test_context_parameters(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS, got;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS, dgot;
  blosc2_context *cctx, *dctx;
  cparams.compcode = BLOSC_ZSTD;
  cparams.clevel = 7;
  cparams.typesize = 16;
  cparams.nthreads = 2;
  cparams.filters[0] = BLOSC_TRUNC_PREC;
  cparams.filters_meta[0] = 23;
  cctx = blosc2_create_cctx(cparams);
  CHECK_INT(blosc2_ctx_get_cparams(cctx, &got), 0);
  CHECK_INT(got.compcode, BLOSC_ZSTD);
  CHECK_INT(got.clevel, 7);
  CHECK_INT(got.typesize, 16);
  CHECK_INT(got.nthreads, 2);
  CHECK(got.filters[0] == BLOSC_TRUNC_PREC && got.filters_meta[0] == 23);
  dparams.nthreads = 5;
  dctx = blosc2_create_dctx(dparams);
  CHECK_INT(blosc2_ctx_get_dparams(dctx, &dgot), 0);
  CHECK_INT(dgot.nthreads, 5);
  CHECK(blosc2_ctx_get_cparams(NULL, &got) < 0);
  CHECK(blosc2_ctx_get_dparams(dctx, NULL) < 0);
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
  blosc2_free_ctx(NULL);
  /* contexts that cannot be */
  cparams.filters[5] = 40;
  CHECK(blosc2_create_cctx(cparams) == NULL);
  CHECK(blosc2_compress_ctx(NULL, &got, 8, &dgot, 40) < 0);
}

int main(void) {
  blosc2_init();
  test_prefilters();
  test_filters_of_vl_blocks();
  test_looking_callbacks();
  test_failing_callbacks();
  test_disposable_output();
  test_registered();
  test_zeros_of_a_filter();
  test_alignment();
  test_pipelines();
  test_threads_callback();
  test_end_inside_callback();
  test_many_threads();
  test_fork();
  test_environment();
  test_context_parameters();
  blosc2_destroy();
  return test_end();
}
