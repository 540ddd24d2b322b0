/* Registries of codecs, filters and tuners: ranges, duplicates, names, and what the callbacks are told. */

#include "plain.h"
#include "test.h"

#include <blosc2.h>
#include <pthread.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

enum { SIZE = 100000, BLOCK = 8192 };

static uint8_t *data, *chunk, *back;
static int one, two, three; /* things to point to */

/* What the last callback saw. */
static blosc2_cparams seen_cparams;
static blosc2_dparams seen_dparams;
static const void *seen_chunk;
static uint8_t seen_meta, seen_id;
static int answer;

/* Keeps the first half of the bytes: the others are zeros. */
static int half_encoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                        blosc2_cparams *cparams, const void *whole) {
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(cparams);
  BLOSC_UNUSED_PARAM(whole);
  if (output_len < input_len / 2) {
    return 0;
  }
  memcpy(output, input, (size_t)(input_len / 2));
  return input_len / 2;
}

static int half_decoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                        blosc2_dparams *dparams, const void *whole) {
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(dparams);
  BLOSC_UNUSED_PARAM(whole);
  if (input_len != output_len / 2) {
    return -1;
  }
  memset(output, 0, (size_t)output_len);
  memcpy(output, input, (size_t)input_len);
  return output_len;
}

static int copy_encoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                        blosc2_cparams *cparams, const void *whole) {
  seen_cparams = *cparams;
  seen_chunk = whole;
  seen_meta = meta;
  CHECK(output_len <= input_len);
  return answer != 0 ? answer : half_encoder(input, input_len, output, output_len, meta, cparams, whole);
}

static int copy_decoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                        blosc2_dparams *dparams, const void *whole) {
  seen_dparams = *dparams;
  seen_chunk = whole;
  seen_meta = meta;
  return answer != 0 ? answer : half_decoder(input, input_len, output, output_len, meta, dparams, whole);
}

static int other_encoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                         blosc2_cparams *cparams, const void *whole) {
  BLOSC_UNUSED_PARAM(input);
  BLOSC_UNUSED_PARAM(input_len);
  BLOSC_UNUSED_PARAM(output);
  BLOSC_UNUSED_PARAM(output_len);
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(cparams);
  BLOSC_UNUSED_PARAM(whole);
  return -1;
}

static int copy_forward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_cparams *cparams,
                        uint8_t id) {
  seen_cparams = *cparams;
  seen_meta = meta;
  seen_id = id;
  memcpy(dest, src, (size_t)length);
  return answer;
}

static int copy_backward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_dparams *dparams,
                         uint8_t id) {
  seen_dparams = *dparams;
  seen_meta = meta;
  seen_id = id;
  memcpy(dest, src, (size_t)length);
  return answer;
}

static int register_codec(int id, const char *name, blosc2_codec_encoder_cb encoder) {
  blosc2_codec codec;
  memset(&codec, 0, sizeof codec);
  codec.compcode = (uint8_t)id;
  codec.compname = (char *)(uintptr_t)name;
  codec.complib = 77;
  codec.version = 3;
  codec.encoder = encoder;
  codec.decoder = copy_decoder;
  return blosc2_register_codec(&codec);
}

static int register_filter(int id, const char *name) {
  blosc2_filter filter;
  memset(&filter, 0, sizeof filter);
  filter.id = (uint8_t)id;
  filter.name = (char *)(uintptr_t)name;
  filter.forward = copy_forward;
  filter.backward = copy_backward;
  return blosc2_register_filter(&filter);
}

static int tuner_next(blosc2_context *ctx) {
  return ctx != NULL ? 0 : -1;
}

static int register_tuner(int id, const char *name) {
  blosc2_tuner tuner;
  memset(&tuner, 0, sizeof tuner);
  tuner.next_blocksize = tuner_next;
  tuner.id = id;
  tuner.name = (char *)(uintptr_t)name;
  return blosc2_register_tuner(&tuner);
}

static const char *const unreadable = (const char *)8;

static void test_ranges(void) {
  static const int low[] = {0, 5, 31, 32, 37, 40, 159};
  size_t i;
  for (i = 0; i < sizeof low / sizeof *low; i++) {
    CHECK_INT(register_codec(low[i], "low", copy_encoder), BLOSC2_ERROR_CODEC_PARAM);
    CHECK_INT(register_filter(low[i], "low"), BLOSC2_ERROR_FAILURE);
    CHECK_INT(register_tuner(low[i], "low"), BLOSC2_ERROR_FAILURE);
  }
  CHECK_INT(register_tuner(-5, "low"), BLOSC2_ERROR_FAILURE);
  CHECK_INT(register_codec(160, "first", copy_encoder), 0);
  CHECK_INT(register_codec(255, "last", copy_encoder), 0);
  CHECK_INT(register_filter(160, "first"), 0);
  CHECK_INT(register_filter(255, "last"), 0);
  CHECK_INT(register_tuner(160, "first"), 0);
  CHECK_INT(register_tuner(100000, "last"), 0);
}

static void test_null(void) {
  CHECK_INT(blosc2_register_codec(NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_register_filter(NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_register_tuner(NULL), BLOSC2_ERROR_INVALID_PARAM);
}

static int compress(blosc2_cparams cparams) {
  blosc2_context *cctx = blosc2_create_cctx(cparams);
  int cbytes = blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
  blosc2_free_ctx(cctx);
  return cbytes;
}

static int decompress(void) {
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_context *dctx = blosc2_create_dctx(dparams);
  int nbytes = blosc2_decompress_ctx(dctx, chunk, SIZE + BLOSC2_MAX_OVERHEAD, back, SIZE);
  blosc2_free_ctx(dctx);
  return nbytes;
}

static blosc2_cparams with_codec(uint8_t compcode) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.compcode = compcode;
  cparams.compcode_meta = 99;
  cparams.typesize = 4;
  cparams.blocksize = BLOCK;
  cparams.clevel = 7;
  cparams.splitmode = BLOSC_NEVER_SPLIT;
  cparams.filters[5] = 0;
  cparams.codec_params = &one;
  cparams.filter_params[2] = &two;
  return cparams;
}

static void test_duplicates(void) {
  CHECK_INT(register_codec(170, "twice", copy_encoder), 0);
  CHECK_INT(register_codec(170, "twice", other_encoder), 0);
  CHECK_INT(register_codec(170, "thrice", copy_encoder), BLOSC2_ERROR_CODEC_PARAM);
  CHECK(compress(with_codec(170)) > 0); /* the first functions stay */
  CHECK_INT(register_filter(170, "twice"), 0);
  CHECK_INT(register_filter(170, "twice"), 0);
  CHECK_INT(register_filter(170, "thrice"), BLOSC2_ERROR_FAILURE);
  CHECK_INT(register_tuner(170, "twice"), 0);
  CHECK_INT(register_tuner(170, "twice"), 0);
  CHECK_INT(register_tuner(170, "thrice"), BLOSC2_ERROR_FAILURE);
  /* names of new ids are not read */
  CHECK_INT(register_filter(171, unreadable), 0);
  CHECK_INT(register_tuner(171, unreadable), 0);
}

static void test_names(void) {
  const char *name = NULL;
  char *library = NULL, *version = NULL;
  CHECK_INT(register_codec(175, "shared", copy_encoder), 0);
  CHECK_INT(register_codec(174, "shared", copy_encoder), 0);
  CHECK_INT(blosc2_compname_to_compcode("shared"), 175);
  CHECK_INT(blosc2_compname_to_compcode("Shared"), -1);
  CHECK_INT(blosc2_compcode_to_compname(174, &name), 174);
  CHECK(name != NULL && strcmp(name, "shared") == 0);
  CHECK_INT(blosc2_compcode_to_compname(173, &name), -1);
  CHECK(name == NULL);
  CHECK_INT(blosc2_get_complib_info("shared", &library, &version), 77);
  CHECK(library != NULL && strcmp(library, "first") == 0); /* the first one of library 77 */
  CHECK(version != NULL && strcmp(version, "unknown") == 0);
  free(library);
  free(version);
  CHECK_INT(blosc2_get_complib_info("grok", &library, &version), 37);
  CHECK(library != NULL && strcmp(library, "grok") == 0);
  free(library);
  free(version);
  CHECK_INT(register_codec(176, "zstd", copy_encoder), 0); /* the name of another codec */
  CHECK_INT(blosc2_compname_to_compcode("zstd"), BLOSC_ZSTD);
  CHECK_INT(blosc1_set_compressor("shared"), BLOSC2_ERROR_CODEC_SUPPORT);
}

/* Codecs need no name; those that have one are found all the same. */
static void test_codec_without_name(void) {
  const char *name = "some";
  blosc2_cparams cparams = with_codec(178);
  cparams.filters[1] = BLOSC_SHUFFLE;
  CHECK_INT(register_codec(178, NULL, copy_encoder), 0);
  CHECK(compress(cparams) > 0);
  CHECK_INT(decompress(), SIZE);
  CHECK_BYTES(back, data, SIZE);
  CHECK_INT(blosc2_compcode_to_compname(178, &name), 178);
  CHECK(name == NULL);
  CHECK_INT(blosc2_compname_to_compcode("nobody"), -1);
  CHECK_INT(blosc2_compname_to_compcode("shared"), 175);
  CHECK_INT(register_codec(178, NULL, other_encoder), 0);
  CHECK_INT(register_codec(178, "named", copy_encoder), BLOSC2_ERROR_CODEC_PARAM);
}

/* The number of the format that registered codecs share is looked up among their libraries. */
static void test_library_of_chunks(void) {
  blosc2_codec codec;
  static char name[] = "sixth";
  CHECK_INT(register_codec(175, "shared", copy_encoder), 0);
  CHECK(compress(with_codec(175)) > 0);
  CHECK(blosc2_cbuffer_complib(chunk) == NULL);
  memset(&codec, 0, sizeof codec);
  codec.compcode = 177;
  codec.compname = name;
  codec.complib = BLOSC_UDCODEC_FORMAT;
  codec.encoder = copy_encoder;
  codec.decoder = copy_decoder;
  CHECK_INT(blosc2_register_codec(&codec), 0);
  CHECK_STR(blosc2_cbuffer_complib(chunk), "sixth");
}

static void test_what_codecs_are_told(void) {
  blosc2_cparams cparams = with_codec(170);
  int cbytes, i;
  memset(&seen_cparams, 0x55, sizeof seen_cparams);
  memset(&seen_dparams, 0x55, sizeof seen_dparams);
  cparams.blocksize = BLOCK;
  cparams.filters[1] = BLOSC_SHUFFLE;
  cparams.filters_meta[1] = 4;
  cbytes = compress(cparams);
  CHECK(cbytes > 0 && cbytes < SIZE);
  CHECK_INT(seen_meta, 99);
  CHECK_INT(seen_cparams.compcode, 170);
  CHECK_INT(seen_cparams.compcode_meta, 99);
  CHECK_INT(seen_cparams.clevel, 7);
  CHECK_INT(seen_cparams.use_dict, 0);
  CHECK_INT(seen_cparams.typesize, 4);
  CHECK_INT(seen_cparams.nthreads, 1);
  CHECK_INT(seen_cparams.blocksize, BLOCK);
  CHECK_INT(seen_cparams.splitmode, BLOSC_NEVER_SPLIT);
  CHECK(seen_cparams.schunk == NULL);
  CHECK_INT(seen_cparams.filters[1], BLOSC_SHUFFLE);
  CHECK_INT(seen_cparams.filters_meta[1], 4);
  CHECK(seen_cparams.prefilter == NULL);
  CHECK_INT(seen_cparams.tuner_id, 0);
  CHECK(seen_cparams.codec_params == &one);
  CHECK(seen_chunk == data);
  CHECK_INT(chunk[BLOSC2_CHUNK_FLAGS] >> 5, 6);
  CHECK_INT(chunk[BLOSC2_CHUNK_VERSIONLZ], 3);
  CHECK_INT(chunk[22], 170);
  CHECK_INT(chunk[23], 99);
  seen_meta = 0;
  CHECK_INT(decompress(), SIZE);
  CHECK_BYTES(back, data, SIZE);
  CHECK_INT(seen_meta, 99);
  CHECK(seen_chunk == chunk);
  CHECK_INT(seen_dparams.nthreads, 1);
  CHECK_INT(seen_dparams.typesize, 4);
  CHECK(seen_dparams.schunk == NULL);
  CHECK(seen_dparams.postfilter == NULL && seen_dparams.postparams == NULL);
  /* failures, and answers of the wrong length */
  for (i = 0; i < 2; i++) {
    answer = i == 0 ? -1 : 10;
    CHECK_INT(decompress(), BLOSC2_ERROR_DATA);
  }
  answer = -12;
  CHECK_INT(compress(cparams), BLOSC2_ERROR_DATA);
  answer = BLOCK + 1; /* more than there was room for */
  CHECK_INT(compress(cparams), BLOSC2_ERROR_WRITE_BUFFER);
  answer = 0;
}

static void test_what_filters_are_told(void) {
  blosc2_cparams cparams = with_codec(BLOSC_LZ4);
  memset(&seen_cparams, 0x55, sizeof seen_cparams);
  memset(&seen_dparams, 0x55, sizeof seen_dparams);
  cparams.filters[2] = 170;
  cparams.filters_meta[2] = 44;
  CHECK(compress(cparams) > 0);
  CHECK_INT(seen_id, 170);
  CHECK_INT(seen_meta, 44);
  CHECK_INT(seen_cparams.compcode, BLOSC_LZ4);
  CHECK_INT(seen_cparams.typesize, 4);
  CHECK_INT(seen_cparams.blocksize, BLOCK);
  CHECK_INT(seen_cparams.filters[2], 170);
  CHECK_INT(seen_cparams.filters_meta[2], 44);
  seen_id = seen_meta = 0;
  CHECK_INT(decompress(), SIZE);
  CHECK_BYTES(back, data, SIZE);
  CHECK_INT(seen_id, 170);
  CHECK_INT(seen_meta, 44);
  CHECK_INT(seen_dparams.typesize, 4);
  answer = -1;
  CHECK_INT(decompress(), BLOSC2_ERROR_FAILURE);
  CHECK_INT(compress(cparams), BLOSC2_ERROR_FILTER_PIPELINE);
  answer = 0;
  cparams.filters[2] = 172; /* not registered */
  CHECK_INT(compress(cparams), BLOSC2_ERROR_FILTER_PIPELINE);
}

/* More than other libraries tell: the parameters of filters and tuners. */
static void test_private_parameters(void) {
  blosc2_cparams cparams = with_codec(170);
  cparams.tuner_params = &three;
  memset(&seen_cparams, 0x55, sizeof seen_cparams);
  CHECK(compress(cparams) > 0);
  CHECK(seen_cparams.filter_params[2] == &two);
  CHECK(seen_cparams.filter_params[0] == NULL);
  CHECK(seen_cparams.tuner_params == &three);
  answer = 1; /* no success */
  cparams = with_codec(BLOSC_LZ4);
  cparams.filters[2] = 170;
  CHECK_INT(compress(cparams), BLOSC2_ERROR_FILTER_PIPELINE);
  answer = 0;
  CHECK(compress(cparams) > 0);
  answer = 1; /* on the way back, no failure */
  CHECK(decompress() > 0);
  answer = 0;
}

/* A tuner without init is a plugin, even if it has other functions. */
static void test_incomplete_tuner(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  CHECK_INT(register_tuner(180, "capi_missing"), 0);
  cparams.tuner_id = 180;
  CHECK(blosc2_create_cctx(cparams) == NULL);
}

static const blosc2_schunk *seen_schunk;
static int seen_compcode, seen_layers;

/* Looks at the super-chunk and its metalayers, then does what copy_encoder does. */
static int schunk_encoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                          blosc2_cparams *cparams, const void *whole) {
  blosc2_schunk *schunk = (blosc2_schunk *)cparams->schunk;
  uint8_t *content = NULL;
  int32_t length;
  seen_schunk = schunk;
  if (schunk != NULL) {
    seen_compcode = schunk->compcode;
    if (blosc2_meta_get(schunk, "fixed", &content, &length) >= 0) {
      seen_layers += content[0];
      free(content);
    }
    if (blosc2_vlmeta_get(schunk, "variable", &content, &length) >= 0) {
      seen_layers += content[0];
      free(content);
    }
  }
  return copy_encoder(input, input_len, output, output_len, meta, cparams, whole);
}

static int schunk_decoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                          blosc2_dparams *dparams, const void *whole) {
  const blosc2_schunk *schunk = (const blosc2_schunk *)dparams->schunk;
  seen_schunk = schunk;
  seen_compcode = schunk != NULL ? schunk->compcode : -1;
  return copy_decoder(input, input_len, output, output_len, meta, dparams, whole);
}

/* In memory and in a frame, codecs see the super-chunk and its metalayers. */
static void test_in_super_chunks(void) {
  static char name[] = "looks";
  blosc2_codec codec;
  int contiguous;
  memset(&codec, 0, sizeof codec);
  codec.compcode = 190;
  codec.compname = name;
  codec.encoder = schunk_encoder;
  codec.decoder = schunk_decoder;
  CHECK_INT(blosc2_register_codec(&codec), 0);
  for (contiguous = 0; contiguous < 2; contiguous++) {
    blosc2_cparams cparams = with_codec(190);
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
    uint8_t layer[] = {40, 1, 2}, *buffer = NULL;
    bool needs_free = false;
    blosc2_schunk *schunk, *copy;
    int64_t length;
    cparams.blocksize = 2 * BLOCK;
    storage.cparams = &cparams;
    storage.dparams = &dparams;
    storage.contiguous = contiguous == 1;
    schunk = blosc2_schunk_new(&storage);
    REQUIRE(schunk != NULL);
    CHECK_INT(blosc2_meta_add(schunk, "fixed", layer, 3), 0);
    CHECK_INT(blosc2_vlmeta_add(schunk, "variable", layer, 3, NULL), 0);
    seen_layers = 0;
    CHECK_INT(blosc2_schunk_append_buffer(schunk, data, BLOCK), 1);
    CHECK(seen_schunk == schunk);
    CHECK_INT(seen_compcode, 190);
    CHECK_INT(seen_layers, 80);
    memset(back, 1, BLOCK);
    CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, back, BLOCK), BLOCK);
    CHECK(seen_schunk == schunk);
    CHECK_INT(seen_compcode, 190);
    CHECK_BYTES(back, data, BLOCK);
    length = blosc2_schunk_to_buffer(schunk, &buffer, &needs_free);
    copy = blosc2_schunk_from_buffer(buffer, length, false);
    REQUIRE(copy != NULL);
    memset(back, 1, BLOCK);
    CHECK_INT(blosc2_schunk_decompress_chunk(copy, 0, back, BLOCK), BLOCK);
    CHECK(seen_schunk == copy);
    CHECK_INT(seen_compcode, 190);
    CHECK_BYTES(back, data, BLOCK);
    blosc2_schunk_free(copy);
    if (needs_free) {
      free(buffer);
    }
    blosc2_schunk_free(schunk);
  }
}

/* Codecs that compress metalayers are told the parameters for these, and the super-chunk when they decompress. */
static void test_in_metalayers(void) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_schunk *schunk;
  uint8_t *content = NULL;
  int32_t length = -1;
  CHECK_INT(register_codec(194, "layers", copy_encoder), 0);
  CHECK_INT(register_filter(194, "layers"), 0);
  schunk = blosc2_schunk_new(&storage);
  if (!CHECK(schunk != NULL)) {
    return;
  }
  cparams.compcode = 194;
  cparams.compcode_meta = 9;
  cparams.clevel = 3;
  cparams.typesize = 4;
  cparams.codec_params = &one;
  cparams.filters[BLOSC2_MAX_FILTERS - 1] = 0;
  cparams.filters[1] = 194;
  cparams.filters_meta[1] = 7;
  CHECK_INT(blosc2_vlmeta_add(schunk, "layer", data, BLOCK, &cparams), 0);
  CHECK_INT(seen_cparams.compcode, 194);
  CHECK_INT(seen_cparams.compcode_meta, 9);
  CHECK_INT(seen_cparams.clevel, 3);
  CHECK_INT(seen_cparams.filters[1], 194);
  CHECK_INT(seen_cparams.filters_meta[1], 7);
  CHECK(seen_cparams.codec_params == &one);
  seen_dparams.schunk = NULL;
  REQUIRE_INT(blosc2_vlmeta_get(schunk, "layer", &content, &length), 0);
  CHECK_INT(length, BLOCK);
  CHECK(seen_dparams.schunk == schunk);
  if (content != NULL) {
    CHECK_BYTES(content, data, BLOCK);
  }
  free(content);
  /* without such a metalayer, or such a tuner, nothing is compressed */
  cparams.clevel = 77;
  CHECK_INT(blosc2_vlmeta_update(schunk, "none", data, BLOCK, &cparams), BLOSC2_ERROR_NOT_FOUND);
  cparams.clevel = 3;
  cparams.tuner_id = 77;
  CHECK_INT(blosc2_vlmeta_add(schunk, "tuned", data, BLOCK, &cparams), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(schunk->nvlmetalayers, 1);
  blosc2_schunk_free(schunk);
}

/* Compresses and decompresses with codec and filter 201; returns how often that failed. */
static void *use_registered(void *unused) {
  uint8_t *own_chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD), *own_back = test_alloc(SIZE);
  uintptr_t failures = 0;
  int i;
  BLOSC_UNUSED_PARAM(unused);
  for (i = 0; i < 100; i++) {
    blosc2_cparams cparams = with_codec(201);
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_context *cctx, *dctx;
    int cbytes;
    cparams.filters[1] = 201;
    cparams.filters[2] = BLOSC_SHUFFLE; /* so that all zeros come last */
    cctx = blosc2_create_cctx(cparams);
    dctx = blosc2_create_dctx(dparams);
    cbytes = blosc2_compress_ctx(cctx, data, SIZE, own_chunk, SIZE + BLOSC2_MAX_OVERHEAD);
    failures += cbytes <= 0 || cbytes > SIZE * 2 / 3 ||
                blosc2_decompress_ctx(dctx, own_chunk, cbytes, own_back, SIZE) != SIZE ||
                memcmp(own_back, data, SIZE) != 0 || blosc2_compname_to_compcode("used") != 201;
    blosc2_free_ctx(cctx);
    blosc2_free_ctx(dctx);
  }
  free(own_chunk);
  free(own_back);
  return (void *)failures;
}

/* Registers what was not there, and what was; returns how often that failed. */
static void *register_others(void *unused) {
  uintptr_t failures = 0;
  int id, round;
  BLOSC_UNUSED_PARAM(unused);
  for (round = 0; round < 10; round++) {
    for (id = 202; id < 255; id++) {
      failures += register_codec(id, "others", half_encoder) != 0 || register_filter(id, "others") != 0 ||
                  register_tuner(id, "others") != 0 || register_codec(id, "strangers", half_encoder) == 0;
    }
  }
  return (void *)failures;
}

/* Threads may register codecs, filters and tuners while others use those that are there. */
static void test_threads(void) {
  enum { THREADS = 4 };
  static char name[] = "used";
  pthread_t threads[THREADS];
  blosc2_codec codec;
  blosc2_filter filter;
  void *failures;
  int i;
  memset(&codec, 0, sizeof codec);
  codec.compcode = 201;
  codec.compname = name;
  codec.encoder = half_encoder;
  codec.decoder = half_decoder;
  CHECK_INT(blosc2_register_codec(&codec), 0);
  memset(&filter, 0, sizeof filter);
  filter.id = 201;
  filter.name = name;
  filter.forward = plain_forward;
  filter.backward = plain_backward;
  CHECK_INT(blosc2_register_filter(&filter), 0);
  for (i = 0; i < THREADS; i++) {
    CHECK_INT(pthread_create(&threads[i], NULL, i % 2 == 0 ? use_registered : register_others, NULL), 0);
  }
  for (i = 0; i < THREADS; i++) {
    CHECK_INT(pthread_join(threads[i], &failures), 0);
    CHECK_INT((uintptr_t)failures, 0);
  }
}

static void test_full(void) {
  int count = 0, code;
  blosc2_io_cb io = *blosc2_get_io_cb(BLOSC2_IO_FILESYSTEM);
  io.id = 200;
  io.name = "another";
  CHECK_INT(blosc2_register_io_cb(&io), 0);
  blosc2_destroy();
  blosc2_init();
  CHECK(blosc2_get_io_cb(200) != NULL); /* I/O back-ends stay */
  CHECK_INT(blosc2_compname_to_compcode("shared"), -1); /* nothing is left */
  CHECK_INT(register_codec(170, "thrice", other_encoder), 0);
  while ((code = register_tuner(1000 + count, "many")) == 0 && count < 1000) {
    count++;
  }
  CHECK_INT(code, BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(count, 254); /* and one of the library's own */
  CHECK_INT(register_tuner(1000, "many"), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(register_tuner(1000, "other"), BLOSC2_ERROR_CODEC_SUPPORT);
  for (count = 160; count < 256; count++) {
    CHECK_INT(register_filter(count, "all"), 0);
  }
}

/* What is registered each time that the library is initialised takes memory once. */
static void test_again_and_again(void) {
#if defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 33)
  size_t before = 0;
  int round;
  for (round = 0; round < 1100; round++) {
    blosc2_destroy();
    blosc2_init();
    CHECK_INT(register_codec(200, "first", half_encoder), 0);
    CHECK_INT(register_codec(201, "second", half_encoder), 0);
    CHECK_INT(register_filter(200, "filter"), 0);
    if (round == 100) {
      before = mallinfo2().uordblks;
    }
  }
  CHECK(mallinfo2().uordblks < before + 10000);
  /* Another one under the same number and name is another one. */
  blosc2_destroy();
  blosc2_init();
  CHECK_INT(register_codec(200, "first", other_encoder), 0);
  CHECK_INT(compress(with_codec(200)), BLOSC2_ERROR_DATA);
#endif
#endif
}

int main(void) {
  int i;
  data = test_alloc(SIZE);
  chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  back = test_alloc(SIZE);
  /* zeros in the second half of each block, shuffled or not */
  for (i = 0; i < SIZE; i++) {
    data[i] = (uint8_t)(i % 4 < 2 && i % BLOCK < BLOCK / 2 ? i * 37 + i / 256 : 0);
  }
  blosc2_init();
  test_ranges();
  test_null();
  test_duplicates();
  test_names();
  test_library_of_chunks();
  test_codec_without_name();
  test_what_codecs_are_told();
  test_what_filters_are_told();
  test_private_parameters();
  test_incomplete_tuner();
  test_in_super_chunks();
  test_in_metalayers();
  test_threads();
  test_full();
  test_again_and_again();
  free(data);
  free(chunk);
  free(back);
  blosc2_destroy();
  return test_end();
}
