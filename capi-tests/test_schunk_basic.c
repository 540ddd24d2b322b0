/* Super-chunks in memory, as frames, in files and in directories: life cycle, chunks, slices, metalayers, buffers. */

#include <blosc2.h>

#include "test.h"

#define CHUNK_ITEMS 1000
#define CHUNK_BYTES (CHUNK_ITEMS * 4)

/* The four places. */
static const struct {
  const char *name;
  bool contiguous;
  const char *urlpath;
} places[] = {
    {"sparse in memory", false, NULL},
    {"contiguous in memory", true, NULL},
    {"file", true, "test_schunk_basic.b2frame"},
    {"directory", false, "test_schunk_basic_dir.b2frame"},
};
#define NPLACES ((int)(sizeof places / sizeof places[0]))

/* The items of chunk `nchunk`. */
static void fill(int32_t *items, int nchunk) {
  int i;
  for (i = 0; i < CHUNK_ITEMS; i++) {
    items[i] = nchunk * CHUNK_ITEMS + i;
  }
}

static blosc2_schunk *make(int place, int nchunks) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  int32_t items[CHUNK_ITEMS];
  int i;
  cparams.typesize = 4;
  cparams.nthreads = 2;
  dparams.nthreads = 2;
  storage.cparams = &cparams;
  storage.dparams = &dparams;
  storage.contiguous = places[place].contiguous;
  storage.urlpath = (char *)places[place].urlpath;
  blosc2_remove_urlpath(places[place].urlpath);
  schunk = blosc2_schunk_new(&storage);
  if (!CHECK(schunk != NULL)) {
    printf("cannot make a super-chunk: %s\n", places[place].name);
    exit(EXIT_FAILURE);
  }
  for (i = 0; i < nchunks; i++) {
    fill(items, i);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, CHUNK_BYTES), i + 1);
  }
  return schunk;
}

static void release(int place, blosc2_schunk *schunk) {
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  CHECK_INT(blosc2_remove_urlpath(places[place].urlpath), 0);
}

/* Whether chunk `nchunk` holds what `fill` made for `value`. */
static void check_chunk(blosc2_schunk *schunk, int64_t nchunk, int value) {
  int32_t items[CHUNK_ITEMS], wanted[CHUNK_ITEMS];
  fill(wanted, value);
  memset(items, 0xee, sizeof items);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, nchunk, items, CHUNK_BYTES), CHUNK_BYTES);
  CHECK_BYTES(items, wanted, CHUNK_BYTES);
}

static void test_fields(int place) {
  blosc2_schunk *schunk = make(place, 0);
  bool framed = places[place].contiguous || places[place].urlpath != NULL;
  int32_t items[CHUNK_ITEMS];
  blosc2_cparams *cparams = NULL;
  blosc2_dparams *dparams = NULL;
  CHECK_INT(schunk->typesize, 4);
  CHECK_INT(schunk->chunksize, -1);
  CHECK_INT(schunk->nchunks, 0);
  CHECK_INT(schunk->clevel, 5);
  CHECK_INT(schunk->filters[5], BLOSC_SHUFFLE);
  CHECK((schunk->frame != NULL) == framed);
  REQUIRE(schunk->cctx != NULL && schunk->dctx != NULL);
  CHECK(schunk->storage->cparams->schunk == schunk);
  CHECK_INT(blosc2_schunk_frame_len(schunk), framed ? 132 : 0);
  fill(items, 0);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, CHUNK_BYTES), 1);
  CHECK_INT(schunk->chunksize, CHUNK_BYTES);
  CHECK_INT(schunk->nchunks, 1);
  CHECK_INT(schunk->nbytes, CHUNK_BYTES);
  CHECK(schunk->cbytes > 32 && schunk->cbytes < CHUNK_BYTES);
  CHECK((schunk->data != NULL) == !framed);
  if (framed) {
    int64_t *offsets = blosc2_frame_get_offsets(schunk);
    CHECK(offsets != NULL && offsets[0] == 0);
    free(offsets);
  } else {
    CHECK(schunk->data_len >= sizeof(uint8_t *));
    CHECK_INT(blosc2_decompress_ctx(schunk->dctx, schunk->data[0], INT32_MAX, items, CHUNK_BYTES), CHUNK_BYTES);
    CHECK(blosc2_frame_get_offsets(schunk) == NULL);
  }
  REQUIRE_INT(blosc2_schunk_get_cparams(schunk, &cparams), 0);
  REQUIRE_INT(blosc2_schunk_get_dparams(schunk, &dparams), 0);
  CHECK_INT(cparams->typesize, 4);
  CHECK_INT(cparams->nthreads, 2);
  CHECK(cparams->schunk == schunk);
  CHECK_INT(dparams->nthreads, 2);
  free(cparams);
  free(dparams);
  release(place, schunk);
}

static void test_chunks(int place) {
  blosc2_schunk *schunk = make(place, 5);
  bool in_memory = places[place].urlpath == NULL;
  int32_t items[CHUNK_ITEMS];
  uint8_t *chunk, *own;
  int32_t cbytes;
  bool needs_free;
  int i;
  for (i = 0; i < 5; i++) {
    check_chunk(schunk, i, i);
    CHECK_INT(schunk->current_nchunk, i);
  }
  /* Bad numbers and sizes. */
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 5, items, CHUNK_BYTES), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, -1, items, CHUNK_BYTES), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, items, 10),
            schunk->frame == NULL ? BLOSC2_ERROR_INVALID_PARAM : BLOSC2_ERROR_WRITE_BUFFER);
  chunk = (uint8_t *)&items;
  CHECK_INT(blosc2_schunk_get_chunk(schunk, 5, &chunk, &needs_free), BLOSC2_ERROR_INVALID_PARAM);
  CHECK(chunk == (uint8_t *)&items);
  CHECK_INT(schunk->current_nchunk, 0);
  /* A chunk, whole and lazy. */
  cbytes = blosc2_schunk_get_chunk(schunk, 2, &chunk, &needs_free);
  REQUIRE(cbytes > 32);
  CHECK(needs_free == !in_memory);
  CHECK_INT(blosc2_decompress_ctx(schunk->dctx, chunk, cbytes, items, CHUNK_BYTES), CHUNK_BYTES);
  CHECK_INT(items[0], 2 * CHUNK_ITEMS);
  /* Inserted and replaced: copies, and memory that is given away. */
  own = (uint8_t *)test_alloc((size_t)cbytes);
  memcpy(own, chunk, (size_t)cbytes);
  if (needs_free) {
    free(chunk);
  }
  CHECK_INT(blosc2_schunk_insert_chunk(schunk, 0, own, true), 6);
  check_chunk(schunk, 0, 2);
  check_chunk(schunk, 1, 0);
  CHECK_INT(blosc2_schunk_update_chunk(schunk, 6, own, false), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_update_chunk(schunk, 5, own, true), 6);
  check_chunk(schunk, 5, 2);
  CHECK_INT(blosc2_schunk_append_chunk(schunk, own, false), 7);
  check_chunk(schunk, 6, 2);
  CHECK_INT(schunk->nbytes, 7 * CHUNK_BYTES);
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 1), 6);
  check_chunk(schunk, 1, 1);
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 6), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(schunk->nchunks, 6);
  CHECK_INT(schunk->nbytes, 6 * CHUNK_BYTES);
  cbytes = blosc2_schunk_get_lazychunk(schunk, 1, &chunk, &needs_free);
  REQUIRE(cbytes > 32);
  CHECK(((chunk[31] & 8) != 0) == !in_memory);
  CHECK_INT(blosc2_decompress_ctx(schunk->dctx, chunk, cbytes, items, CHUNK_BYTES), CHUNK_BYTES);
  CHECK_INT(items[1], CHUNK_ITEMS + 1);
  CHECK_INT(blosc2_getitem_ctx(schunk->dctx, chunk, cbytes, 10, 3, items, CHUNK_BYTES), 12);
  CHECK_INT(items[2], CHUNK_ITEMS + 12);
  if (!in_memory) { /* without the super-chunk there are only codes to be had */
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_context *dctx = blosc2_create_dctx(dparams);
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, items, CHUNK_BYTES), BLOSC2_ERROR_INVALID_PARAM);
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, items, 10), BLOSC2_ERROR_WRITE_BUFFER);
    CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 0, 0, items, 10), 0);
    CHECK_INT(blosc2_getitem_ctx(dctx, chunk, cbytes, 0, 1, items, 10), BLOSC2_ERROR_INVALID_PARAM);
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, 33, items, CHUNK_BYTES), BLOSC2_ERROR_READ_BUFFER);
    blosc2_free_ctx(dctx);
  }
  if (needs_free) {
    free(chunk);
  }
  {
    int64_t order[6] = {5, 4, 3, 2, 1, 0};
    CHECK_INT(blosc2_schunk_reorder_offsets(schunk, order), 0);
    check_chunk(schunk, 4, 1);
    order[0] = 4;
    CHECK_INT(blosc2_schunk_reorder_offsets(schunk, order), BLOSC2_ERROR_DATA);
  }
  release(place, schunk);
}

static void test_slices(int place) {
  blosc2_schunk *schunk = make(place, 4);
  int32_t items[CHUNK_ITEMS * 4];
  int64_t coords[5] = {3999, 0, 1000, 17, 0};
  int64_t start = 999, stop = 2001;
  int64_t *numbers = NULL;
  int i, wrong = 0;
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 990, 3010, items), 0);
  for (i = 0; i < 2020; i++) {
    wrong += items[i] != 990 + i;
  }
  CHECK_INT(wrong, 0);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 10, 10, items), 0);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 3990, 4001, items), BLOSC2_ERROR_FAILURE);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, -1, 4, items), BLOSC2_ERROR_FAILURE);
  for (i = 0; i < 1500; i++) {
    items[i] = -i;
  }
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, 500, 2000, items), 0);
  CHECK_INT(schunk->nchunks, 4);
  CHECK_INT(schunk->nbytes, 4 * CHUNK_BYTES);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 0, 4000, items), 0);
  for (i = 0; i < 4000; i++) {
    wrong += items[i] != (i >= 500 && i < 2000 ? 500 - i : i);
  }
  CHECK_INT(wrong, 0);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, -1, 4, items), BLOSC2_ERROR_FAILURE);
  CHECK_INT(blosc2_schunk_get_sparse_buffer(schunk, 5, coords, items), 0);
  CHECK_INT(items[0], 3999);
  CHECK_INT(items[1], 0);
  CHECK_INT(items[2], -500);
  CHECK_INT(items[3], 17);
  coords[2] = 4000;
  CHECK_INT(blosc2_schunk_get_sparse_buffer(schunk, 5, coords, items), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_get_sparse_buffer(schunk, 0, NULL, NULL), 0);
  CHECK_INT(blosc2_get_slice_nchunks(schunk, &start, &stop, &numbers), 3);
  CHECK(numbers != NULL && numbers[0] == 0 && numbers[2] == 2);
  free(numbers);
  start = 3000;
  stop = 10;
  CHECK_INT(blosc2_get_slice_nchunks(schunk, &start, &stop, &numbers), -2);
  CHECK(numbers == NULL);
  release(place, schunk);
}

static void test_metalayers(int place) {
  blosc2_schunk *schunk = make(place, 0);
  bool framed = schunk->frame != NULL;
  uint8_t *content = NULL;
  int32_t length = 0;
  char *names[4];
  CHECK_INT(blosc2_meta_exists(schunk, "one"), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_meta_add(schunk, "one", (uint8_t *)"world", 5), 0);
  CHECK_INT(blosc2_meta_add(schunk, "two", NULL, 0), 1);
  CHECK_INT(blosc2_meta_add(schunk, "one", (uint8_t *)"x", 1), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_meta_add(schunk, "a name that is longer than 31 bytes", NULL, 0), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_meta_exists(schunk, "two"), 1);
  CHECK_INT(schunk->nmetalayers, 2);
  CHECK_STR(schunk->metalayers[0]->name, "one");
  CHECK_INT(blosc2_meta_update(schunk, "one", (uint8_t *)"WO", 2), 0);
  CHECK_INT(blosc2_meta_update(schunk, "one", (uint8_t *)"too long", 8), 0);
  CHECK_INT(blosc2_meta_update(schunk, "none", (uint8_t *)"x", 1), BLOSC2_ERROR_NOT_FOUND);
  REQUIRE_INT(blosc2_meta_get(schunk, "one", &content, &length), 0);
  CHECK_INT(length, 5);
  CHECK_BYTES(content, "WOrld", 5);
  free(content);
  CHECK_INT(schunk->change_tick, 3);
  CHECK_INT(blosc2_vlmeta_add(schunk, "vl1", (uint8_t *)"hello", 5, NULL), 0);
  CHECK_INT(schunk->vlmetalayers[0]->content_len, 37);
  CHECK_INT(blosc2_vlmeta_add(schunk, "vl2", NULL, 0, NULL), 1);
  CHECK_INT(blosc2_vlmeta_add(schunk, "vl1", NULL, 0, NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_vlmeta_exists(schunk, "vl2"), 1);
  CHECK_INT(blosc2_vlmeta_exists(schunk, "vl3"), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_vlmeta_get_names(schunk, names), 2);
  CHECK_STR(names[1], "vl2");
  CHECK_INT(blosc2_vlmeta_update(schunk, "vl2", (uint8_t *)"something longer", 16, NULL), 1);
  CHECK_INT(blosc2_vlmeta_update(schunk, "vl3", NULL, 0, NULL), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_vlmeta_delete(schunk, "vl1"), 1);
  REQUIRE_INT(blosc2_vlmeta_get(schunk, "vl2", &content, &length), 0);
  CHECK_INT(length, 16);
  CHECK_BYTES(content, "something longer", 16);
  free(content);
  {
    int32_t items[CHUNK_ITEMS];
    fill(items, 0);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, CHUNK_BYTES), 1);
    CHECK_INT(blosc2_meta_add(schunk, "late", NULL, 0), framed ? BLOSC2_ERROR_INVALID_PARAM : 2);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, CHUNK_BYTES), 2);
  }
  if (places[place].urlpath != NULL) {
    CHECK_INT(blosc2_schunk_free(schunk), 0);
    schunk = blosc2_schunk_open(places[place].urlpath);
    if (CHECK(schunk != NULL)) {
      CHECK_INT(schunk->nchunks, 2);
      CHECK_INT(schunk->typesize, 4);
      CHECK_INT(schunk->chunksize, CHUNK_BYTES);
      CHECK_INT(blosc2_meta_exists(schunk, "two"), 1);
      CHECK_INT(blosc2_vlmeta_exists(schunk, "vl2"), 0);
      CHECK_STR(schunk->storage->urlpath, places[place].urlpath);
      check_chunk(schunk, 1, 0);
    }
  }
  release(place, schunk);
}

static void test_buffers(int place) {
  blosc2_schunk *schunk = make(place, 3), *other;
  bool memory_frame = places[place].contiguous && places[place].urlpath == NULL;
  uint8_t *frame = NULL;
  bool needs_free = false;
  int64_t length;
  int copy;
  CHECK_INT(blosc2_vlmeta_add(schunk, "vl", (uint8_t *)"hello", 5, NULL), 0);
  length = blosc2_schunk_to_buffer(schunk, &frame, &needs_free);
  REQUIRE(length > 132);
  CHECK(needs_free == !memory_frame);
  for (copy = 0; copy < 2; copy++) {
    int32_t items[CHUNK_ITEMS];
    other = blosc2_schunk_from_buffer(frame, length, copy != 0);
    if (!CHECK(other != NULL)) {
      continue;
    }
    CHECK((other->frame == NULL) == (copy != 0));
    CHECK_INT(other->nchunks, 3);
    check_chunk(other, 2, 2);
    CHECK_INT(blosc2_vlmeta_exists(other, "vl"), 0);
    fill(items, 3);
    CHECK_INT(blosc2_schunk_append_buffer(other, items, CHUNK_BYTES), 4);
    check_chunk(other, 3, 3);
    check_chunk(other, 0, 0);
    CHECK_INT(blosc2_schunk_free(other), 0);
  }
  CHECK(blosc2_schunk_from_buffer(frame, length - 1, false) == NULL);
  CHECK(blosc2_schunk_from_buffer(NULL, 100, false) == NULL);
  if (needs_free) {
    free(frame);
  }
  /* Into a file, and behind what the file holds. */
  blosc2_remove_urlpath("test_schunk_copy.b2frame");
  length = blosc2_schunk_to_file(schunk, "test_schunk_copy.b2frame");
  CHECK(length > 132);
  CHECK_INT(blosc2_schunk_to_file(schunk, "test_schunk_copy.b2frame"),
            memory_frame ? length : BLOSC2_ERROR_SCHUNK_COPY);
  CHECK_INT(blosc2_schunk_append_file(schunk, "test_schunk_copy.b2frame"), length);
  other = blosc2_schunk_open_offset("test_schunk_copy.b2frame", length);
  if (CHECK(other != NULL)) {
    check_chunk(other, 1, 1);
    CHECK_INT(blosc2_schunk_free(other), 0);
  }
  CHECK(blosc2_schunk_open_offset("test_schunk_copy.b2frame", length + 1) == NULL);
  CHECK(blosc2_schunk_open("test_schunk_missing.b2frame") == NULL);
  CHECK_INT(blosc2_remove_urlpath("test_schunk_copy.b2frame"), 0);
  release(place, schunk);
}

static void test_copies(int from, int to) {
  blosc2_schunk *schunk = make(from, 3), *copy;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  char path[80];
  int other;
  for (other = 0; other < 2; other++) {
    snprintf(path, sizeof path, "copy_%s", places[to].urlpath == NULL ? "" : places[to].urlpath);
    storage.contiguous = places[to].contiguous;
    storage.urlpath = places[to].urlpath == NULL ? NULL : path;
    cparams.typesize = 4;
    cparams.clevel = 9;
    cparams.compcode = BLOSC_LZ4;
    storage.cparams = other ? &cparams : NULL;
    if (storage.urlpath != NULL) {
      blosc2_remove_urlpath(path);
    }
    copy = blosc2_schunk_copy(schunk, &storage);
    if (!CHECK(copy != NULL)) {
      continue;
    }
    CHECK_INT(copy->nchunks, 3);
    CHECK_INT(copy->nbytes, schunk->nbytes);
    CHECK_INT(copy->compcode, other ? BLOSC_LZ4 : BLOSC_BLOSCLZ);
    check_chunk(copy, 2, 2);
    CHECK((storage.cparams == NULL) == !other);
    if (storage.urlpath != NULL) {
      CHECK(blosc2_schunk_copy(schunk, &storage) == NULL);
    }
    CHECK_INT(blosc2_schunk_free(copy), 0);
    if (storage.urlpath != NULL) {
      CHECK_INT(blosc2_remove_urlpath(path), 0);
    }
  }
  release(from, schunk);
}

/* Copies are compressed anew for another number of a filter as well, here the bytes of the items to shuffle. */
static void test_copies_shuffled_otherwise(int place) {
  blosc2_schunk *schunk = make(place, 2), *copy;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  uint8_t *chunk;
  bool needs_free;
  cparams.typesize = 4;
  cparams.filters_meta[5] = 2;
  storage.cparams = &cparams;
  copy = blosc2_schunk_copy(schunk, &storage);
  REQUIRE(copy != NULL);
  CHECK(blosc2_schunk_get_chunk(copy, 1, &chunk, &needs_free) > 0);
  CHECK_INT(chunk[BLOSC2_CHUNK_FILTER_META + 5], 2);
  if (needs_free) {
    free(chunk);
  }
  check_chunk(copy, 0, 0);
  CHECK_INT(blosc2_schunk_free(copy), 0);
  release(place, schunk);
}

static void test_special(int place) {
  blosc2_schunk *schunk = make(place, 0);
  int32_t items[CHUNK_ITEMS];
  uint8_t *chunk;
  bool needs_free;
  CHECK_INT(blosc2_schunk_fill_special(schunk, 0, BLOSC2_SPECIAL_ZERO, 0), 0);
  CHECK_INT(blosc2_schunk_fill_special(schunk, -1, BLOSC2_SPECIAL_ZERO, 4000), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_fill_special(schunk, 2500, BLOSC2_SPECIAL_ZERO, 4000), 3);
  CHECK_INT(schunk->nbytes, 10000);
  CHECK_INT(schunk->chunksize, 4000);
  CHECK_INT(blosc2_schunk_get_chunk(schunk, 2, &chunk, &needs_free), 32);
  if (needs_free) {
    free(chunk);
  }
  memset(items, 1, sizeof items);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 2, items, CHUNK_BYTES), 2000);
  CHECK_INT(items[499], 0);
  CHECK_INT(blosc2_schunk_fill_special(schunk, 1, BLOSC2_SPECIAL_ZERO, 4000), BLOSC2_ERROR_FRAME_SPECIAL);
  release(place, schunk);
}

/* What clients assign takes effect. */
static void test_assignments(int place) {
  blosc2_schunk *schunk = make(place, 0);
  int32_t items[CHUNK_ITEMS];
  uint8_t *chunk;
  bool needs_free;
  schunk->chunksize = 2 * CHUNK_BYTES;
  schunk->storage->cparams->compcode = BLOSC_ZSTD;
  schunk->storage->cparams->clevel = 1;
  blosc2_free_ctx(schunk->cctx);
  schunk->cctx = blosc2_create_cctx(*schunk->storage->cparams);
  schunk->compcode = BLOSC_ZSTD;
  schunk->clevel = 1;
  fill(items, 7);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, CHUNK_BYTES), 1);
  CHECK_INT(schunk->chunksize, 2 * CHUNK_BYTES);
  check_chunk(schunk, 0, 7);
  REQUIRE(blosc2_schunk_get_chunk(schunk, 0, &chunk, &needs_free) > 32);
  CHECK_INT(chunk[2] >> 5, BLOSC_ZSTD_FORMAT);
  if (needs_free) {
    free(chunk);
  }
  blosc2_free_ctx(schunk->dctx);
  schunk->dctx = NULL;
  check_chunk(schunk, 0, 7);
  if (places[place].urlpath != NULL) {
    CHECK_INT(blosc2_schunk_free(schunk), 0);
    schunk = blosc2_schunk_open(places[place].urlpath);
    CHECK(schunk != NULL && schunk->compcode == BLOSC_ZSTD && schunk->clevel == 1);
  }
  release(place, schunk);
}

/* The packed form of 2015: two chunks of eight integers, stored raw. */
static void test_packed(void) {
  uint8_t packed[208] = {0};
  static const uint8_t head[16] = {2, 1, 0x13, 4, 32, 0, 0, 0, 32, 0, 0, 0, 48, 0, 0, 0};
  uint8_t items[32]; /* eight little-endian numbers, here as in the chunks */
  blosc2_schunk *schunk;
  FILE *file;
  int i, from_file;
  packed[6] = 5;
  packed[8] = 1;
  packed[16] = 2;
  packed[24] = 0xb0;
  packed[32] = 0xd0;
  packed[72] = 0xc0;
  packed[0xc0] = 0x60;
  packed[0xc8] = 0x90;
  memcpy(packed + 0x60, head, 16);
  memcpy(packed + 0x90, head, 16);
  for (i = 0; i < 8; i++) {
    packed[0x70 + 4 * i] = (uint8_t)(1 + i);
    packed[0xa0 + 4 * i] = (uint8_t)(101 + i);
  }
  file = fopen("test_schunk_packed.bin", "wb");
  if (CHECK(file != NULL)) {
    CHECK(fwrite(packed, 1, sizeof packed, file) == sizeof packed);
    fclose(file);
  }
  for (from_file = 0; from_file < 2; from_file++) {
    schunk = from_file ? blosc2_schunk_open("test_schunk_packed.bin")
                       : blosc2_schunk_from_buffer(packed, sizeof packed, false);
    if (CHECK(schunk != NULL)) {
      CHECK_INT(schunk->nchunks, 2);
      CHECK_INT(schunk->nbytes, 64);
      CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, items, 32), 32);
      CHECK_BYTES(items, packed + 0xa0, 32);
      CHECK_INT(blosc2_schunk_free(schunk), 0);
    }
  }
  packed[32] = 0xd1;
  CHECK(blosc2_schunk_from_buffer(packed, sizeof packed, false) == NULL);
  blosc2_remove_urlpath("test_schunk_packed.bin");
}

/* A context shows the size of the blocks that it made last: also after a slice was written. */
static void test_slice_blocksize(int place) {
  blosc2_schunk *schunk = make(place, 2);
  blosc2_cparams cparams;
  int32_t items[CHUNK_ITEMS];
  if (places[place].urlpath != NULL) {
    CHECK_INT(blosc2_schunk_free(schunk), 0);
    schunk = blosc2_schunk_open(places[place].urlpath);
    REQUIRE(schunk != NULL);
    CHECK_INT(blosc2_ctx_get_cparams(schunk->cctx, &cparams), 0);
    CHECK_INT(cparams.blocksize, 0);
  }
  fill(items, 5);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, 3, 10, items), 0);
  CHECK_INT(blosc2_ctx_get_cparams(schunk->cctx, &cparams), 0);
  CHECK_INT(cparams.blocksize, CHUNK_BYTES);
  release(place, schunk);
}

int main(void) {
  int place, to;
  blosc2_init();
  CHECK_INT(blosc2_schunk_free(NULL), 0);
  CHECK_INT(blosc2_schunk_refresh(NULL), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(blosc2_remove_dir(NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_remove_dir("test_schunk_missing"), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_rename_urlpath(NULL, NULL), 0);
  test_packed();
  for (place = 0; place < NPLACES; place++) {
    test_fields(place);
    test_chunks(place);
    test_slices(place);
    test_metalayers(place);
    test_buffers(place);
    test_copies_shuffled_otherwise(place);
    test_special(place);
    test_assignments(place);
    test_slice_blocksize(place);
    for (to = 0; to < NPLACES; to++) {
      test_copies(place, to);
    }
  }
  blosc2_destroy();
  return test_end();
}
