/* Views and the arrays behind them: what changes of their shape do to both, also those that fail, the metalayers
   of either, and chunks that depend on the shape of their blocks. */

#include "arrays.h"

#include <blosc2/codecs-registry.h>
#include <blosc2/filters-registry.h>

#define PATH "test_b2nd_views.b2nd"

enum { COUNT = 6 };

/* An array of (1, 6) bytes that count from 1. */
static b2nd_array_t *counting(bool contiguous, const char *urlpath) {
  const struct place place = {contiguous, urlpath};
  const int64_t shape[2] = {1, COUNT};
  const int32_t chunk[2] = {1, 4}, block[2] = {1, 2};
  return make_counting(&place, 1, 1, 2, shape, chunk, block);
}

/* A view of it with one dimension. */
static b2nd_array_t *flat(b2nd_array_t *array) {
  const bool index[2] = {true, false};
  b2nd_array_t *view = NULL;
  REQUIRE_INT(b2nd_squeeze_index(array, &view, index), 0);
  return view;
}

/* Whether the items of `array` are these. */
static int holds(const b2nd_array_t *array, const void *items, int64_t count) {
  uint8_t back[4 * COUNT];
  return CHECK_INT(array->nitems, count) && CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0) &&
         CHECK_BYTES(back, items, (size_t)count);
}

/* Items are joined to the view, not to what is behind it, which in a frame would get the shape of the view as well. */
static void test_joining(bool contiguous, const char *urlpath) {
  const uint8_t joined[2 * COUNT] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
  b2nd_array_t *array = counting(contiguous, urlpath), *view = flat(array), *other = flat(array), *result = NULL;
  REQUIRE_INT(b2nd_concatenate(NULL, view, other, 0, false, &result), 0);
  CHECK(result == view);
  holds(view, joined, sizeof joined);
  holds(other, joined, COUNT);
  holds(array, joined, COUNT);
  CHECK_INT(array->ndim, 2);
  CHECK_INT(array->sc->nchunks, 2);
  b2nd_free(other);
  b2nd_free(view);
  b2nd_free(array);
  if (urlpath != NULL) {
    REQUIRE_INT(b2nd_open(urlpath, &array), 0);
    holds(array, joined, COUNT);
    b2nd_free(array);
  }
}

/* A view goes on showing its base after changes of its shape that fail, or change nothing. */
static void test_changes_that_are_none(bool contiguous, const char *urlpath) {
  const int64_t negative = -1, same = COUNT, start = 2, stop = 3, one = 1;
  const uint8_t items[COUNT] = {1, 2, 99, 4, 5, 6}, item = 99;
  b2nd_array_t *array = counting(contiguous, urlpath), *view = flat(array), *result = NULL;
  CHECK_INT(b2nd_resize(view, &negative, NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_resize(view, &same, NULL), 0);
  CHECK_INT(b2nd_append(view, items, 0, 0), 0);
  CHECK_INT(b2nd_insert(view, items, 1, 0, 1), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_delete(view, 0, 0, 0), 0);
  CHECK_INT(b2nd_delete(view, 0, 0, COUNT + 1), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_concatenate(NULL, view, array, 0, false, &result), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_set_slice_cbuffer(&item, &one, 1, &start, &stop, view), 0);
  holds(view, items, sizeof items);
  holds(array, items, sizeof items);
  b2nd_free(view);
  b2nd_free(array);
}

/* The first refresh of a view says that there is news, as for new arrays; no other one does. */
static void test_refresh(const char *urlpath) {
  b2nd_array_t *array = counting(true, urlpath), *view;
  b2nd_free(array);
  REQUIRE_INT(b2nd_open(urlpath, &array), 0);
  view = flat(array);
  CHECK_INT(b2nd_refresh(view), 1);
  CHECK_INT(b2nd_refresh(view), 0);
  CHECK_INT(b2nd_refresh(view), 0);
  b2nd_free(view);
  b2nd_free(array);
}

/* The metalayer of a view is its first change, and those of its own follow; `last_tick` is the one that a refresh saw. */
static void test_ticks(bool contiguous, const char *urlpath) {
  const int64_t longer = COUNT + 1;
  b2nd_array_t *array = counting(contiguous, urlpath), *view;
  if (urlpath != NULL) {
    b2nd_free(array);
    REQUIRE_INT(b2nd_open(urlpath, &array), 0);
  }
  view = flat(array);
  CHECK_INT(view->sc->change_tick, 1);
  CHECK_INT(view->last_tick, 0);
  CHECK_INT(b2nd_refresh(view), contiguous || urlpath != NULL);
  CHECK_INT(view->last_tick, contiguous || urlpath != NULL);
  CHECK_INT(view->sc->change_tick, 1);
  CHECK_INT(b2nd_resize(view, &longer, NULL), 0);
  CHECK_INT(view->sc->change_tick, 2);
  CHECK_INT(view->last_tick, 2);
  CHECK(blosc2_vlmeta_add(view->sc, "name", (uint8_t *)"content", 7, NULL) >= 0);
  CHECK_INT(view->sc->change_tick, 3);
  b2nd_free(view);
  b2nd_free(array);
}

/* A change of the shape that changes nothing leaves `last_tick` as well. */
static void test_last_tick(void) {
  const int64_t same[2] = {1, COUNT}, longer[2] = {1, COUNT + 1};
  const uint8_t item = 1;
  b2nd_array_t *array = counting(false, NULL);
  CHECK_INT(array->last_tick, 0);
  CHECK_INT(b2nd_resize(array, same, NULL), 0);
  CHECK_INT(b2nd_append(array, &item, 0, 1), 0);
  CHECK_INT(b2nd_insert(array, &item, 0, 1, 2), 0);
  CHECK_INT(b2nd_delete(array, 1, 0, 0), 0);
  CHECK_INT(b2nd_delete(array, 1, COUNT, 0), 0);
  CHECK_INT(b2nd_delete(array, 1, COUNT + 1, 0), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(array->last_tick, 0);
  CHECK_INT(b2nd_resize(array, longer, NULL), 0);
  CHECK_INT(array->last_tick, array->sc->change_tick);
  b2nd_free(array);
}

/* Nobody can read a view that leaves out a dimension of longer chunks, nor would anybody a copy of it. */
static void test_view_of_longer_chunks(bool contiguous) {
  const struct place place = {contiguous, NULL};
  const int64_t shape[2] = {1, COUNT};
  const int32_t chunk[2] = {3, 4}, block[2] = {3, 2};
  const char *const path = "view_of_longer_chunks.b2nd";
  b2nd_array_t *array = make_counting(&place, 1, 1, 2, shape, chunk, block), *view = NULL;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  uint8_t items[COUNT], *frame = NULL;
  int64_t length;
  bool needs_free = false;
  REQUIRE_INT(b2nd_squeeze(array, &view), 0);
  CHECK(b2nd_to_cbuffer(view, items, sizeof items) < 0);
  CHECK(b2nd_to_cframe(view, &frame, &length, &needs_free) < 0);
  CHECK(frame == NULL && !needs_free);
  CHECK(b2nd_save(view, (char *)path) < 0);
  CHECK(b2nd_save_append(view, path) < 0);
  CHECK(fopen(path, "rb") == NULL);
  CHECK(blosc2_schunk_copy(view->sc, &storage) == NULL);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  b2nd_free(view);
  b2nd_free(array);
}

/* Chunks and blocks of the array are longer in the dimension that the view leaves out. */
static void test_view_of_no_items(bool contiguous, const char *urlpath) {
  const struct place place = {contiguous, urlpath};
  const int64_t shape[2] = {0, 1}, longer = 3;
  const int32_t chunk[2] = {2, 3}, block[2] = {2, 2};
  const uint8_t items[COUNT] = {1, 2, 3, 4, 5, 6}, grown[COUNT] = {0, 0, 0, 1, 2, 3};
  b2nd_array_t *array = make_counting(&place, 1, 1, 2, shape, chunk, block), *view = NULL, *copy = NULL;
  uint8_t *frame = NULL;
  int64_t length;
  bool needs_free = false;
  CHECK_INT(array->sc->chunksize, 8);
  REQUIRE_INT(b2nd_squeeze(array, &view), 0);
  REQUIRE_INT(b2nd_to_cframe(view, &frame, &length, &needs_free), 0);
  REQUIRE_INT(b2nd_from_cframe(frame, length, true, &copy), 0);
  free(frame);
  CHECK_INT(copy->sc->chunksize, 2);
  CHECK_INT(copy->sc->blocksize, 2);
  CHECK_INT(b2nd_resize(view, &longer, NULL), 0);
  CHECK_INT(b2nd_append(view, items, 3, 0), 0);
  CHECK_INT(view->sc->chunksize, 2);
  CHECK_INT(view->sc->blocksize, 2);
  CHECK_INT(view->sc->nbytes, 6);
  holds(view, grown, sizeof grown);
  CHECK_INT(array->nitems, 0);
  CHECK_INT(array->sc->chunksize, 8);
  b2nd_free(copy);
  b2nd_free(view);
  b2nd_free(array);
}

/* An array of (8, 8) doubles that grow by a half, in chunks that codec or filter make by the shape of their blocks. */
static b2nd_array_t *growing(uint8_t compcode, uint8_t compcode_meta, uint8_t filter) {
  const int64_t shape[2] = {8, 8};
  const int32_t chunk[2] = {8, 8}, block[2] = {4, 4};
  double items[64];
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  int i;
  for (i = 0; i < 64; i++) {
    items[i] = i * 0.5;
  }
  cparams.typesize = 8;
  cparams.compcode = compcode;
  cparams.compcode_meta = compcode_meta;
  cparams.filters[BLOSC2_MAX_FILTERS - 1] = filter;
  cparams.filters_meta[BLOSC2_MAX_FILTERS - 1] = 4;
  storage.cparams = &cparams;
  ctx = b2nd_create_ctx(&storage, 2, shape, chunk, block, NULL, 0, NULL, 0);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, sizeof items), 0);
  b2nd_free_ctx(ctx);
  return array;
}

/* Chunks keep the shape of their blocks, whatever shape a view shows. */
static void test_codecs_for_shapes(uint8_t compcode, uint8_t compcode_meta, uint8_t filter) {
  const bool added[3] = {true, false, false};
  const int64_t start[3] = {0, 1, 2}, stop[3] = {1, 2, 3}, one[3] = {1, 1, 1};
  const double changed = 5;
  double items[64], back[64];
  b2nd_array_t *array = growing(compcode, compcode_meta, filter), *view = NULL;
  REQUIRE_INT(b2nd_expand_dims(array, &view, added, 3), 0);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  CHECK_INT(b2nd_to_cbuffer(view, back, sizeof back), 0);
  CHECK_BYTES(back, items, sizeof items);
  CHECK(items[63] > 31 && items[63] < 32);
  CHECK_INT(b2nd_set_slice_cbuffer(&changed, one, 8, start, stop, view), 0);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  CHECK_INT(b2nd_to_cbuffer(view, back, sizeof back), 0);
  CHECK_BYTES(back, items, sizeof items);
  CHECK(items[10] > 4.9 && items[10] < 5.1);
  b2nd_free(view);
  b2nd_free(array);
}

/* What a view with one more dimension holds can be copied with its chunks if these do not go by the shape of their blocks;
   else only to other ones. */
static void test_copies_with_codecs_for_shapes(uint8_t compcode, uint8_t compcode_meta, uint8_t filter, bool same) {
  const bool added[3] = {false, true, false}, single[3] = {false, true, false};
  const int64_t shape[3] = {8, 1, 8}, longer[3] = {9, 1, 8};
  const int32_t chunk[3] = {8, 1, 8}, block[3] = {4, 1, 4};
  b2nd_array_t *array = growing(compcode, compcode_meta, filter), *view = NULL, *squeezed = NULL, *copy = NULL;
  double items[64], back[64];
  uint8_t *frame = NULL;
  int64_t length;
  bool needs_free = false;
  int i;
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  REQUIRE_INT(b2nd_expand_dims(array, &view, added, 3), 0);
  REQUIRE_INT(b2nd_squeeze_index(view, &squeezed, single), 0);
  for (i = 0; i < 2; i++) {
    /* with the parameters of the array, and with others */
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
    b2nd_context_t *ctx;
    cparams.typesize = 8;
    storage.cparams = i == 0 ? view->sc->storage->cparams : &cparams;
    ctx = b2nd_create_ctx(&storage, 3, shape, chunk, block, NULL, 0, NULL, 0);
    CHECK_INT(b2nd_copy(ctx, view, &copy), i == 1 || same ? 0 : BLOSC2_ERROR_FAILURE);
    if (copy != NULL) {
      CHECK_INT(b2nd_to_cbuffer(copy, back, sizeof back), 0);
      CHECK_BYTES(back, items, sizeof items);
      b2nd_free(copy);
      copy = NULL;
    }
    b2nd_free_ctx(ctx);
  }
  CHECK_INT(b2nd_to_cframe(view, &frame, &length, &needs_free) == 0, same);
  if (frame != NULL && CHECK_INT(b2nd_from_cframe(frame, length, true, &copy), 0)) {
    CHECK_INT(b2nd_to_cbuffer(copy, back, sizeof back), 0);
    CHECK_BYTES(back, items, sizeof items);
    b2nd_free(copy);
  }
  free(frame);
  frame = NULL;
  /* the shape of the array again */
  REQUIRE_INT(b2nd_to_cframe(squeezed, &frame, &length, &needs_free), 0);
  free(frame);
  CHECK_INT(b2nd_resize(view, longer, NULL), same ? 0 : BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(view->shape[0], same ? 9 : 8);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  CHECK_BYTES(back, items, sizeof items);
  b2nd_free(squeezed);
  b2nd_free(view);
  b2nd_free(array);
}

/* With another metalayer than that of arrays there is no view, whatever dimensions are asked for. */
static void test_refusals(void) {
  const bool long_one[2] = {false, true};
  uint8_t content = 1;
  b2nd_array_t *array = counting(false, NULL), *view = NULL;
  CHECK_INT(b2nd_squeeze_index(array, &view, long_one), BLOSC2_ERROR_INVALID_INDEX);
  CHECK_INT(blosc2_meta_add(array->sc, "other", &content, 1), 1);
  CHECK_INT(b2nd_squeeze_index(array, &view, long_one), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_squeeze(array, &view), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_expand_dims(array, &view, (bool[]){true, false, false}, 3), BLOSC2_ERROR_INVALID_PARAM);
  CHECK(view == NULL);
  b2nd_free(array);
}

/* Whether the metalayer that describes the array has this many dimensions, in what is seen and in a copy. */
static int has_dimensions(const b2nd_array_t *array, uint8_t ndim) {
  uint8_t *content = NULL, *frame = NULL;
  int32_t size = 0;
  int64_t length;
  bool needs_free = false;
  b2nd_array_t *copy = NULL;
  int fine = CHECK_INT(blosc2_meta_get(array->sc, "b2nd", &content, &size), 0) && CHECK(size > 2) &&
             CHECK_INT(content[2], ndim);
  free(content);
  REQUIRE_INT(b2nd_to_cframe(array, &frame, &length, &needs_free), 0);
  REQUIRE_INT(b2nd_from_cframe(frame, length, true, &copy), 0);
  fine = CHECK_INT(copy->ndim, ndim) && fine;
  b2nd_free(copy);
  if (needs_free) {
    free(frame);
  }
  return fine;
}

/* The index of the fixed metalayer `name` in a copy of the array. */
static int index_in_copy(const b2nd_array_t *array, const char *name) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *copy = blosc2_schunk_copy(array->sc, &storage);
  int found;
  REQUIRE(copy != NULL);
  found = blosc2_meta_exists(copy, name);
  blosc2_schunk_free(copy);
  return found;
}

/* A view has fixed metalayers of its own: those of its base stay as they are, on disk as well. */
static void test_metalayers(bool contiguous, const char *urlpath) {
  const bool in_list = !contiguous && urlpath == NULL;
  const int refused = in_list ? 0 : BLOSC2_ERROR_DATA, not_added = in_list ? 1 : BLOSC2_ERROR_INVALID_PARAM;
  const int absent = BLOSC2_ERROR_NOT_FOUND;
  b2nd_array_t *array = counting(contiguous, urlpath), *view = flat(array), *other = NULL;
  uint8_t *content = NULL, longer[256] = {0}, items[COUNT] = {1, 2, 3, 4, 5, 6};
  int32_t size = 0;
  REQUIRE_INT(blosc2_meta_get(view->sc, "b2nd", &content, &size), 0);
  CHECK_INT(blosc2_meta_update(view->sc, "none", content, size), absent);
  CHECK_INT(blosc2_meta_update(view->sc, "b2nd", longer, sizeof longer), 0);
  CHECK_INT(blosc2_meta_add(view->sc, "b2nd", content, size), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(view->sc->change_tick, 1);
  CHECK_INT(blosc2_meta_update(view->sc, "b2nd", content, size), refused);
  CHECK_INT(view->sc->change_tick, in_list ? 2 : 1);
  free(content);
  has_dimensions(array, 2);
  has_dimensions(view, 1);
  CHECK_INT(blosc2_meta_add(view->sc, "name", longer, 3), not_added);
  REQUIRE_INT(view->sc->nmetalayers, in_list ? 2 : 1);
  CHECK_INT(array->sc->nmetalayers, 1);
  CHECK_INT(blosc2_meta_exists(array->sc, "name"), absent);
  CHECK_INT(index_in_copy(array, "name"), absent);
  CHECK_INT(index_in_copy(view, "name"), in_list ? 1 : absent);
  CHECK_INT(b2nd_squeeze(view, &other), in_list ? BLOSC2_ERROR_INVALID_PARAM : 0);
  CHECK_INT(blosc2_meta_add(array->sc, "name", longer, 2), not_added);
  if (in_list) {
    CHECK_INT(array->sc->metalayers[1]->content_len, 2);
    CHECK_INT(view->sc->metalayers[1]->content_len, 3);
    CHECK_INT(blosc2_meta_update(view->sc, "name", (uint8_t *)"abc", 3), 1);
    CHECK_BYTES(view->sc->metalayers[1]->content, "abc", 3);
    CHECK_BYTES(array->sc->metalayers[1]->content, longer, 2);
  } else {
    b2nd_free(other);
  }
  has_dimensions(array, 2);
  has_dimensions(view, 1);
  holds(view, items, COUNT);
  holds(array, items, COUNT);
  b2nd_free(view);
  b2nd_free(array);
  if (urlpath != NULL) {
    REQUIRE_INT(b2nd_open(urlpath, &array), 0);
    has_dimensions(array, 2);
    holds(array, items, COUNT);
    b2nd_free(array);
  }
}

/* Nor does a view of a frame without chunks, which can get metalayers, add one. */
static void test_metalayers_of_empty_frames(bool contiguous, const char *urlpath) {
  const struct place place = {contiguous, urlpath};
  const int64_t shape[2] = {1, 0};
  const int32_t chunk[2] = {1, 4}, block[2] = {1, 2};
  b2nd_array_t *array = make_counting(&place, 1, 1, 2, shape, chunk, block), *view = flat(array);
  const bool in_list = !contiguous && urlpath == NULL;
  CHECK_INT(blosc2_meta_add(view->sc, "name", (uint8_t *)"abc", 3), in_list ? 1 : BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(array->sc->nmetalayers, 1);
  has_dimensions(array, 2);
  has_dimensions(view, 1);
  b2nd_free(view);
  b2nd_free(array);
}

/* Whether there are `count` variable-length metalayers, and `name` is the last of them, for fields and functions. */
static int ends_with(blosc2_schunk *schunk, int count, const char *name) {
  char *names[BLOSC2_MAX_VLMETALAYERS];
  return CHECK_INT(blosc2_vlmeta_exists(schunk, name), count - 1) && CHECK_INT(schunk->nvlmetalayers, count) &&
         CHECK_INT(blosc2_vlmeta_get_names(schunk, names), count) && CHECK_STR(names[count - 1], name);
}

/* In a list a view starts with the variable-length metalayers of its base, and each has its own from then on; those of
   a frame are seen through all views. */
static void test_vlmetalayers(bool contiguous, const char *urlpath) {
  const bool in_list = !contiguous && urlpath == NULL;
  const int64_t longer = COUNT + 1;
  b2nd_array_t *array = counting(contiguous, urlpath), *view, *second = NULL, *copy = NULL;
  uint8_t *frame = NULL, *content = NULL;
  int64_t length;
  int32_t size = 0;
  bool needs_free = false;
  CHECK_INT(blosc2_vlmeta_add(array->sc, "first", (uint8_t *)"1", 1, NULL), 0);
  view = flat(array);
  ends_with(view->sc, 1, "first");
  CHECK_INT(blosc2_vlmeta_add(view->sc, "view", (uint8_t *)"22", 2, NULL), 1);
  ends_with(view->sc, 2, "view");
  ends_with(array->sc, in_list ? 1 : 2, in_list ? "first" : "view");
  CHECK_INT(blosc2_vlmeta_add(array->sc, "base", (uint8_t *)"333", 3, NULL), in_list ? 1 : 2);
  ends_with(array->sc, in_list ? 2 : 3, "base");
  ends_with(view->sc, in_list ? 2 : 3, in_list ? "view" : "base");
  REQUIRE_INT(b2nd_squeeze(view, &second), 0);
  ends_with(second->sc, in_list ? 2 : 3, in_list ? "view" : "base");
  CHECK_INT(blosc2_vlmeta_update(view->sc, "first", (uint8_t *)"4444", 4, NULL), 0);
  CHECK_INT(blosc2_vlmeta_get(array->sc, "first", &content, &size), 0);
  CHECK_INT(size, in_list ? 1 : 4);
  free(content);
  CHECK_INT(blosc2_vlmeta_delete(view->sc, "first"), in_list ? 1 : 2);
  ends_with(view->sc, in_list ? 1 : 2, in_list ? "view" : "base");
  ends_with(array->sc, 2, "base");
  /* copies have those of the view, and so has the view when it gets chunks of its own */
  REQUIRE_INT(b2nd_to_cframe(view, &frame, &length, &needs_free), 0);
  REQUIRE_INT(b2nd_from_cframe(frame, length, true, &copy), 0);
  free(frame);
  ends_with(copy->sc, in_list ? 1 : 2, in_list ? "view" : "base");
  CHECK_INT(b2nd_resize(view, &longer, NULL), 0);
  ends_with(view->sc, in_list ? 1 : 2, in_list ? "view" : "base");
  ends_with(array->sc, 2, "base");
  b2nd_free(copy);
  b2nd_free(second);
  b2nd_free(view);
  b2nd_free(array);
}

/* An order of the chunks that a view shows is none of those that the super-chunk has by now. */
static void test_order_of_more_chunks(bool contiguous) {
  int64_t order[3] = {1, 0, 2};
  const uint8_t items[4] = {7, 8, 9, 10};
  uint8_t back[4];
  b2nd_array_t *array = counting(contiguous, NULL), *view = flat(array);
  CHECK_INT(view->sc->nchunks, 2);
  CHECK_INT(blosc2_schunk_append_buffer(array->sc, items, sizeof items), 3);
  CHECK_INT(blosc2_schunk_reorder_offsets(view->sc, order), BLOSC2_ERROR_DATA);
  CHECK_INT(blosc2_schunk_decompress_chunk(array->sc, 0, back, sizeof back), 4);
  CHECK_INT(back[0], 1);
  CHECK_INT(blosc2_schunk_reorder_offsets(array->sc, order), 0);
  CHECK_INT(blosc2_schunk_decompress_chunk(array->sc, 1, back, sizeof back), 4);
  CHECK_INT(back[0], 1);
  b2nd_free(view);
  b2nd_free(array);
}

int main(void) {
  static const struct {
    bool contiguous;
    const char *urlpath;
  } places[4] = {{false, NULL}, {true, NULL}, {true, PATH}, {false, PATH}};
  int i;
  blosc2_init();
  for (i = 0; i < 4; i++) {
    test_joining(places[i].contiguous, places[i].urlpath);
    test_changes_that_are_none(places[i].contiguous, places[i].urlpath);
    test_ticks(places[i].contiguous, places[i].urlpath);
    test_view_of_no_items(places[i].contiguous, places[i].urlpath);
    test_metalayers(places[i].contiguous, places[i].urlpath);
    test_metalayers_of_empty_frames(places[i].contiguous, places[i].urlpath);
    test_vlmetalayers(places[i].contiguous, places[i].urlpath);
  }
  test_last_tick();
  test_view_of_longer_chunks(false);
  test_view_of_longer_chunks(true);
  test_order_of_more_chunks(false);
  test_order_of_more_chunks(true);
  test_refusals();
  test_refresh(PATH);
  test_codecs_for_shapes(BLOSC_CODEC_ZFP_FIXED_ACCURACY, (uint8_t)-6, BLOSC_NOFILTER);
  test_codecs_for_shapes(BLOSC_ZSTD, 0, BLOSC_FILTER_NDCELL);
  test_copies_with_codecs_for_shapes(BLOSC_CODEC_ZFP_FIXED_ACCURACY, (uint8_t)-6, BLOSC_NOFILTER, false);
  test_copies_with_codecs_for_shapes(BLOSC_ZSTD, 0, BLOSC_FILTER_NDCELL, false);
  test_copies_with_codecs_for_shapes(BLOSC_ZSTD, 0, BLOSC_SHUFFLE, true);
  blosc2_remove_urlpath(PATH);
  blosc2_destroy();
  return test_end();
}
