/* What calls on arrays leave behind besides data: out-parameters, ticks, data types, and printed text. */

#include "test.h"

#include <b2nd.h>
#include <unistd.h>

#define PATH "test_b2nd_outputs.b2nd"

/* Where an array is kept. */
struct place {
  bool contiguous;
  const char *urlpath;
};

static const struct place places[4] = {{false, NULL}, {true, NULL}, {true, PATH}, {false, PATH}};

/* What out-parameters hold before a call. */
static b2nd_array_t *const UNTOUCHED = (b2nd_array_t *)&places;

/* The context of arrays of (5, 4) 32-bit integers. */
static b2nd_context_t *make_ctx(const struct place *place, int32_t chunk, const char *dtype) {
  const int64_t shape[2] = {5, 4};
  const int32_t chunkshape[2] = {chunk, 3}, blockshape[2] = {2, 2};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx;
  cparams.typesize = 4;
  storage.cparams = &cparams;
  storage.contiguous = place->contiguous;
  storage.urlpath = (char *)place->urlpath;
  if (place->urlpath != NULL) {
    blosc2_remove_urlpath(place->urlpath);
  }
  ctx = b2nd_create_ctx(&storage, 2, shape, chunkshape, blockshape, dtype, 0, NULL, 0);
  REQUIRE(ctx != NULL);
  return ctx;
}

static const int32_t items[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

/* The array 1, 2, ... 20. */
static b2nd_array_t *counting(const struct place *place) {
  b2nd_context_t *ctx = make_ctx(place, 3, NULL);
  b2nd_array_t *array = NULL;
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, sizeof items), 0);
  b2nd_free_ctx(ctx);
  return array;
}

/* New arrays of one value in frames have not been looked at yet; those whose items were written have. */
static void test_ticks(const struct place *place) {
  const int64_t start[2] = {0, 0}, stop[2] = {5, 4};
  const bool added[3] = {true, false, false};
  const int framed = place->contiguous || place->urlpath != NULL;
  b2nd_array_t *array, *base, *view;
  b2nd_context_t *ctx = make_ctx(place, 3, NULL);
  REQUIRE_INT(b2nd_zeros(ctx, &array), 0);
  CHECK_INT(b2nd_refresh(array), framed);
  CHECK_INT(b2nd_refresh(array), 0);
  b2nd_free(array);
  b2nd_free_ctx(ctx);

  array = counting(place);
  CHECK_INT(array->last_tick, framed);
  CHECK_INT(b2nd_refresh(array), 0);
  REQUIRE_INT(b2nd_expand_dims(array, &view, added, 3), 0);
  CHECK_INT(b2nd_refresh(view), framed);
  CHECK_INT(b2nd_refresh(view), 0);
  b2nd_free(view);
  b2nd_free(array);

  base = counting(&places[0]);
  ctx = make_ctx(place, 3, NULL);
  REQUIRE_INT(b2nd_get_slice(ctx, &array, base, start, stop), 0);
  CHECK_INT(b2nd_refresh(array), 0);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
  /* With other chunks, items are written; else chunks are copied. */
  ctx = make_ctx(place, 2, NULL);
  REQUIRE_INT(b2nd_copy(ctx, base, &array), 0);
  CHECK_INT(b2nd_refresh(array), 0);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
  ctx = make_ctx(place, 3, NULL);
  REQUIRE_INT(b2nd_copy(ctx, base, &array), 0);
  CHECK_INT(b2nd_refresh(array), framed);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
  b2nd_free(base);
}

/* Copies have the data type of the context. */
static void test_dtype_of_copies(const struct place *place) {
  b2nd_array_t *base = counting(&places[0]), *array;
  int32_t chunk;
  for (chunk = 2; chunk <= 3; chunk++) {
    b2nd_context_t *ctx = make_ctx(place, chunk, "<f4");
    REQUIRE_INT(b2nd_copy(ctx, base, &array), 0);
    CHECK_STR(array->dtype, "<f4");
    b2nd_free(array);
    b2nd_free_ctx(ctx);
  }
  b2nd_free(base);
}

/* Arrays that cannot be opened, and views that cannot be made, leave the out-parameter alone. */
static void test_failures_leave_outputs_alone(const struct place *place) {
  const bool second[2] = {false, true}, too_many[4] = {true, false, false, false};
  uint8_t junk[100] = {0};
  b2nd_array_t *array = counting(place), *out = UNTOUCHED;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk = blosc2_schunk_new(&storage);
  CHECK_INT(b2nd_open("test_b2nd_outputs_missing.b2nd", &out), BLOSC2_ERROR_NULL_POINTER);
  CHECK(out == UNTOUCHED);
  CHECK_INT(b2nd_from_cframe(junk, sizeof junk, true, &out), BLOSC2_ERROR_FAILURE);
  CHECK(out == UNTOUCHED);
  CHECK_INT(b2nd_from_schunk(schunk, &out), BLOSC2_ERROR_METALAYER_NOT_FOUND);
  CHECK(out == UNTOUCHED);
  blosc2_schunk_free(schunk);
  /* As clients do that want the view in place of its base. */
  out = array;
  CHECK_INT(b2nd_squeeze_index(out, &out, second), BLOSC2_ERROR_INVALID_INDEX);
  CHECK(out == array);
  CHECK_INT(b2nd_expand_dims(out, &out, too_many, 4), BLOSC2_ERROR_INVALID_PARAM);
  CHECK(out == array);
  b2nd_free(array);
}

/* An array whose extents cannot be is no array at all. */
static void test_impossible_extents_give_null(void) {
  const int64_t shape[2] = {-1, 20};
  const int32_t chunk[2] = {7, 8}, block[2] = {2, 4};
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk = blosc2_schunk_new(&storage);
  b2nd_array_t *out = UNTOUCHED;
  uint8_t *meta = NULL;
  int32_t len = b2nd_serialize_meta(2, shape, chunk, block, "|u1", 0, &meta);
  REQUIRE(schunk != NULL && len > 0);
  CHECK_INT(blosc2_meta_add(schunk, "b2nd", meta, len), 0);
  CHECK_INT(b2nd_from_schunk(schunk, &out), BLOSC2_ERROR_INVALID_PARAM);
  CHECK(out == NULL);
  free(meta);
  blosc2_schunk_free(schunk);
}

/* Reading a metalayer writes as many extents as there are dimensions: there may be no room for more. */
static void test_room_for_extents(void) {
  const int64_t shape[2] = {10, 20};
  const int32_t chunk[2] = {7, 8}, block[2] = {2, 4};
  int64_t shape2[3] = {-1, -1, -1};
  int32_t chunk2[3] = {-1, -1, -1}, block2[3] = {-1, -1, -1};
  int8_t ndim = -1, format;
  char *dtype;
  uint8_t *smeta;
  int len = b2nd_serialize_meta(2, shape, chunk, block, "<i4", 0, &smeta);
  CHECK_INT(b2nd_deserialize_meta(smeta, len, &ndim, shape2, chunk2, block2, &dtype, &format), len);
  CHECK_INT(ndim, 2);
  CHECK_INT(shape2[1], 20);
  CHECK_INT(chunk2[1], 8);
  CHECK_INT(block2[1], 4);
  CHECK_INT(shape2[2], -1);
  CHECK_INT(chunk2[2], -1);
  CHECK_INT(block2[2], -1);
  free(dtype);
  free(smeta);
}

/* What `b2nd_print_meta` prints. */
static const char *printed(const b2nd_array_t *array) {
  static char text[500];
  size_t len;
  int kept;
  FILE *file;
  fflush(stdout);
  kept = dup(1);
  file = fopen("test_b2nd_outputs.txt", "w+");
  REQUIRE(kept >= 0 && file != NULL);
  dup2(fileno(file), 1);
  CHECK_INT(b2nd_print_meta(array), 0);
  fflush(stdout);
  dup2(kept, 1);
  close(kept);
  rewind(file);
  len = fread(text, 1, sizeof text - 1, file);
  text[len] = '\0';
  fclose(file);
  remove("test_b2nd_outputs.txt");
  return text;
}

/* Views print their own shapes, and data types are printed as bytes, up to a NUL. */
static void test_print(const struct place *place) {
  static const char head[] = "b2nd metalayer parameters:\n Ndim:       2\n shape:      5, 4\n chunkshape: 3, 3\n dtype: ";
  const bool added[3] = {true, false, false};
  b2nd_array_t *array = counting(place), *view = NULL;
  uint8_t *meta;
  int32_t len;
  REQUIRE_INT(b2nd_expand_dims(array, &view, added, 3), 0);
  CHECK_STR(printed(view),
            "b2nd metalayer parameters:\n Ndim:       3\n shape:      1, 5, 4\n chunkshape: 1, 3, 3\n dtype: |S4\n"
            " blockshape: 1, 2, 2\n");
  b2nd_free(view);
  REQUIRE_INT(blosc2_meta_get(array->sc, "b2nd", &meta, &len), 0);
  meta[len - 2] = 0xff;
  CHECK_INT(blosc2_meta_update(array->sc, "b2nd", meta, len), 0);
  CHECK(strncmp(printed(array), head, sizeof head - 1) == 0);
  CHECK_STR(printed(array) + sizeof head - 1, "|\xff" "4\n blockshape: 2, 2\n");
  meta[len - 2] = 0;
  CHECK_INT(blosc2_meta_update(array->sc, "b2nd", meta, len), 0);
  CHECK_STR(printed(array) + sizeof head - 1, "|\n blockshape: 2, 2\n");
  free(meta);
  b2nd_free(array);
}

/* Chunks of a box, also for boxes behind the items, for views, and for damaged metalayers. */
static void test_slice_nchunks(const struct place *place) {
  int64_t inside[2] = {0, 1}, behind[2] = {0, 4}, end[2] = {5, 4}, first[3] = {0, 4, 0}, last[3] = {1, 5, 1};
  const bool added[3] = {true, false, false};
  b2nd_array_t *array = counting(place), *view = NULL;
  int64_t *numbers = NULL;
  uint8_t *meta;
  int32_t len;
  CHECK_INT(blosc2_get_slice_nchunks(array->sc, inside, end, &numbers), 4);
  free(numbers);
  CHECK_INT(blosc2_get_slice_nchunks(array->sc, behind, end, &numbers), 0);
  free(numbers);
  REQUIRE_INT(b2nd_expand_dims(array, &view, added, 3), 0);
  CHECK_INT(blosc2_get_slice_nchunks(view->sc, first, last, &numbers), 1);
  CHECK_INT(numbers[0], 2);
  free(numbers);
  b2nd_free(view);
  REQUIRE_INT(blosc2_meta_get(array->sc, "b2nd", &meta, &len), 0);
  meta[len - 7] = 8; /* the length of the dtype */
  meta[len - 8] = 0; /* its tag */
  CHECK_INT(blosc2_meta_update(array->sc, "b2nd", meta, len), 0);
  numbers = NULL;
  CHECK_INT(blosc2_get_slice_nchunks(array->sc, inside, end, &numbers), BLOSC2_ERROR_FAILURE);
  CHECK(numbers == NULL);
  free(meta);
  b2nd_free(array);
}

/* Selections in a buffer that is wider than them; the size of the buffer is that of the selection. */
static void test_selection_in_wide_buffer(const struct place *place) {
  int64_t rows[2] = {4, 0}, columns[2] = {1, 3}, sizes[2] = {2, 2}, wide[2] = {2, 5};
  int64_t *lists[2];
  int32_t got[10], all[20];
  int i;
  b2nd_array_t *array = counting(place);
  lists[0] = rows;
  lists[1] = columns;
  memset(got, 0, sizeof got);
  CHECK_INT(b2nd_get_orthogonal_selection(array, lists, sizes, got, wide, 16), 0);
  CHECK_INT(got[0], 18);
  CHECK_INT(got[1], 20);
  CHECK_INT(got[2], 0);
  CHECK_INT(got[5], 2);
  CHECK_INT(got[6], 4);
  CHECK_INT(b2nd_get_orthogonal_selection(array, lists, sizes, got, wide, 40), BLOSC2_ERROR_INVALID_PARAM);
  for (i = 0; i < 10; i++) {
    got[i] = -i;
  }
  CHECK_INT(b2nd_set_orthogonal_selection(array, lists, sizes, got, wide, 16), 0);
  CHECK_INT(b2nd_to_cbuffer(array, all, sizeof all), 0);
  CHECK_INT(all[17], 0);
  CHECK_INT(all[19], -1);
  CHECK_INT(all[1], -5);
  CHECK_INT(all[3], -6);
  CHECK_INT(all[2], 3);
  b2nd_free(array);
}

/* A change of the shape that needs no other chunks does not look at their number. */
static void test_resize_without_chunks(const struct place *place) {
  const int64_t padding[2] = {6, 4}, more[2] = {9, 4};
  b2nd_array_t *array = counting(place);
  CHECK_INT(blosc2_schunk_delete_chunk(array->sc, 3), 3);
  CHECK_INT(b2nd_resize(array, padding, NULL), 0);
  CHECK_INT(array->shape[0], 6);
  CHECK_INT(b2nd_resize(array, more, NULL), BLOSC2_ERROR_FAILURE);
  b2nd_free(array);
}

static int encode_half(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                       blosc2_cparams *cparams, const void *chunk) {
  (void)meta, (void)cparams, (void)chunk;
  if (output_len < input_len / 2) {
    return 0;
  }
  memcpy(output, input, (size_t)input_len / 2);
  return input_len / 2;
}

static int decode_nothing(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                          blosc2_dparams *dparams, const void *chunk) {
  (void)input, (void)input_len, (void)output, (void)output_len, (void)meta, (void)dparams, (void)chunk;
  return -5;
}

/* The codes of items that cannot be decoded. */
static void test_codes_of_decoders(void) {
  const int64_t shape = 1000, coords[3] = {5, 900, 7};
  const int32_t chunk = 500, block = 250;
  blosc2_codec codec;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_array_t *array;
  b2nd_context_t *ctx;
  uint8_t *data = test_make_data(TEST_RAMP, 4000), back[12];
  memset(&codec, 0, sizeof codec);
  codec.compcode = codec.complib = 250;
  codec.compname = (char *)"half";
  codec.version = 1;
  codec.encoder = encode_half;
  codec.decoder = decode_nothing;
  CHECK_INT(blosc2_register_codec(&codec), 0);
  cparams.typesize = 4;
  cparams.compcode = 250;
  storage.cparams = &cparams;
  ctx = b2nd_create_ctx(&storage, 1, &shape, &chunk, &block, NULL, 0, NULL, 0);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, data, 4000), 0);
  CHECK_INT(b2nd_to_cbuffer(array, data, 4000), BLOSC2_ERROR_FAILURE);
  CHECK_INT(b2nd_get_sparse_cbuffer(array, 1, coords, back, sizeof back), BLOSC2_ERROR_FAILURE);
  CHECK_INT(b2nd_get_sparse_cbuffer(array, 3, coords, back, sizeof back), BLOSC2_ERROR_DATA);
  CHECK_INT(blosc2_schunk_get_sparse_buffer(array->sc, 1, coords, back), BLOSC2_ERROR_FAILURE);
  CHECK_INT(blosc2_schunk_get_sparse_buffer(array->sc, 3, coords, back), BLOSC2_ERROR_DATA);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
  free(data);
}

/* The first index is what is left, whatever the extent of its dimension. */
static void test_index_of_no_items(void) {
  int64_t shape[2] = {0, 5}, index[2];
  blosc2_unidim_to_multidim(2, shape, 12, index);
  CHECK_INT(index[0], 2);
  CHECK_INT(index[1], 2);
}

int main(void) {
  int i;
  blosc2_init();
  test_impossible_extents_give_null();
  test_room_for_extents();
  test_codes_of_decoders();
  test_index_of_no_items();
  for (i = 0; i < 4; i++) {
    test_ticks(&places[i]);
    test_dtype_of_copies(&places[i]);
    test_failures_leave_outputs_alone(&places[i]);
    test_print(&places[i]);
    test_slice_nchunks(&places[i]);
    test_selection_in_wide_buffer(&places[i]);
    test_resize_without_chunks(&places[i]);
  }
  blosc2_remove_urlpath(PATH);
  blosc2_destroy();
  return test_end();
}
