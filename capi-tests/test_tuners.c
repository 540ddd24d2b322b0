/* Tuners of the application: which callbacks are called, in which order, and what happens when they fail. */

#include "test.h"

#include <b2nd.h>
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
/* After how many calls of next_cparams that callback fails; 0 for never. */
static int failing_call;
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
  failing_call = 0;
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
  if (failing_call > 0 && --failing_call == 0) {
    return -1;
  }
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
  int32_t blocksize = -1;
  CHECK_INT(blosc2_cbuffer_sizes(chunk, NULL, NULL, &blocksize), 0);
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
  REQUIRE(ctx != NULL);
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
  REQUIRE(ctx != NULL);
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

static blosc2_cparams tuned_cparams(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = 4;
  cparams.tuner_id = 200;
  return cparams;
}

/* Whether the tuner was called once for each of `count` chunks since the last look, and for nothing else. */
static void check_calls(const char *what, int count) {
  char wanted[sizeof calls] = "";
  int i;
  for (i = 0; i < count; i++) {
    strcat(wanted, with_state ? "cu" : "b");
  }
  if (strcmp(calls, wanted) != 0) {
    printf("%s: calls '%s', not '%s'\n", what, calls, wanted);
  }
  CHECK_STR(calls, wanted);
  calls[0] = '\0';
}

/* The codec and the block size of each chunk. */
static void check_chunks(blosc2_schunk *schunk, int format, int32_t blocksize) {
  int64_t i;
  for (i = 0; i < schunk->nchunks; i++) {
    uint8_t *stored;
    bool needs_free;
    REQUIRE(blosc2_schunk_get_chunk(schunk, i, &stored, &needs_free) > 0);
    CHECK_INT(stored[BLOSC2_CHUNK_FLAGS] >> 5, format);
    CHECK_INT(chunk_blocksize(stored), blocksize);
    if (needs_free) {
      free(stored);
    }
  }
}

/* Slices and copies of super-chunks. */
static void test_super_chunks(void) {
  enum { ITEMS = 10000 };
  blosc2_cparams cparams = tuned_cparams();
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  int32_t *model = test_alloc(3 * ITEMS * 4), *back = test_alloc(3 * ITEMS * 4);
  int kind;
  storage.cparams = &cparams;
  for (kind = 0; kind < 4; kind++) {
    blosc2_schunk *schunk, *copy;
    int i;
    restart();
    with_state = kind & 1;
    storage.contiguous = kind > 1;
    schunk = blosc2_schunk_new(&storage);
    CHECK_STR(calls, "i");
    calls[0] = '\0';
    for (i = 0; i < 3; i++) {
      memcpy(model + i * ITEMS, data, ITEMS * 4);
      CHECK_INT(blosc2_schunk_append_buffer(schunk, data, ITEMS * 4), i + 1);
    }
    check_calls("append", 3);
    memset(model + 10, 5, 10 * 4);
    CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, 10, 20, model + 10), 0);
    check_calls("part of a chunk", 1);
    CHECK_INT(seen_source, ITEMS * 4);
    memset(model + ITEMS, 6, ITEMS * 4 + 8);
    CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, ITEMS - 1, 2 * ITEMS + 2, model + ITEMS - 1), 0);
    check_calls("slice of three chunks", 3);
    memcpy(model + ITEMS, data, ITEMS * 4);
    CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, ITEMS, 2 * ITEMS, model + ITEMS), 0);
    check_calls("a whole chunk", 1);
    CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 0, 3 * ITEMS, back), 0);
    CHECK_BYTES(back, model, 3 * ITEMS * 4);
    check_chunks(schunk, with_state ? BLOSC_ZSTD_FORMAT : BLOSC_BLOSCLZ_FORMAT, 4096);

    cparams.clevel = 9;
    copy = blosc2_schunk_copy(schunk, &storage);
    cparams.clevel = 5;
    REQUIRE(copy != NULL);
    CHECK_INT(calls[0], 'i');
    memmove(calls, calls + 1, strlen(calls));
    check_calls("copy", 3);
    check_chunks(copy, with_state ? BLOSC_ZSTD_FORMAT : BLOSC_BLOSCLZ_FORMAT, 4096);
    CHECK_INT(blosc2_schunk_get_slice_buffer(copy, 0, 3 * ITEMS, back), 0);
    CHECK_BYTES(back, model, 3 * ITEMS * 4);
    blosc2_schunk_free(copy);

    failing = with_state ? 'c' : 'b';
    CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, 0, 30000, data), -1);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 400), BLOSC2_ERROR_TUNER);
    storage.cparams->clevel = 9;
    CHECK(blosc2_schunk_copy(schunk, &storage) == NULL);
    storage.cparams->clevel = 5;
    CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 0, 3 * ITEMS, back), 0);
    CHECK_BYTES(back, model, 3 * ITEMS * 4);
    blosc2_schunk_free(schunk);
  }
  free(model);
  free(back);
}

enum { ROWS = 200, COLUMNS = 200, CHUNK = 100, BLOCK_BYTES = 20 * 50 * 4 };

static b2nd_context_t *array_context(blosc2_cparams *cparams, bool contiguous, int32_t chunk_extent, int64_t rows) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  const int64_t shape[2] = {rows, COLUMNS};
  const int32_t chunks[2] = {chunk_extent, chunk_extent}, blocks[2] = {20, 50};
  storage.cparams = cparams;
  storage.contiguous = contiguous;
  return b2nd_create_ctx(&storage, 2, shape, chunks, blocks, NULL, 0, NULL, 0);
}

static void check_array(b2nd_array_t *array, const int32_t *model) {
  int32_t *back = test_alloc((size_t)array->nitems * 4);
  CHECK_INT(b2nd_to_cbuffer(array, back, array->nitems * 4), 0);
  CHECK_BYTES(back, model, (size_t)array->nitems * 4);
  check_chunks(array->sc, with_state ? BLOSC_ZSTD_FORMAT : BLOSC_BLOSCLZ_FORMAT, BLOCK_BYTES);
  free(back);
}

/* Sets a box of an array and of the model to `value`. */
static void set_box(b2nd_array_t *array, int32_t *model, int64_t row, int64_t column, int64_t extent, int32_t value) {
  const int64_t start[2] = {row, column}, stop[2] = {row + extent, column + extent}, shape[2] = {extent, extent};
  int32_t *items = test_alloc((size_t)(extent * extent) * 4);
  int64_t i, j;
  for (i = 0; i < extent; i++) {
    for (j = 0; j < extent; j++) {
      items[i * extent + j] = value + (int32_t)j;
      model[(row + i) * COLUMNS + column + j] = value + (int32_t)j;
    }
  }
  CHECK_INT(b2nd_set_slice_cbuffer(items, shape, extent * extent * 4, start, stop, array), 0);
  free(items);
}

/* The outcome of a function that makes an array. */
static void check_made(const char *what, int code, int nchunks) {
  CHECK_INT(code, 0);
  CHECK_INT(calls[0], 'i');
  memmove(calls, calls + 1, strlen(calls));
  check_calls(what, nchunks);
}

/* Chunks of arrays are tuned one by one, except for the size of their blocks. */
static void test_arrays(void) {
  blosc2_cparams cparams = tuned_cparams();
  int32_t *model = test_alloc((ROWS + CHUNK) * COLUMNS * 4);
  int kind;
  for (kind = 0; kind < 4; kind++) {
    const int64_t first[2] = {0, 199}, second[2] = {5, 140};
    const int64_t zero[2] = {0, 0}, half[2] = {CHUNK, COLUMNS};
    int64_t *selection[2], sizes[2] = {2, 2};
    int32_t values[4] = {1, 2, 3, 4};
    b2nd_array_t *array, *other, *joined;
    b2nd_context_t *ctx;
    bool contiguous = kind > 1;
    restart();
    with_state = kind & 1;
    memcpy(model, data, ROWS * COLUMNS * 4);
    ctx = array_context(&cparams, contiguous, CHUNK, ROWS);
    check_made("from_cbuffer", b2nd_from_cbuffer(ctx, &array, model, ROWS * COLUMNS * 4), 4);
    check_array(array, model);
    set_box(array, model, 3, 7, 10, -5);
    check_calls("box in a chunk", 1);
    CHECK_INT(seen_source, CHUNK * CHUNK * 4);
    set_box(array, model, 90, 90, 20, -500);
    check_calls("box over four chunks", 4);
    set_box(array, model, 0, CHUNK, CHUNK, 77);
    check_calls("a whole chunk", 1);
    selection[0] = (int64_t *)first;
    selection[1] = (int64_t *)second;
    CHECK_INT(b2nd_set_orthogonal_selection(array, selection, sizes, values, sizes, sizeof values), 0);
    check_calls("selection", 4);
    model[5] = 1;
    model[140] = 2;
    model[199 * COLUMNS + 5] = 3;
    model[199 * COLUMNS + 140] = 4;
    check_array(array, model);
    CHECK_INT(b2nd_append(array, data, CHUNK * COLUMNS * 4, 0), 0);
    check_calls("append", 2);
    memcpy(model + ROWS * COLUMNS, data, CHUNK * COLUMNS * 4);
    check_array(array, model);
    CHECK_INT(b2nd_delete(array, 0, ROWS, CHUNK), 0);
    check_calls("delete", 0);
    blosc2_schunk_set_slice_buffer(array->sc, 0, 1, model);
    check_calls("items of the super-chunk", 1);
    check_array(array, model);

    b2nd_free_ctx(ctx);
    ctx = array_context(&cparams, contiguous, 50, ROWS);
    check_made("copy to other chunks", b2nd_copy(ctx, array, &other), 16);
    check_array(other, model);
    CHECK_INT(b2nd_free(other), 0);
    b2nd_free_ctx(ctx);
    calls[0] = '\0';
    cparams.clevel = 7;
    ctx = array_context(&cparams, contiguous, CHUNK, ROWS);
    check_made("copy with another level", b2nd_copy(ctx, array, &other), 4);
    check_array(other, model);
    CHECK_INT(b2nd_free(other), 0);
    calls[0] = '\0';
    check_made("slice", b2nd_get_slice(ctx, &other, array, zero, half), 2);
    check_array(other, model);
    b2nd_free_ctx(ctx);
    cparams.clevel = 5;
    ctx = array_context(&cparams, contiguous, 50, ROWS);
    REQUIRE_INT(b2nd_concatenate(ctx, other, array, 0, true, &joined), 0);
    CHECK_INT(joined->shape[0], ROWS + CHUNK);
    memmove(model + CHUNK * COLUMNS, model, ROWS * COLUMNS * 4);
    check_array(joined, model);
    b2nd_free_ctx(ctx);
    b2nd_free(joined);
    b2nd_free(other);
    b2nd_free(array);
  }
  free(model);
}

/* Constructors of constant arrays need no compression. */
static void test_constant_arrays(void) {
  blosc2_cparams cparams = tuned_cparams();
  b2nd_context_t *ctx = array_context(&cparams, false, CHUNK, ROWS);
  b2nd_array_t *array;
  const int32_t value = 7;
  restart();
  with_state = 1;
  check_made("zeros", b2nd_zeros(ctx, &array), 0);
  CHECK_INT(b2nd_free(array), 0);
  CHECK_STR(calls, "f");
  calls[0] = '\0';
  check_made("full", b2nd_full(ctx, &array, &value), 0);
  CHECK_INT(b2nd_free(array), 0);
  b2nd_free_ctx(ctx);
}

/* An array is as before if the tuner fails at one of several chunks. */
static void test_arrays_and_failures(void) {
  blosc2_cparams cparams = tuned_cparams();
  int32_t *model = test_alloc(ROWS * COLUMNS * 4);
  int at;
  memcpy(model, data, ROWS * COLUMNS * 4);
  for (at = 1; at <= 2; at++) {
    const int64_t start[2] = {90, 0}, stop[2] = {110, COLUMNS}, shape[2] = {20, COLUMNS};
    b2nd_context_t *ctx = array_context(&cparams, at > 1, CHUNK, ROWS);
    b2nd_array_t *array = NULL;
    restart();
    with_state = 1;
    failing_call = at;
    CHECK_INT(b2nd_from_cbuffer(ctx, &array, model, ROWS * COLUMNS * 4), -1);
    REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, model, ROWS * COLUMNS * 4), 0);
    failing_call = at;
    CHECK_INT(b2nd_set_slice_cbuffer(chunk, shape, 20 * COLUMNS * 4, start, stop, array), -1);
    failing_call = at;
    CHECK_INT(b2nd_append(array, data, CHUNK * COLUMNS * 4, 0), -1);
    CHECK_INT(array->shape[0], ROWS);
    failing_call = 0;
    check_array(array, model);
    b2nd_free(array);
    b2nd_free_ctx(ctx);
  }
  free(model);
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
    REQUIRE(ctx != NULL);
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
    REQUIRE(len > 0);
    blosc2_schunk_free(schunk);

    setenv("BTUNE_TRADEOFF", "0.5", 1);
    schunk = blosc2_schunk_open(path);
    if (CHECK(schunk != NULL)) {
      CHECK_INT(schunk->tuner_id, 0);
      CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 1000), 2);
      blosc2_schunk_free(schunk);
    }
    schunk = blosc2_schunk_from_buffer(cframe, len, false);
    REQUIRE(schunk != NULL);
    blosc2_schunk_free(schunk);
    schunk = blosc2_schunk_from_buffer(cframe, len, true);
    REQUIRE(schunk != NULL);
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
    test_skip("all of it: offsets are known for 64-bit machines only");
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
  test_super_chunks();
  test_arrays();
  test_constant_arrays();
  test_arrays_and_failures();
  test_unknown();
  test_tuner_of_the_environment();
  free(data);
  free(chunk);
  blosc2_destroy();
  return test_end();
}
