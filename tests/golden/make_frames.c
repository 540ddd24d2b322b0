/* Makes the golden frames of one release of the C library; see make_frames.py. The content is that of tests/golden_frames.rs. */

#include <blosc2.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_B2ND
#include <b2nd.h>
#endif

#define ITEMS 300
#define BYTES (ITEMS * 4)

#define TRY(what) \
  do { \
    long long code_ = (long long)(what); \
    if (code_ < 0) { \
      fprintf(stderr, "%s:%d: %s: %lld\n", __FILE__, __LINE__, #what, code_); \
      exit(1); \
    } \
  } while (0)

static const char *out;

/* Item `i` of the chunk that `seed` names. */
static void ramp(int32_t *items, int seed, int n) {
  int i;
  for (i = 0; i < n; i++) {
    items[i] = seed * 100000 + i * 3;
  }
}

static blosc2_cparams parameters(int codec, int filter) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.typesize = 4;
  cparams.compcode = (uint8_t)codec;
  cparams.filters[BLOSC2_MAX_FILTERS - 1] = (uint8_t)filter;
  return cparams;
}

static blosc2_schunk *create(const char *name, bool contiguous, blosc2_cparams cparams) {
  static char path[1000];
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage;
  blosc2_schunk *schunk;
  memset(&storage, 0, sizeof storage);
  snprintf(path, sizeof path, "%s/%s.b2frame", out, name);
  storage.contiguous = contiguous;
  storage.urlpath = path;
  storage.cparams = &cparams;
  storage.dparams = &dparams;
  schunk = blosc2_schunk_new(&storage);
  if (schunk == NULL) {
    fprintf(stderr, "%s cannot be made\n", path);
    exit(1);
  }
  return schunk;
}

static void append(blosc2_schunk *schunk, int seed, int n) {
  static int32_t items[ITEMS];
  ramp(items, seed, n);
  TRY(blosc2_schunk_append_buffer(schunk, items, n * 4));
}

static int compressed(int seed, uint8_t *chunk) {
  static int32_t items[ITEMS];
  blosc2_context *cctx = blosc2_create_cctx(parameters(BLOSC_BLOSCLZ, BLOSC_SHUFFLE));
  int n;
  ramp(items, seed, ITEMS);
  n = blosc2_compress_ctx(cctx, items, BYTES, chunk, BYTES + 64);
  TRY(n);
  blosc2_free_ctx(cctx);
  return n;
}

/* All that was ever possible: metalayers, special chunks, chunks inserted, replaced, deleted, a shorter last one. */
static void edited(const char *name, bool contiguous) {
  static uint8_t chunk[BYTES + 64];
  blosc2_cparams cparams = parameters(BLOSC_BLOSCLZ, BLOSC_SHUFFLE);
  blosc2_schunk *schunk = create(name, contiguous, cparams);
  int32_t seven = 7;
  int i;
  TRY(blosc2_meta_add(schunk, "m1", (uint8_t *)"golden", 6));
  TRY(blosc2_meta_add(schunk, "empty", (uint8_t *)"", 0));
  for (i = 0; i < 6; i++) {
    append(schunk, i, ITEMS);
  }
  TRY(blosc2_chunk_zeros(cparams, BYTES, chunk, sizeof chunk));
  TRY(blosc2_schunk_append_chunk(schunk, chunk, true));
  TRY(blosc2_chunk_repeatval(cparams, BYTES, chunk, sizeof chunk, &seven));
  TRY(blosc2_schunk_append_chunk(schunk, chunk, true));
  TRY(compressed(20, chunk));
  TRY(blosc2_schunk_insert_chunk(schunk, 2, chunk, true));
  TRY(compressed(30, chunk));
  TRY(blosc2_schunk_update_chunk(schunk, 4, chunk, true));
  TRY(blosc2_schunk_delete_chunk(schunk, 1));
  append(schunk, 40, 100);
  TRY(blosc2_vlmeta_add(schunk, "v1", (uint8_t *)"variable-length golden golden golden", 36, NULL));
  TRY(blosc2_vlmeta_add(schunk, "v2", (uint8_t *)"short", 5, NULL));
  TRY(blosc2_vlmeta_update(schunk, "v2", (uint8_t *)"longer than before", 18, NULL));
  TRY(blosc2_schunk_free(schunk));
}

static void codecs(void) {
  static const struct {
    const char *name;
    int codec, filter;
  } cases[] = {
      {"lz4-bitshuffle", BLOSC_LZ4, BLOSC_BITSHUFFLE}, {"lz4hc-none", BLOSC_LZ4HC, BLOSC_NOFILTER},
      {"zlib-shuffle", BLOSC_ZLIB, BLOSC_SHUFFLE},     {"zstd-shuffle", BLOSC_ZSTD, BLOSC_SHUFFLE},
      {"zstd-delta", BLOSC_ZSTD, BLOSC_DELTA},
  };
  size_t i;
  for (i = 0; i < sizeof cases / sizeof *cases; i++) {
    blosc2_schunk *schunk = create(cases[i].name, true, parameters(cases[i].codec, cases[i].filter));
    append(schunk, 1, ITEMS);
    append(schunk, 2, ITEMS);
    append(schunk, 3, 50);
    TRY(blosc2_schunk_free(schunk));
  }
}

static void dictionary(void) {
  static int32_t items[32 * ITEMS];
  blosc2_cparams cparams = parameters(BLOSC_ZSTD, BLOSC_SHUFFLE);
  blosc2_schunk *schunk;
  int i;
  cparams.use_dict = 1;
  cparams.blocksize = 1024;
  cparams.clevel = 7;
  schunk = create("dictionary", true, cparams);
  for (i = 0; i < 32; i++) {
    ramp(items + i * ITEMS, i % 5, ITEMS);
  }
  TRY(blosc2_schunk_append_buffer(schunk, items, sizeof items));
  TRY(blosc2_schunk_free(schunk));
}

static void filled(void) {
#ifdef WITH_FILL
  static const int kinds[] = {BLOSC2_SPECIAL_ZERO, BLOSC2_SPECIAL_NAN};
  static const char *const names[] = {"filled-zeros", "filled-nans"};
  int i;
  for (i = 0; i < 2; i++) {
    blosc2_schunk *schunk = create(names[i], true, parameters(BLOSC_BLOSCLZ, BLOSC_SHUFFLE));
    TRY(blosc2_schunk_fill_special(schunk, 1000, kinds[i], BYTES));
    TRY(blosc2_schunk_free(schunk));
  }
#endif
}

static void large_index(void) {
  blosc2_schunk *schunk = create("many", true, parameters(BLOSC_LZ4, BLOSC_SHUFFLE));
  int i;
  for (i = 0; i < 400; i++) {
    append(schunk, i % 7, 4);
  }
  TRY(blosc2_schunk_free(schunk));
}

static void variable(void) {
#ifdef WITH_VL
  static const char *const words[] = {"red", "green green green green green", "blue"};
  static uint8_t chunk[1000];
  blosc2_cparams cparams = parameters(BLOSC_LZ4, BLOSC_SHUFFLE);
  blosc2_schunk *schunk = create("variable", true, cparams);
  const void *blocks[3];
  int32_t sizes[3];
  blosc2_context *cctx;
  int i;
  append(schunk, 1, 10);
  append(schunk, 2, ITEMS);
  append(schunk, 3, 100);
  TRY(blosc2_schunk_free(schunk));

  cparams.typesize = 1;
  for (i = 0; i < 3; i++) {
    blocks[i] = words[i];
    sizes[i] = (int32_t)strlen(words[i]);
  }
  for (i = 0; i < 2; i++) {
    schunk = create(i == 0 ? "vl" : "vl-sparse", i == 0, cparams);
    cctx = blosc2_create_cctx(cparams);
    TRY(blosc2_vlcompress_ctx(cctx, blocks, sizes, 3, chunk, sizeof chunk));
    TRY(blosc2_schunk_append_chunk(schunk, chunk, true));
    TRY(blosc2_schunk_append_chunk(schunk, chunk, true));
    blosc2_free_ctx(cctx);
    TRY(blosc2_schunk_free(schunk));
  }
#endif
}

static void array(void) {
#ifdef WITH_B2ND
  static const int64_t shape[] = {17, 23};
  static const int32_t chunkshape[] = {6, 10}, blockshape[] = {4, 3};
  static int32_t items[17 * 23];
  static char path[1000];
  blosc2_cparams cparams = parameters(BLOSC_ZSTD, BLOSC_SHUFFLE);
  blosc2_storage storage;
  b2nd_context_t *context;
  b2nd_array_t *made;
  memset(&storage, 0, sizeof storage);
  snprintf(path, sizeof path, "%s/array.b2nd", out);
  storage.contiguous = true;
  storage.urlpath = path;
  storage.cparams = &cparams;
  ramp(items, 5, 17 * 23);
  context = b2nd_create_ctx(&storage, 2, shape, chunkshape, blockshape, "<i4", 0, NULL, 0);
  if (context == NULL) {
    exit(1);
  }
  TRY(b2nd_from_cbuffer(context, &made, items, sizeof items));
  TRY(b2nd_free(made));
  TRY(b2nd_free_ctx(context));
#endif
}

int main(int argc, char **argv) {
  if (argc != 2) {
    return 2;
  }
  out = argv[1];
#ifdef OLD_INIT
  blosc_init();
#else
  blosc2_init();
#endif
  edited("edited", true);
  edited("edited-sparse", false);
  codecs();
  dictionary();
  filled();
  large_index();
  variable();
  array();
  return 0;
}
