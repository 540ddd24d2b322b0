/* Sizes, alignments and field offsets of the public structs on 64-bit targets, values of the defaults, and what the
   inline functions of the headers do. */

#include "test.h"

#include <b2nd.h>
#include <blosc2/codecs-registry.h>
#include <blosc2/filters-registry.h>
#include <blosc2/tuners-registry.h>

#include <stddef.h>

#define SIZE(type, size, align)                                  \
  do {                                                           \
    struct probe { char c; type value; };                        \
    CHECK_INT(sizeof(type), size);                               \
    CHECK_INT(offsetof(struct probe, value), align);             \
  } while (0)
#define FIELD(type, field, offset, size)                         \
  do {                                                           \
    CHECK_INT(offsetof(type, field), offset);                    \
    CHECK_INT(sizeof(((type *)0)->field), size);                 \
  } while (0)

static void test_blosc2_structs(void) {
  SIZE(blosc2_instr, 16, 4);
  FIELD(blosc2_instr, cratio, 0, 4);
  FIELD(blosc2_instr, cspeed, 4, 4);
  FIELD(blosc2_instr, filter_speed, 8, 4);
  FIELD(blosc2_instr, flags, 12, 4);
  SIZE(blosc2_io_cb, 80, 8);
  FIELD(blosc2_io_cb, id, 0, 1);
  FIELD(blosc2_io_cb, name, 8, 8);
  FIELD(blosc2_io_cb, is_allocation_necessary, 16, 1);
  FIELD(blosc2_io_cb, open, 24, 8);
  FIELD(blosc2_io_cb, close, 32, 8);
  FIELD(blosc2_io_cb, size, 40, 8);
  FIELD(blosc2_io_cb, write, 48, 8);
  FIELD(blosc2_io_cb, read, 56, 8);
  FIELD(blosc2_io_cb, truncate, 64, 8);
  FIELD(blosc2_io_cb, destroy, 72, 8);
  SIZE(blosc2_io, 24, 8);
  FIELD(blosc2_io, id, 0, 1);
  FIELD(blosc2_io, name, 8, 8);
  FIELD(blosc2_io, params, 16, 8);
  SIZE(blosc2_tuner, 56, 8);
  FIELD(blosc2_tuner, init, 0, 8);
  FIELD(blosc2_tuner, next_blocksize, 8, 8);
  FIELD(blosc2_tuner, next_cparams, 16, 8);
  FIELD(blosc2_tuner, update, 24, 8);
  FIELD(blosc2_tuner, free, 32, 8);
  FIELD(blosc2_tuner, id, 40, 4);
  FIELD(blosc2_tuner, name, 48, 8);
  SIZE(blosc2_prefilter_params, 88, 8);
  FIELD(blosc2_prefilter_params, user_data, 0, 8);
  FIELD(blosc2_prefilter_params, input, 8, 8);
  FIELD(blosc2_prefilter_params, output, 16, 8);
  FIELD(blosc2_prefilter_params, output_size, 24, 4);
  FIELD(blosc2_prefilter_params, output_typesize, 28, 4);
  FIELD(blosc2_prefilter_params, output_offset, 32, 4);
  FIELD(blosc2_prefilter_params, nchunk, 40, 8);
  FIELD(blosc2_prefilter_params, nblock, 48, 4);
  FIELD(blosc2_prefilter_params, tid, 52, 4);
  FIELD(blosc2_prefilter_params, ttmp, 56, 8);
  FIELD(blosc2_prefilter_params, ttmp_nbytes, 64, 8);
  FIELD(blosc2_prefilter_params, ctx, 72, 8);
  FIELD(blosc2_prefilter_params, output_is_disposable, 80, 1);
  SIZE(blosc2_postfilter_params, 80, 8);
  FIELD(blosc2_postfilter_params, user_data, 0, 8);
  FIELD(blosc2_postfilter_params, input, 8, 8);
  FIELD(blosc2_postfilter_params, output, 16, 8);
  FIELD(blosc2_postfilter_params, size, 24, 4);
  FIELD(blosc2_postfilter_params, typesize, 28, 4);
  FIELD(blosc2_postfilter_params, offset, 32, 4);
  FIELD(blosc2_postfilter_params, nchunk, 40, 8);
  FIELD(blosc2_postfilter_params, nblock, 48, 4);
  FIELD(blosc2_postfilter_params, tid, 52, 4);
  FIELD(blosc2_postfilter_params, ttmp, 56, 8);
  FIELD(blosc2_postfilter_params, ttmp_nbytes, 64, 8);
  FIELD(blosc2_postfilter_params, ctx, 72, 8);
  SIZE(blosc2_cparams, 136, 8);
  FIELD(blosc2_cparams, compcode, 0, 1);
  FIELD(blosc2_cparams, compcode_meta, 1, 1);
  FIELD(blosc2_cparams, clevel, 2, 1);
  FIELD(blosc2_cparams, use_dict, 4, 4);
  FIELD(blosc2_cparams, typesize, 8, 4);
  FIELD(blosc2_cparams, nthreads, 12, 2);
  FIELD(blosc2_cparams, blocksize, 16, 4);
  FIELD(blosc2_cparams, splitmode, 20, 4);
  FIELD(blosc2_cparams, schunk, 24, 8);
  FIELD(blosc2_cparams, filters, 32, 6);
  FIELD(blosc2_cparams, filters_meta, 38, 6);
  FIELD(blosc2_cparams, prefilter, 48, 8);
  FIELD(blosc2_cparams, preparams, 56, 8);
  FIELD(blosc2_cparams, tuner_params, 64, 8);
  FIELD(blosc2_cparams, tuner_id, 72, 4);
  FIELD(blosc2_cparams, instr_codec, 76, 1);
  FIELD(blosc2_cparams, codec_params, 80, 8);
  FIELD(blosc2_cparams, filter_params, 88, 48);
  SIZE(blosc2_dparams, 40, 8);
  FIELD(blosc2_dparams, nthreads, 0, 2);
  FIELD(blosc2_dparams, schunk, 8, 8);
  FIELD(blosc2_dparams, postfilter, 16, 8);
  FIELD(blosc2_dparams, postparams, 24, 8);
  FIELD(blosc2_dparams, typesize, 32, 4);
  SIZE(blosc2_storage, 40, 8);
  FIELD(blosc2_storage, contiguous, 0, 1);
  FIELD(blosc2_storage, urlpath, 8, 8);
  FIELD(blosc2_storage, cparams, 16, 8);
  FIELD(blosc2_storage, dparams, 24, 8);
  FIELD(blosc2_storage, io, 32, 8);
  SIZE(blosc2_metalayer, 24, 8);
  FIELD(blosc2_metalayer, name, 0, 8);
  FIELD(blosc2_metalayer, content, 8, 8);
  FIELD(blosc2_metalayer, content_len, 16, 4);
  SIZE(blosc2_schunk, 65840, 8);
  FIELD(blosc2_schunk, version, 0, 1);
  FIELD(blosc2_schunk, compcode, 1, 1);
  FIELD(blosc2_schunk, compcode_meta, 2, 1);
  FIELD(blosc2_schunk, clevel, 3, 1);
  FIELD(blosc2_schunk, splitmode, 4, 1);
  FIELD(blosc2_schunk, typesize, 8, 4);
  FIELD(blosc2_schunk, blocksize, 12, 4);
  FIELD(blosc2_schunk, chunksize, 16, 4);
  FIELD(blosc2_schunk, flags2, 20, 1);
  FIELD(blosc2_schunk, use_dict, 21, 1);
  FIELD(blosc2_schunk, filters, 22, 6);
  FIELD(blosc2_schunk, filters_meta, 28, 6);
  FIELD(blosc2_schunk, nchunks, 40, 8);
  FIELD(blosc2_schunk, current_nchunk, 48, 8);
  FIELD(blosc2_schunk, nbytes, 56, 8);
  FIELD(blosc2_schunk, cbytes, 64, 8);
  FIELD(blosc2_schunk, data, 72, 8);
  FIELD(blosc2_schunk, data_len, 80, 8);
  FIELD(blosc2_schunk, storage, 88, 8);
  FIELD(blosc2_schunk, frame, 96, 8);
  FIELD(blosc2_schunk, cctx, 104, 8);
  FIELD(blosc2_schunk, dctx, 112, 8);
  FIELD(blosc2_schunk, metalayers, 120, 128);
  FIELD(blosc2_schunk, nmetalayers, 248, 2);
  FIELD(blosc2_schunk, vlmetalayers, 256, 65536);
  FIELD(blosc2_schunk, nvlmetalayers, 65792, 2);
  FIELD(blosc2_schunk, tuner_params, 65800, 8);
  FIELD(blosc2_schunk, tuner_id, 65808, 4);
  FIELD(blosc2_schunk, ndim, 65812, 1);
  FIELD(blosc2_schunk, blockshape, 65816, 8);
  FIELD(blosc2_schunk, view, 65824, 1);
  FIELD(blosc2_schunk, change_tick, 65832, 8);
  SIZE(blosc2_codec, 40, 8);
  FIELD(blosc2_codec, compcode, 0, 1);
  FIELD(blosc2_codec, compname, 8, 8);
  FIELD(blosc2_codec, complib, 16, 1);
  FIELD(blosc2_codec, version, 17, 1);
  FIELD(blosc2_codec, encoder, 24, 8);
  FIELD(blosc2_codec, decoder, 32, 8);
  SIZE(blosc2_filter, 40, 8);
  FIELD(blosc2_filter, id, 0, 1);
  FIELD(blosc2_filter, name, 8, 8);
  FIELD(blosc2_filter, version, 16, 1);
  FIELD(blosc2_filter, forward, 24, 8);
  FIELD(blosc2_filter, backward, 32, 8);
}

static void test_b2nd_structs(void) {
  SIZE(struct chunk_cache_s, 16, 8);
  FIELD(struct chunk_cache_s, data, 0, 8);
  FIELD(struct chunk_cache_s, nchunk, 8, 8);
  SIZE(b2nd_array_t, 1376, 8);
  FIELD(b2nd_array_t, sc, 0, 8);
  FIELD(b2nd_array_t, shape, 8, 128);
  FIELD(b2nd_array_t, chunkshape, 136, 64);
  FIELD(b2nd_array_t, extshape, 200, 128);
  FIELD(b2nd_array_t, blockshape, 328, 64);
  FIELD(b2nd_array_t, extchunkshape, 392, 128);
  FIELD(b2nd_array_t, nitems, 520, 8);
  FIELD(b2nd_array_t, chunknitems, 528, 4);
  FIELD(b2nd_array_t, extnitems, 536, 8);
  FIELD(b2nd_array_t, blocknitems, 544, 4);
  FIELD(b2nd_array_t, extchunknitems, 552, 8);
  FIELD(b2nd_array_t, ndim, 560, 1);
  FIELD(b2nd_array_t, chunk_cache, 568, 16);
  FIELD(b2nd_array_t, item_array_strides, 584, 128);
  FIELD(b2nd_array_t, item_chunk_strides, 712, 128);
  FIELD(b2nd_array_t, item_extchunk_strides, 840, 128);
  FIELD(b2nd_array_t, item_block_strides, 968, 128);
  FIELD(b2nd_array_t, block_chunk_strides, 1096, 128);
  FIELD(b2nd_array_t, chunk_array_strides, 1224, 128);
  FIELD(b2nd_array_t, dtype, 1352, 8);
  FIELD(b2nd_array_t, dtype_format, 1360, 1);
  FIELD(b2nd_array_t, last_tick, 1368, 8);
}

static void test_stdio_structs(void) {
  SIZE(blosc2_stdio_file, 8, 8);
  FIELD(blosc2_stdio_file, file, 0, 8);
  SIZE(blosc2_stdio_params, 1, 1);
  FIELD(blosc2_stdio_params, locking, 0, 1);
  SIZE(blosc2_stdio_mmap, 96, 8);
  FIELD(blosc2_stdio_mmap, mode, 0, 8);
  FIELD(blosc2_stdio_mmap, initial_mapping_size, 8, 8);
  FIELD(blosc2_stdio_mmap, needs_free, 16, 1);
  FIELD(blosc2_stdio_mmap, addr, 24, 8);
  FIELD(blosc2_stdio_mmap, urlpath, 32, 8);
  FIELD(blosc2_stdio_mmap, file_size, 40, 8);
  FIELD(blosc2_stdio_mmap, mapping_size, 48, 8);
  FIELD(blosc2_stdio_mmap, is_memory_only, 56, 1);
  FIELD(blosc2_stdio_mmap, file, 64, 8);
  FIELD(blosc2_stdio_mmap, fd, 72, 4);
  FIELD(blosc2_stdio_mmap, access_flags, 80, 8);
  FIELD(blosc2_stdio_mmap, map_flags, 88, 8);
}

static void test_registry_structs(void) {
  SIZE(codec_info, 16, 8);
  FIELD(codec_info, encoder, 0, 8);
  FIELD(codec_info, decoder, 8, 8);
  SIZE(filter_info, 16, 8);
  FIELD(filter_info, forward, 0, 8);
  FIELD(filter_info, backward, 8, 8);
  SIZE(tuner_info, 40, 8);
  FIELD(tuner_info, init, 0, 8);
  FIELD(tuner_info, next_blocksize, 8, 8);
  FIELD(tuner_info, next_cparams, 16, 8);
  FIELD(tuner_info, update, 24, 8);
  FIELD(tuner_info, free, 32, 8);
}

static void test_defaults(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_stdio_mmap map = BLOSC2_STDIO_MMAP_DEFAULTS;
  CHECK_INT(cparams.compcode, BLOSC_BLOSCLZ);
  CHECK_INT(cparams.clevel, 5);
  CHECK_INT(cparams.typesize, 8);
  CHECK_INT(cparams.nthreads, 1);
  CHECK_INT(cparams.splitmode, BLOSC_FORWARD_COMPAT_SPLIT);
  CHECK_INT(cparams.filters[BLOSC2_MAX_FILTERS - 1], BLOSC_SHUFFLE);
  CHECK_INT(cparams.filters[0], BLOSC_NOFILTER);
  CHECK(cparams.prefilter == NULL && cparams.filter_params[BLOSC2_MAX_FILTERS - 1] == NULL);
  CHECK_INT(dparams.nthreads, 1);
  CHECK_INT(dparams.typesize, 8);
  CHECK(!storage.contiguous && storage.urlpath == NULL && storage.io == NULL);
  CHECK_STR(map.mode, "r");
  CHECK_INT(map.initial_mapping_size, 1 << 30);
  CHECK_INT(map.fd, -1);
  CHECK_INT(map.map_flags, -1);
  CHECK_INT(BLOSC2_IO_DEFAULTS.id, BLOSC2_IO_FILESYSTEM);
  CHECK_STR(BLOSC2_IO_DEFAULTS.name, "filesystem");
  CHECK(!BLOSC2_STDIO_PARAMS_DEFAULTS.locking);
  CHECK_INT(BLOSC2_MAX_DIM, B2ND_MAX_DIM);
}

static void test_swap_store(void) {
  uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  int16_t i16;
  int32_t i32;
  int64_t i64;
  swap_store(&i16, bytes, 2);
  CHECK_INT(i16, 0x0102);
  swap_store(&i32, bytes, 4);
  CHECK_INT(i32, 0x01020304);
  swap_store(&i64, bytes, 8);
  CHECK_INT(i64, 0x0102030405060708);
  i32 = 0x0a0b0c0d;
  swap_store(&i32, &i32, 4);
  CHECK_INT(((uint8_t *)&i32)[0], 0x0a);
  swap_store(bytes, bytes + 1, 1);
  CHECK_INT(bytes[0], 2);
}

/* A super-chunk with two metalayers, as far as the inline functions look. */
static void test_metalayers(void) {
  blosc2_schunk *schunk = (blosc2_schunk *)calloc(1, sizeof *schunk);
  char name_a[] = "first", name_b[] = "second";
  uint8_t content[] = {7, 8, 9};
  blosc2_metalayer a = {NULL, NULL, 0}, b = {NULL, NULL, 0};
  uint8_t *got = NULL;
  int32_t len = -1;
  if (!CHECK(schunk != NULL)) {
    return;
  }
  a.name = name_a;
  b.name = name_b;
  b.content = content;
  b.content_len = 3;
  schunk->metalayers[0] = &a;
  schunk->metalayers[1] = &b;
  schunk->nmetalayers = 2;
  CHECK_INT(blosc2_meta_exists(schunk, "second"), 1);
  CHECK_INT(blosc2_meta_exists(schunk, "third"), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_meta_exists(schunk, "a name that has more than 31 characters"), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_meta_exists(NULL, "second"), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_meta_get(schunk, "second", &got, &len), 1);
  CHECK_INT(len, 3);
  CHECK(got != NULL && got != content);
  CHECK_BYTES(got, content, 3);
  free(got);
  REQUIRE_INT(blosc2_meta_get(schunk, "first", &got, &len), 0);
  CHECK(got == NULL);
  CHECK_INT(len, 0);
  CHECK_INT(blosc2_meta_get(schunk, "third", &got, &len), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_meta_get(schunk, "second", NULL, &len), BLOSC2_ERROR_INVALID_PARAM);
  b.content_len = -1;
  CHECK_INT(blosc2_meta_get(schunk, "second", &got, &len), BLOSC2_ERROR_DATA);
  b.content_len = 3;
  b.content = NULL;
  CHECK_INT(blosc2_meta_get(schunk, "second", &got, &len), BLOSC2_ERROR_DATA);
  free(schunk);
}

/* The metadata of an array of 10 x 20 items, chunks of 5 x 5, blocks of 2 x 3, dtype "<f8". */
static void test_deserialize(void) {
  static const uint8_t meta[] = {
      0x97, 0, 2,
      0x92, 0xd3, 0, 0, 0, 0, 0, 0, 0, 10, 0xd3, 0, 0, 0, 0, 0, 0, 0, 20,
      0x92, 0xd2, 0, 0, 0, 5, 0xd2, 0, 0, 0, 5,
      0x92, 0xd2, 0, 0, 0, 2, 0xd2, 0, 0, 0, 3,
      0, 0xdb, 0, 0, 0, 3, '<', 'f', '8'};
  const int32_t size = (int32_t)sizeof meta, shapes = size - 9;
  uint8_t copy[sizeof meta];
  int8_t ndim = -1, format = -1;
  int64_t shape[B2ND_MAX_DIM];
  int32_t chunkshape[B2ND_MAX_DIM], blockshape[B2ND_MAX_DIM], length;
  char *dtype = NULL;
  CHECK_INT(b2nd_deserialize_meta_inline(meta, size, &ndim, shape, chunkshape, blockshape, &dtype, &format), size);
  CHECK_INT(ndim, 2);
  CHECK_INT(format, 0);
  CHECK(shape[0] == 10 && shape[1] == 20 && chunkshape[1] == 5 && blockshape[0] == 2 && blockshape[1] == 3);
  if (CHECK(dtype != NULL)) {
    CHECK_STR(dtype, "<f8");
  }
  free(dtype);
  CHECK_INT(b2nd_deserialize_meta_inline(meta, size, &ndim, shape, chunkshape, blockshape, NULL, NULL), shapes);
  /* Every shorter length is an error, except for the old form without a dtype. */
  for (length = 0; length < size; length++) {
    int wanted = length == shapes ? shapes : BLOSC2_ERROR_FAILURE;
    dtype = NULL;
    CHECK_INT(b2nd_deserialize_meta_inline(meta, length, &ndim, shape, chunkshape, blockshape, &dtype, &format),
              wanted);
    CHECK(dtype == NULL);
  }
  memcpy(copy, meta, sizeof meta);
  copy[2] = B2ND_MAX_DIM + 1;
  CHECK_INT(b2nd_deserialize_meta_inline(copy, size, &ndim, shape, chunkshape, blockshape, &dtype, &format),
            BLOSC2_ERROR_FAILURE);
  CHECK_INT(b2nd_deserialize_meta_inline(NULL, size, &ndim, shape, chunkshape, blockshape, &dtype, &format),
            BLOSC2_ERROR_NULL_POINTER);
}

static int returns_on_null(const void *pointer) {
  BLOSC_ERROR_NULL(pointer, -77);
  return 1;
}

static int returns_on_error(int rc) {
  BLOSC_ERROR(rc);
  return 1;
}

static void test_error_macros(void) {
  CHECK_INT(returns_on_null(NULL), -77);
  CHECK_INT(returns_on_null(""), 1);
  CHECK_INT(returns_on_error(BLOSC2_ERROR_DATA), BLOSC2_ERROR_DATA);
  CHECK_INT(returns_on_error(3), 1);
  CHECK_STR(print_error(BLOSC2_ERROR_DATA), blosc2_error_string(BLOSC2_ERROR_DATA));
}

int main(void) {
  if (sizeof(void *) == 8) {
    test_blosc2_structs();
    test_b2nd_structs();
    test_stdio_structs();
    test_registry_structs();
  }
  test_defaults();
  test_swap_store();
  test_metalayers();
  test_deserialize();
  test_error_macros();
  return test_end();
}
