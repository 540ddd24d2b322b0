/* Tuners of the application: which callbacks are called, in which order, and what happens when they fail. */

#include "test.h"

#include <blosc2.h>

enum { SIZE = 200000 };

/* Members of the context that tuners know, by their offsets on 64-bit machines. */
enum {
  SOURCE = 0,
  SOURCESIZE = 20,
  NBLOCKS = 28,
  BLOCKSIZE = 36,
  DESTSIZE = 56,
  TYPESIZE = 60,
  COMPCODE = 116,
  CLEVEL = 124,
  FILTERS = 169,
  TUNER_PARAMS = 896,
  TUNER_ID = 904
};

static int32_t get(const blosc2_context *ctx, int offset) {
  int32_t value;
  memcpy(&value, (const char *)ctx + offset, sizeof value);
  return value;
}

static void set(blosc2_context *ctx, int offset, int32_t value) {
  memcpy((char *)ctx + offset, &value, sizeof value);
}

/* What the callbacks did: i(nit), b(locksize), c(params), u(pdate), f(ree). */
static char calls[64];
/* The callback that is to fail. */
static char failing;
static void *seen_config;
static blosc2_context *seen_dctx;
static const uint8_t *seen_address;
static int32_t seen_id, seen_source, seen_typesize, seen_blocks, seen_compressed;
static double seen_seconds;
static int with_state;
static int32_t wanted_blocksize;
static uint8_t state[100];

static int note(char call) {
  size_t length = strlen(calls);
  if (length + 1 < sizeof calls) {
    calls[length] = call;
    calls[length + 1] = '\0';
  }
  return call == failing ? -1 : 0;
}

static void restart(void) {
  calls[0] = '\0';
  failing = 0;
  with_state = 0;
  wanted_blocksize = 4096;
}

static int tuner_init(void *config, blosc2_context *cctx, blosc2_context *dctx) {
  void *address = state;
  seen_config = config;
  seen_dctx = dctx;
  seen_id = get(cctx, TUNER_ID);
  if (with_state) {
    memcpy((char *)cctx + TUNER_PARAMS, &address, sizeof address);
  }
  return note('i');
}

static void look(const blosc2_context *ctx) {
  memcpy(&seen_address, (const char *)ctx + SOURCE, sizeof seen_address);
  seen_source = get(ctx, SOURCESIZE);
  seen_typesize = get(ctx, TYPESIZE);
}

static int tuner_next_blocksize(blosc2_context *ctx) {
  look(ctx);
  set(ctx, BLOCKSIZE, wanted_blocksize);
  return note('b');
}

static int tuner_next_cparams(blosc2_context *ctx) {
  look(ctx);
  set(ctx, BLOCKSIZE, wanted_blocksize);
  set(ctx, COMPCODE, BLOSC_ZSTD);
  set(ctx, CLEVEL, 3);
  ((uint8_t *)ctx)[FILTERS + 5] = BLOSC_BITSHUFFLE;
  return note('c');
}

static int tuner_update(blosc2_context *ctx, double seconds) {
  seen_seconds = seconds;
  seen_blocks = get(ctx, NBLOCKS);
  seen_compressed = get(ctx, DESTSIZE);
  return note('u');
}

static int tuner_free(blosc2_context *ctx) {
  void *none = NULL;
  memcpy((char *)ctx + TUNER_PARAMS, &none, sizeof none);
  return note('f');
}

static blosc2_tuner a_tuner(int id, char *name) {
  blosc2_tuner tuner;
  memset(&tuner, 0, sizeof tuner);
  tuner.init = tuner_init;
  tuner.next_blocksize = tuner_next_blocksize;
  tuner.next_cparams = tuner_next_cparams;
  tuner.update = tuner_update;
  tuner.free = tuner_free;
  tuner.id = id;
  tuner.name = name;
  return tuner;
}

static blosc2_context *context(int id, void *config) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = 4;
  cparams.tuner_id = id;
  cparams.tuner_params = config;
  return blosc2_create_cctx(cparams);
}

static int32_t chunk_blocksize(const uint8_t *chunk) {
  int32_t blocksize;
  memcpy(&blocksize, chunk + BLOSC2_CHUNK_BLOCKSIZE, sizeof blocksize);
  return blocksize;
}

static uint8_t *data, *chunk;

static int compress(blosc2_context *ctx) {
  return blosc2_compress_ctx(ctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
}

/* A tuner that only knows the public interface: its init, and a block size before each compression. */
static void test_without_state(void) {
  int config = 5;
  blosc2_context *ctx;
  restart();
  ctx = context(200, &config);
  CHECK(ctx != NULL);
  CHECK_STR(calls, "i");
  CHECK(seen_config == &config);
  CHECK(seen_dctx == NULL);
  CHECK_INT(seen_id, 0);
  CHECK_INT(get(ctx, TUNER_ID), 200);
  CHECK(compress(ctx) > 0);
  CHECK_INT(chunk_blocksize(chunk), 4096);
  CHECK(seen_address == data);
  CHECK_INT(seen_source, SIZE);
  CHECK_INT(seen_typesize, 4);
  wanted_blocksize = 8192;
  CHECK(compress(ctx) > 0);
  CHECK_INT(chunk_blocksize(chunk), 8192);
  CHECK_STR(calls, "ibb");
  blosc2_free_ctx(ctx);
  CHECK_STR(calls, "ibb");
}

static void test_with_state(void) {
  blosc2_context *ctx;
  int cbytes;
  uint8_t *back = test_alloc(SIZE);
  restart();
  with_state = 1;
  ctx = context(200, NULL);
  CHECK(ctx != NULL);
  CHECK(seen_config == NULL);
  cbytes = compress(ctx);
  CHECK(cbytes > 0);
  CHECK_STR(calls, "icu");
  CHECK_INT(chunk_blocksize(chunk), 4096);
  CHECK_INT(chunk[BLOSC2_CHUNK_FLAGS] >> 5, BLOSC_ZSTD_FORMAT);
  CHECK_INT(chunk[BLOSC2_CHUNK_FILTER_CODES + 5], BLOSC_BITSHUFFLE);
  CHECK(seen_seconds >= 0 && seen_seconds < 100);
  CHECK_INT(seen_blocks, (SIZE + 4095) / 4096);
  CHECK_INT(seen_compressed, cbytes);
  CHECK_INT(blosc2_decompress(chunk, cbytes, back, SIZE), SIZE);
  CHECK_BYTES(back, data, SIZE);
  CHECK(compress(ctx) > 0);
  CHECK_STR(calls, "icucu");
  blosc2_free_ctx(ctx);
  CHECK_STR(calls, "icucuf");
  free(back);
}

/* Parameters that the tuner left alone. */
static void test_block_size_of_zero(void) {
  blosc2_context *ctx;
  restart();
  wanted_blocksize = 0;
  ctx = context(200, NULL);
  CHECK(compress(ctx) > 0);
  CHECK(chunk_blocksize(chunk) > 0);
  blosc2_free_ctx(ctx);
}

static void test_failing_callbacks(void) {
  static const char stateful[] = {'c', 'u'};
  blosc2_context *ctx;
  size_t i;
  restart();
  failing = 'i';
  with_state = 1;
  CHECK(context(200, NULL) == NULL);
  CHECK_STR(calls, "i"); /* the state is the tuner's own affair then */
  restart();
  ctx = context(200, NULL);
  failing = 'b';
  CHECK_INT(compress(ctx), BLOSC2_ERROR_TUNER);
  failing = 0;
  CHECK(compress(ctx) > 0);
  CHECK_STR(calls, "ibb");
  blosc2_free_ctx(ctx);
  for (i = 0; i < sizeof stateful; i++) {
    restart();
    with_state = 1;
    ctx = context(200, NULL);
    failing = stateful[i];
    CHECK_INT(compress(ctx), BLOSC2_ERROR_TUNER);
    failing = 0;
    CHECK(compress(ctx) > 0);
    blosc2_free_ctx(ctx);
    CHECK_STR(calls, i == 0 ? "iccuf" : "icucuf");
  }
}

/* Special chunks have a context of their own, and so a tuner. */
static void test_special_chunks(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = 4;
  cparams.tuner_id = 200;
  restart();
  CHECK_INT(blosc2_chunk_zeros(cparams, SIZE, chunk, BLOSC2_MAX_OVERHEAD), BLOSC2_MAX_OVERHEAD);
  CHECK_INT(chunk_blocksize(chunk), 4096);
  CHECK_INT(seen_source, SIZE);
  CHECK_STR(calls, "ib");
  failing = 'b';
  CHECK_INT(blosc2_chunk_nans(cparams, SIZE, chunk, BLOSC2_MAX_OVERHEAD), BLOSC2_ERROR_TUNER);
  failing = 'i';
  CHECK_INT(blosc2_chunk_uninit(cparams, SIZE, chunk, BLOSC2_MAX_OVERHEAD), BLOSC2_ERROR_NULL_POINTER);
  restart();
  with_state = 1;
  CHECK_INT(blosc2_chunk_repeatval(cparams, SIZE, chunk, BLOSC2_MAX_OVERHEAD + 4, data), BLOSC2_MAX_OVERHEAD + 4);
  CHECK_STR(calls, "icf");
  cparams.tuner_id = 201;
  CHECK_INT(blosc2_chunk_zeros(cparams, SIZE, chunk, BLOSC2_MAX_OVERHEAD), BLOSC2_ERROR_NULL_POINTER);
}

/* The blocks of a chunk of variable-length blocks count as blocks of the longest one's size. */
static void test_variable_length_blocks(void) {
  const void *blocks[2];
  const int32_t sizes[2] = {300, 400};
  blosc2_context *ctx;
  restart();
  blocks[0] = blocks[1] = data;
  with_state = 1;
  ctx = context(200, NULL);
  CHECK(blosc2_vlcompress_ctx(ctx, blocks, sizes, 2, chunk, 1000) > 0);
  CHECK(seen_address == NULL);
  CHECK_INT(seen_source, 700);
  CHECK_INT(seen_blocks, 2);
  CHECK_INT(get(ctx, BLOCKSIZE), 400);
  CHECK_STR(calls, "icu");
  blosc2_free_ctx(ctx);
}

static void test_unknown(void) {
  blosc2_context *ctx;
  int id;
  restart();
  CHECK(context(201, NULL) == NULL);
  CHECK(context(1, NULL) == NULL);
  CHECK(context(1 << 30, NULL) == NULL);
  for (id = -1; id <= 0; id++) { /* the library's own */
    ctx = context(id, NULL);
    CHECK(ctx != NULL);
    CHECK(compress(ctx) > 0);
    blosc2_free_ctx(ctx);
  }
  CHECK_STR(calls, "");
}

/* A tuner that cannot be had keeps nobody from data: the environment asks for it where something is made. */
static void test_tuner_of_the_environment(void) {
  static char path[] = "test_tuners.b2frame";
  static const bool kinds[] = {true, false};
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  size_t i;
  setenv("PATH", "", 1); /* Python is not asked for the plugin */
  for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    blosc2_schunk *schunk;
    uint8_t *cframe;
    bool needs_free;
    int64_t len;
    blosc2_remove_urlpath(path);
    storage.contiguous = kinds[i];
    storage.urlpath = path;
    schunk = blosc2_schunk_new(&storage);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 1000), 1);
    len = blosc2_schunk_to_buffer(schunk, &cframe, &needs_free);
    CHECK(len > 0);
    blosc2_schunk_free(schunk);

    setenv("BTUNE_TRADEOFF", "0.5", 1);
    schunk = blosc2_schunk_open(path);
    if (CHECK(schunk != NULL)) {
      CHECK_INT(schunk->tuner_id, 0);
      CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 1000), 2);
      blosc2_schunk_free(schunk);
    }
    schunk = blosc2_schunk_from_buffer(cframe, len, false);
    CHECK(schunk != NULL);
    blosc2_schunk_free(schunk);
    schunk = blosc2_schunk_from_buffer(cframe, len, true);
    CHECK(schunk != NULL);
    storage.urlpath = NULL;
    CHECK(blosc2_schunk_copy(schunk, &storage) == NULL);
    blosc2_schunk_free(schunk);
    storage.urlpath = NULL;
    CHECK(blosc2_schunk_new(&storage) == NULL);
    unsetenv("BTUNE_TRADEOFF");
    if (needs_free) {
      free(cframe);
    }
    blosc2_remove_urlpath(path);
  }
}

int main(void) {
  static char name[] = "a tuner";
  blosc2_tuner tuner = a_tuner(200, name);
  if (sizeof(void *) != 8) {
    printf("offsets are known for 64-bit machines only\n");
    return EXIT_SUCCESS;
  }
  blosc2_init();
  data = test_make_data(TEST_RAMP, SIZE);
  chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  CHECK_INT(blosc2_register_tuner(&tuner), 0);
  test_without_state();
  test_with_state();
  test_block_size_of_zero();
  test_failing_callbacks();
  test_special_chunks();
  test_variable_length_blocks();
  test_unknown();
  test_tuner_of_the_environment();
  free(data);
  free(chunk);
  blosc2_destroy();
  return test_end();
}
