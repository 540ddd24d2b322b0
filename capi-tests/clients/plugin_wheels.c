/* Published plugins: images through the JPEG 2000 codecs, numbers through OpenZL, chunks through Btune.

   Run by plugin_wheels.sh, which says where the plugins are. Arguments: the names of those that must work. */

#include "../test.h"

#include <blosc2.h>

enum { SIDE = 128, SIZE = 3 * SIDE * SIDE * 4 };

static uint8_t *put(uint8_t *out, uint8_t marker, uint64_t value, int length) {
  *out++ = marker;
  while (length-- > 0) {
    *out++ = (uint8_t)(value >> (8 * length));
  }
  return out;
}

/* The n-d metalayer of an array that is one chunk and one block; returns its length. */
static int32_t nd_meta(uint8_t *content, int ndim, const int32_t *shape, const char *dtype) {
  uint8_t *out = content;
  int part, i;
  *out++ = 0x97;
  *out++ = 0;
  *out++ = (uint8_t)ndim;
  for (part = 0; part < 3; part++) {
    *out++ = (uint8_t)(0x90 + ndim);
    for (i = 0; i < ndim; i++) {
      out = put(out, part == 0 ? 0xd3 : 0xd2, (uint64_t)shape[i], part == 0 ? 8 : 4);
    }
  }
  *out++ = 0;
  out = put(out, 0xdb, strlen(dtype), 4);
  memcpy(out, dtype, strlen(dtype));
  return (int32_t)(out - content) + (int32_t)strlen(dtype);
}

/* One chunk through a super-chunk and back; `ndim` 0 for plain bytes. Returns the compressed size. */
static int64_t round_trip(blosc2_cparams *cparams, int ndim, const int32_t *shape, const char *dtype,
                          const uint8_t *data, int32_t size) {
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  uint8_t content[512], *back = test_alloc((size_t)size);
  blosc2_schunk *schunk;
  int64_t cbytes = -1;
  int i;
  storage.cparams = cparams;
  storage.dparams = &dparams;
  schunk = blosc2_schunk_new(&storage);
  if (CHECK(schunk != NULL)) {
    if (ndim > 0) {
      CHECK(blosc2_meta_add(schunk, "b2nd", content, nd_meta(content, ndim, shape, dtype)) >= 0);
    }
    for (i = 0; i < 3; i++) {
      CHECK_INT(blosc2_schunk_append_buffer(schunk, data, size), i + 1);
      memset(back, 0, (size_t)size);
      CHECK_INT(blosc2_schunk_decompress_chunk(schunk, i, back, size), size);
      CHECK_BYTES(back, data, (size_t)size);
    }
    cbytes = schunk->cbytes / 3;
    blosc2_schunk_free(schunk);
  }
  free(back);
  return cbytes;
}

static blosc2_cparams with_codec(const char *name, int32_t typesize, int32_t size) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  int code = blosc2_compname_to_compcode(name);
  CHECK(code >= 32);
  cparams.compcode = (uint8_t)code;
  cparams.typesize = typesize;
  cparams.blocksize = size;
  cparams.splitmode = BLOSC_NEVER_SPLIT;
  cparams.filters[5] = 0;
  return cparams;
}

/* Colours that change slowly, in items of `typesize` bytes. */
static uint8_t *image(int typesize) {
  uint8_t *data = test_alloc(SIZE);
  int i;
  memset(data, 0, SIZE);
  for (i = 0; i < 3 * SIDE * SIDE; i++) {
    data[i * typesize] = (uint8_t)((i % SIDE) + (i / SIDE % SIDE) / 2 + i / (SIDE * SIDE) * 20);
  }
  return data;
}

int main(int argc, char **argv) {
  static const int32_t channels_first[] = {3, SIDE, SIDE}, flat[] = {SIDE, SIDE};
  int i;
  blosc2_init();
  for (i = 1; i < argc; i++) {
    const char *name = argv[i];
    uint8_t *data = image(strcmp(name, "openhtj2k") == 0 || strcmp(name, "openzl") == 0 ? 4 : 1);
    int64_t cbytes;
    int32_t size;
    if (strcmp(name, "openhtj2k") == 0) {
      blosc2_cparams cparams = with_codec(name, 4, size = SIZE);
      cbytes = round_trip(&cparams, 3, channels_first, "<u4", data, size);
    } else if (strcmp(name, "grok") == 0) {
      blosc2_cparams cparams = with_codec(name, 1, size = SIDE * SIDE);
      cbytes = round_trip(&cparams, 2, flat, "|u1", data, size);
    } else if (strcmp(name, "btune") == 0) {
      blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
      cparams.tuner_id = 32;
      size = SIDE * SIDE;
      cbytes = round_trip(&cparams, 0, NULL, NULL, data, size);
    } else {
      blosc2_cparams cparams = with_codec(name, 4, size = SIZE);
      cbytes = round_trip(&cparams, 0, NULL, NULL, data, size);
    }
    CHECK(cbytes > 0 && cbytes < size);
    printf("%s: %d bytes to %d\n", name, (int)size, (int)cbytes);
    free(data);
  }
  blosc2_destroy();
  return test_end();
}
