/* Buffers compressed with the global settings and with contexts: sizes and limits, round trips, parts of a chunk,
   facts about a chunk, names, the Blosc 1 interface. */

#define BLOSC1_COMPAT
#include "test.h"

#include <blosc2.h>

enum { NITEMS = 20000 };

/* A ramp of 32-bit integers; the caller frees it. */
static int32_t *ramp(int32_t nitems) {
  int32_t *data = (int32_t *)test_alloc((size_t)nitems * 4);
  int32_t i;
  for (i = 0; i < nitems; i++) {
    data[i] = i;
  }
  return data;
}

static void test_sizes_and_limits(void) {
  int32_t *data = ramp(250);
  uint8_t chunk[1100], back[1000], one = 42;
  int cbytes;
  blosc1_set_compressor("blosclz");
  CHECK(blosc1_compress(5, 0, 1, 2147483616u, data, chunk, sizeof chunk) < 0);
  CHECK(blosc1_compress(1, 0, 4, 1000, data, chunk, 31) < 0);
  CHECK(blosc1_compress(1, 0, 4, 1000, data, chunk, 0) < 0);
  CHECK_INT(blosc1_compress(1, 0, 4, 1000, data, chunk, 1000), 0);
  cbytes = blosc1_compress(1, 0, 4, 1000, data, chunk, 1032);
  CHECK(cbytes > 0 && cbytes <= 1032);
  CHECK_INT(blosc1_decompress(chunk, back, 1000), 1000);
  CHECK_BYTES(back, data, 1000);
  CHECK_INT(blosc1_compress(0, 0, 4, 1000, data, chunk, 1031), 0);
  CHECK_INT(blosc1_compress(0, 0, 4, 1000, data, chunk, 1032), 1032);
  CHECK_INT(blosc1_compress(0, 0, 4, 1000, data, chunk, 1033), 1032);
  CHECK_INT(blosc1_decompress(chunk, back, 1000), 1000);
  CHECK_BYTES(back, data, 1000);
  /* nothing, and almost nothing */
  cbytes = blosc2_compress(5, 1, 4, NULL, 0, chunk, BLOSC2_MAX_OVERHEAD);
  CHECK(cbytes > 0);
  CHECK(blosc2_decompress(chunk, cbytes, NULL, 0) >= 0);
  CHECK_INT(blosc2_compress(5, 1, 1, &one, 1, chunk, sizeof chunk), 33);
  CHECK_INT(blosc2_decompress(chunk, (int32_t)sizeof chunk, back, 1), 1);
  CHECK_INT(back[0], one);
  free(data);
}

/* Wrong arguments give codes, never a crash. */
static void test_mistakes(void) {
  int32_t *data = ramp(250);
  uint8_t chunk[1100], back[1000];
  int cbytes = blosc2_compress(5, 1, 4, data, 1000, chunk, sizeof chunk);
  int i;
  CHECK(cbytes > 0);
  CHECK(blosc2_compress(10, 1, 4, data, 1000, chunk, sizeof chunk) < 0);
  CHECK(blosc2_compress(-1, 1, 4, data, 1000, chunk, sizeof chunk) < 0);
  cbytes = blosc2_compress(5, 1, 4, data, 1000, chunk, sizeof chunk);
  CHECK(blosc2_decompress(chunk, cbytes, back, 999) < 0);
  for (i = 0; i < cbytes; i++) {
    CHECK(blosc2_decompress(chunk, i, back, 1000) < 0);
  }
  CHECK_INT(blosc2_decompress(chunk, cbytes, back, 1000), 1000);
  free(data);
}

static void test_round_trips(void) {
  static const int typesizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 22, 30, 32, 42, 48, 52, 53, 64, 80};
  static const int counts[] = {7, 192, 500, 1792, 8000};
  size_t t, c;
  int filter;
  for (t = 0; t < sizeof typesizes / sizeof *typesizes; t++) {
    for (c = 0; c < sizeof counts / sizeof *counts; c++) {
      for (filter = 0; filter <= 2; filter++) {
        int32_t size = typesizes[t] * counts[c], i;
        uint8_t *data = test_alloc((size_t)size), *back = test_alloc((size_t)size);
        uint8_t *chunk = test_alloc((size_t)size + BLOSC2_MAX_OVERHEAD);
        int cbytes;
        for (i = 0; i < size; i++) {
          data[i] = (uint8_t)i;
        }
        cbytes = blosc2_compress(5, filter, typesizes[t], data, size, chunk, size + BLOSC2_MAX_OVERHEAD);
        CHECK(cbytes > 0);
        CHECK_INT(blosc2_decompress(chunk, cbytes, back, size), size);
        CHECK_BYTES(back, data, (size_t)size);
        memset(back, 0, (size_t)size);
        CHECK_INT(blosc1_getitem(chunk, 0, counts[c], back), size);
        CHECK_BYTES(back, data, (size_t)size);
        free(data);
        free(back);
        free(chunk);
      }
    }
  }
}

/* Every codec, level and kind of data, with contexts of one and of three threads: the same bytes, and back. */
static void test_codecs(void) {
  static const uint8_t codecs[] = {BLOSC_BLOSCLZ, BLOSC_LZ4, BLOSC_LZ4HC, BLOSC_ZLIB, BLOSC_ZSTD};
  const int32_t size = 300001;
  uint8_t *chunk = test_alloc((size_t)size + BLOSC2_MAX_OVERHEAD), *back = test_alloc((size_t)size);
  uint8_t *other = test_alloc((size_t)size + BLOSC2_MAX_OVERHEAD);
  size_t c;
  int clevel, kind;
  for (kind = 0; kind < TEST_KINDS; kind++) {
    uint8_t *data = test_make_data((enum test_data)kind, (size_t)size);
    for (c = 0; c < sizeof codecs; c++) {
      for (clevel = 0; clevel <= 9; clevel += 3) {
        blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
        blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
        blosc2_context *cctx, *cctx3, *dctx;
        int cbytes;
        cparams.compcode = codecs[c];
        cparams.clevel = (uint8_t)clevel;
        cparams.typesize = 4;
        cctx = blosc2_create_cctx(cparams);
        cparams.nthreads = 3;
        cctx3 = blosc2_create_cctx(cparams);
        dparams.nthreads = (int16_t)(1 + clevel % 2);
        dctx = blosc2_create_dctx(dparams);
        if (!CHECK(cctx != NULL && cctx3 != NULL && dctx != NULL)) {
          return;
        }
        cbytes = blosc2_compress_ctx(cctx, data, size, chunk, size + BLOSC2_MAX_OVERHEAD);
        CHECK(cbytes > 0);
        CHECK(kind == TEST_NOISE || clevel == 0 || cbytes < size / 2);
        CHECK_INT(blosc2_compress_ctx(cctx3, data, size, other, size + BLOSC2_MAX_OVERHEAD), cbytes);
        CHECK_BYTES(other, chunk, (size_t)cbytes);
        CHECK_INT(blosc2_decompress_ctx(dctx, other, size + BLOSC2_MAX_OVERHEAD, back, size), size);
        CHECK_BYTES(back, data, (size_t)size);
        memset(back, 0x5a, (size_t)size);
        CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, size), size);
        CHECK_BYTES(back, data, (size_t)size);
        CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 1234, 567, back, 567 * 4), 567 * 4);
        CHECK_BYTES(back, data + 1234 * 4, 567 * 4);
        blosc2_free_ctx(cctx);
        blosc2_free_ctx(cctx3);
        blosc2_free_ctx(dctx);
      }
    }
    free(data);
  }
  free(chunk);
  free(other);
  free(back);
}

static void test_queries(void) {
  const int32_t size = 1 << 20;
  uint8_t *data = test_make_data(TEST_ZEROS, (size_t)size), *chunk = test_alloc((size_t)size + BLOSC2_MAX_OVERHEAD);
  size_t nbytes, cbytes, blocksize, typesize;
  int32_t nbytes32, cbytes32, blocksize32;
  int flags, version, versionlz, got;
  blosc1_set_compressor("blosclz");
  got = blosc2_compress(3, BLOSC_SHUFFLE, 4, data, size, chunk, size + BLOSC2_MAX_OVERHEAD);
  CHECK(got > 0);
  blosc1_cbuffer_sizes(chunk, &nbytes, &cbytes, &blocksize);
  CHECK_INT(nbytes, size);
  CHECK_INT(cbytes, got);
  CHECK(blocksize >= 128);
  CHECK_INT(blosc2_cbuffer_sizes(chunk, &nbytes32, &cbytes32, &blocksize32), 0);
  CHECK(nbytes32 == size && cbytes32 == got && (size_t)blocksize32 == blocksize);
  CHECK_INT(blosc2_cbuffer_sizes(chunk, NULL, NULL, NULL), 0);
  blosc1_cbuffer_metainfo(chunk, &typesize, &flags);
  CHECK_INT(typesize, 4);
  CHECK(flags & BLOSC_DOSHUFFLE);
  blosc2_cbuffer_versions(chunk, &version, &versionlz);
  CHECK_INT(version, BLOSC2_VERSION_FORMAT_STABLE);
  CHECK_INT(versionlz, BLOSC_BLOSCLZ_VERSION_FORMAT);
  CHECK_STR(blosc2_cbuffer_complib(chunk), BLOSC_BLOSCLZ_LIBNAME);
  CHECK_INT(blosc1_cbuffer_validate(chunk, (size_t)got, &nbytes), 0);
  CHECK_INT(nbytes, size);
  CHECK(blosc1_cbuffer_validate(chunk, (size_t)got - 1, &nbytes) < 0);
  CHECK(blosc1_cbuffer_validate(chunk, 15, &nbytes) < 0);
  free(data);
  free(chunk);
}

static void test_names(void) {
  const char *name = "";
  char *library = NULL, *version = NULL;
  CHECK_INT(blosc2_compname_to_compcode("zstd"), BLOSC_ZSTD);
  CHECK_INT(blosc2_compname_to_compcode("none such"), -1);
  CHECK_INT(blosc2_compcode_to_compname(BLOSC_LZ4HC, &name), BLOSC_LZ4HC);
  CHECK_STR(name, "lz4hc");
  CHECK_INT(blosc2_compcode_to_compname(6, &name), -1);
  CHECK(name == NULL);
  CHECK(strstr(blosc2_list_compressors(), "blosclz") != NULL);
  CHECK_STR(blosc2_get_version_string(), BLOSC2_VERSION_STRING);
  CHECK_INT(blosc2_get_complib_info("lz4", &library, &version), BLOSC_LZ4_LIB);
  CHECK(library != NULL && strcmp(library, "LZ4") == 0 && version != NULL);
  free(library);
  free(version);
  CHECK_INT(blosc2_get_complib_info("none such", &library, &version), -1);
  CHECK(library == NULL && version == NULL);
  CHECK_STR(blosc2_error_string(BLOSC2_ERROR_READ_BUFFER), "Not enough space to read");
  CHECK_STR(blosc2_error_string(-1000), "Unknown error");
}

static void test_global_settings(void) {
  CHECK_INT(blosc1_set_compressor("lz4"), BLOSC_LZ4);
  CHECK_STR(blosc1_get_compressor(), "lz4");
  CHECK_INT(blosc1_set_compressor("none such"), -1);
  CHECK_INT(blosc1_set_compressor("blosclz"), BLOSC_BLOSCLZ);
  CHECK_INT(blosc1_get_blocksize(), 0);
  blosc1_set_blocksize(4096);
  CHECK_INT(blosc1_get_blocksize(), 4096);
  blosc1_set_blocksize(0);
  CHECK_INT(blosc2_set_nthreads(4), 1);
  CHECK_INT(blosc2_get_nthreads(), 4);
  CHECK(blosc2_set_nthreads(0) < 0);
  CHECK(blosc2_set_nthreads(INT16_MIN) < 0);
  CHECK_INT(blosc2_set_nthreads(1), 4);
}

/* The settings that are seen in chunks alone. */
static void test_settings_of_chunks(void) {
  const int32_t size = NITEMS * 4;
  int32_t *data = ramp(NITEMS), *back = (int32_t *)test_alloc((size_t)size);
  uint8_t *chunk = test_alloc((size_t)size + BLOSC2_MAX_OVERHEAD);
  int splits, deltas;
  for (splits = 0; splits < 2; splits++) {
    for (deltas = 0; deltas < 2; deltas++) {
      const uint8_t delta = deltas ? BLOSC_DELTA : BLOSC_NOFILTER;
      int cbytes;
      blosc1_set_splitmode(splits ? BLOSC_ALWAYS_SPLIT : BLOSC_NEVER_SPLIT);
      blosc2_set_delta(deltas);
      cbytes = blosc2_compress(5, BLOSC_SHUFFLE, 4, data, size, chunk, size + BLOSC2_MAX_OVERHEAD);
      CHECK_INT(chunk[BLOSC2_CHUNK_FLAGS] & 0x10, splits ? 0 : 0x10);
      CHECK_INT(chunk[BLOSC2_CHUNK_FILTER_CODES + BLOSC2_MAX_FILTERS - 2], delta);
      CHECK_INT(chunk[BLOSC2_CHUNK_FILTER_CODES + BLOSC2_MAX_FILTERS - 1], BLOSC_SHUFFLE);
      memset(back, 0, (size_t)size);
      CHECK_INT(blosc2_decompress(chunk, cbytes, back, size), size);
      CHECK_BYTES(back, data, (size_t)size);
    }
  }
  blosc1_set_splitmode(BLOSC_FORWARD_COMPAT_SPLIT);
  blosc2_set_delta(0);
  free(data);
  free(back);
  free(chunk);
}

/* The names of Blosc 1. */
static void test_blosc1_names(void) {
  const size_t size = (size_t)NITEMS * 4;
  int32_t *data = ramp(NITEMS), *back = (int32_t *)test_alloc(size);
  uint8_t *chunk = test_alloc(size + BLOSC_MAX_OVERHEAD);
  int cbytes;
  blosc_init();
  cbytes = blosc_compress(1, 1, 4, size, data, chunk, size + 16);
  CHECK(cbytes > 0 && (size_t)cbytes < size);
  CHECK_INT(blosc_decompress(chunk, back, size), size);
  CHECK_BYTES(back, data, size);
  CHECK_INT(blosc_getitem(chunk, 1, 10, back), 40);
  CHECK_BYTES(back, data + 1, 40);
  blosc_destroy();
  free(data);
  free(back);
  free(chunk);
}

static void test_getitem(void) {
  static const int32_t typesizes[] = {4, 252, 256, 1024};
  size_t t;
  int clevel;
  for (t = 0; t < sizeof typesizes / sizeof *typesizes; t++) {
    for (clevel = 0; clevel <= 5; clevel += 5) {
      const int32_t typesize = typesizes[t], nitems = 300, size = typesize * nitems;
      /* Larger types are stored as streams of bytes: offsets count in items of the chunk's header. */
      const int32_t unit = typesize > BLOSC_MAX_TYPESIZE ? 1 : typesize;
      uint8_t *data = test_make_data(TEST_TEXT, (size_t)size), *back = test_alloc((size_t)size);
      uint8_t *chunk = test_alloc((size_t)size + BLOSC2_MAX_OVERHEAD);
      blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
      blosc2_context *cctx, *dctx = blosc2_create_dctx(BLOSC2_DPARAMS_DEFAULTS);
      int cbytes;
      cparams.typesize = typesize;
      cparams.clevel = (uint8_t)clevel;
      cctx = blosc2_create_cctx(cparams);
      cbytes = blosc2_compress_ctx(cctx, data, size, chunk, size + BLOSC2_MAX_OVERHEAD);
      CHECK(cbytes > 0);
      CHECK_INT(blosc2_getitem_bytes_ctx(dctx, chunk, cbytes, typesize * 17, typesize * 3, back, size), typesize * 3);
      CHECK_BYTES(back, data + typesize * 17, (size_t)typesize * 3);
      CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, typesize * 17 / unit, typesize * 3 / unit, back, size),
                typesize * 3);
      CHECK_BYTES(back, data + typesize * 17, (size_t)typesize * 3);
      CHECK_INT(blosc2_getitem(chunk, cbytes, typesize * 2 / unit, typesize / unit, back, size), typesize);
      CHECK_BYTES(back, data + typesize * 2, (size_t)typesize);
      CHECK_INT(blosc2_getitem_bytes_ctx(dctx, chunk, cbytes, 0, 0, back, size), 0);
      CHECK(blosc2_getitem_bytes_ctx(dctx, chunk, cbytes, -unit, unit, back, size) < 0);
      CHECK(blosc2_getitem_bytes_ctx(dctx, chunk, cbytes, 0, -unit, back, size) < 0);
      CHECK(blosc2_getitem_bytes_ctx(dctx, chunk, cbytes, size, unit, back, size) < 0);
      CHECK(blosc2_getitem_bytes_ctx(dctx, chunk, cbytes, 0, typesize * 2, back, typesize) < 0);
      CHECK(unit == 1 || blosc2_getitem_bytes_ctx(dctx, chunk, cbytes, 1, typesize, back, size) < 0);
      CHECK(blosc2_getitem_ctx(dctx, chunk, cbytes, 0, size / unit + 1, back, size) < 0);
      CHECK(blosc2_getitem_ctx(dctx, chunk, cbytes, -1, 1, back, size) < 0);
      CHECK(blosc2_getitem_ctx(dctx, chunk, cbytes - 1, 0, 1, back, size) < 0 || clevel == 5);
      blosc2_free_ctx(cctx);
      blosc2_free_ctx(dctx);
      free(data);
      free(back);
      free(chunk);
    }
  }
}

/* A header of 16 bytes that promises 2 GiB of raw data behind it. */
static void test_short_header(void) {
  uint8_t chunk[16] = {2, 1, BLOSC_MEMCPYED, 2, 0xff, 0xff, 0xff, 0x7f, 0, 0, 1, 0, 16, 0, 0, 0}, dest[64];
  blosc2_context *dctx = blosc2_create_dctx(BLOSC2_DPARAMS_DEFAULTS);
  CHECK(blosc2_getitem_ctx(dctx, chunk, 16, 0, 1 << 30, dest, (int32_t)sizeof dest) < 0);
  CHECK(blosc2_decompress_ctx(dctx, chunk, 16, dest, (int32_t)sizeof dest) < 0);
  CHECK(blosc2_decompress_ctx(dctx, NULL, 16, dest, (int32_t)sizeof dest) < 0);
  blosc2_free_ctx(dctx);
}

static void test_filters_alone(void) {
  uint8_t data[24], there[24], back[24];
  int i;
  for (i = 0; i < 24; i++) {
    data[i] = (uint8_t)(i * 5);
  }
  CHECK_INT(blosc2_shuffle(4, 24, data, there), 24);
  CHECK(there[0] == data[0] && there[1] == data[4] && there[6] == data[1]);
  CHECK_INT(blosc2_unshuffle(4, 24, there, back), 24);
  CHECK_BYTES(back, data, 24);
  /* Eight items of two bytes: byte 8 k + b holds bit b of byte k of each. */
  CHECK_INT(blosc2_bitshuffle(2, 16, data, there), 16);
  for (i = 0; i < 128; i++) {
    int item = i % 8, bit = i / 8 % 8, byte = i / 64;
    CHECK_INT(there[8 * byte + bit] >> item & 1, data[2 * item + byte] >> bit & 1);
  }
  CHECK_INT(blosc2_bitunshuffle(2, 16, there, back), 16);
  CHECK_BYTES(back, data, 16);
}

static void test_helpers(void) {
  int64_t shape[] = {3, 4, 5}, strides[] = {20, 5, 1}, index[3], flat = -1;
  blosc_timestamp_t start, end;
  blosc2_unidim_to_multidim(3, shape, 47, index);
  CHECK(index[0] == 2 && index[1] == 1 && index[2] == 2);
  blosc2_multidim_to_unidim(index, 3, strides, &flat);
  CHECK_INT(flat, 47);
  blosc_set_timestamp(&start);
  blosc_set_timestamp(&end);
  CHECK(blosc_elapsed_nsecs(start, end) >= 0 && blosc_elapsed_nsecs(start, end) < 1e9);
  end = start;
  end.tv_sec += 2;
  CHECK(blosc_elapsed_nsecs(start, end) > 1.999e9 && blosc_elapsed_nsecs(start, end) < 2.001e9);
  CHECK(blosc_elapsed_secs(start, end) > 1.999 && blosc_elapsed_secs(start, end) < 2.001);
}

int main(void) {
  /* The first calls, without blosc2_init. */
  test_sizes_and_limits();
  blosc2_init();
  test_mistakes();
  test_round_trips();
  test_codecs();
  test_queries();
  test_names();
  test_global_settings();
  test_settings_of_chunks();
  test_getitem();
  test_short_header();
  test_filters_alone();
  test_helpers();
  blosc2_destroy();
  test_blosc1_names();
  return test_end();
}
