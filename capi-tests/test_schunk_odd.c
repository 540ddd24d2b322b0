/* Odd uses of super-chunks, in which programs for the C library must see what they see with that. */

#define NAME "test_schunk_odd"
#include "schunks.h"

/* A copy made from a buffer shows the block size of its chunks, and is compressed and stored with that of the frame. */
static void copies_of_buffers_keep_the_block_size_of_the_frame(int place) {
  int32_t items[ITEMS];
  uint8_t *cframe, *again;
  bool needs_free, again_needs_free;
  int64_t len;
  blosc2_schunk *copy, *schunk = make(place, 2);
  fill(items, 2);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, 80), 3);
  len = blosc2_schunk_to_buffer(schunk, &cframe, &needs_free);
  REQUIRE(len > 0);
  copy = blosc2_schunk_from_buffer(cframe, len, true);
  if (CHECK(copy != NULL)) {
    blosc2_cparams *cparams;
    CHECK_INT(copy->blocksize, 0); /* they differ */
    CHECK_INT(blosc2_schunk_to_buffer(copy, &again, &again_needs_free), len);
    CHECK(again_needs_free);
    if (place != 1) { /* the header of a frame in memory tells its own numbers of threads and block size */
      CHECK_INT(copy->storage->cparams->blocksize, 80);
      CHECK_BYTES(again, cframe, (size_t)len);
    }
    free(again);
    REQUIRE_INT(blosc2_schunk_get_cparams(copy, &cparams), 0);
    CHECK_INT(cparams->blocksize, copy->blocksize);
    free(cparams);
    blosc2_schunk_free(copy);
  }
  if (needs_free) {
    free(cframe);
  }
  release(place, schunk);

  /* Chunks of one block size, none asked for. */
  schunk = make(place, 2);
  schunk->storage->cparams->blocksize = 0;
  blosc2_free_ctx(schunk->cctx);
  schunk->cctx = blosc2_create_cctx(*schunk->storage->cparams);
  len = blosc2_schunk_to_buffer(schunk, &cframe, &needs_free);
  copy = blosc2_schunk_from_buffer(cframe, len, true);
  if (CHECK(copy != NULL)) {
    CHECK_INT(copy->blocksize, BYTES);
    CHECK_INT(copy->storage->cparams->blocksize, 0);
    CHECK_INT(blosc2_schunk_append_buffer(copy, items, BYTES), 3);
    blosc2_schunk_free(copy);
  }
  if (needs_free) {
    free(cframe);
  }
  release(place, schunk);
}

/* An empty buffer at the end of a list of chunks leaves slices possible. Frames cannot count such a chunk unless the sizes
 * are variable. */
static void empty_chunks_at_the_end(int place) {
  int32_t items[ITEMS], wanted[ITEMS];
  bool framed = place != 0;
  blosc2_schunk *schunk = make(place, 2);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, 0), 3);
  CHECK_INT(schunk->nchunks, 3);
  CHECK_INT(schunk->nbytes, 2 * BYTES);
  CHECK_INT(schunk->chunksize, framed ? 0 : BYTES);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 2, items, BYTES), 0);
  if (!framed) {
    uint8_t *cframe;
    bool needs_free;
    int64_t len;
    blosc2_schunk *copy;
    fill(wanted, 1);
    CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, ITEMS + 7, 2 * ITEMS, items), 0);
    CHECK_BYTES(items, wanted + 7, (ITEMS - 7) * sizeof items[0]);
    CHECK(blosc2_schunk_get_slice_buffer(schunk, ITEMS, 2 * ITEMS + 1, items) < 0);
    len = blosc2_schunk_to_buffer(schunk, &cframe, &needs_free);
    copy = blosc2_schunk_from_buffer(cframe, len, false);
    if (CHECK(copy != NULL)) {
      CHECK_INT(copy->nchunks, 3);
      CHECK_INT(blosc2_schunk_decompress_chunk(copy, 1, items, BYTES), BYTES);
      CHECK_BYTES(items, wanted, BYTES);
      blosc2_schunk_free(copy);
    }
    free(cframe);
    /* A full chunk behind it would not be where slices look for it. */
    fill(items, 2);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 4);
    CHECK_INT(schunk->chunksize, 0);
  }
  release(place, schunk);
}

/* What is written to a file that somebody removed would be lost: that is an error, and the handle stays as it was. */
static void files_that_are_gone_are_not_written(int place) {
  int32_t items[ITEMS], wanted[ITEMS];
  int64_t order[3] = {2, 1, 0};
  blosc2_schunk *schunk = make(place, 3); /* it has the file open for writing */
  bool readable = place == 2;             /* through the open handle; directories have one file per chunk */
  fill(items, 3);
  fill(wanted, 1);
  CHECK_INT(blosc2_remove_urlpath(places[place].urlpath), 0);
  CHECK(blosc2_schunk_append_buffer(schunk, items, BYTES) < 0);
  CHECK(blosc2_schunk_delete_chunk(schunk, 0) < 0);
  CHECK_INT(blosc2_schunk_reorder_offsets(schunk, order), BLOSC2_ERROR_FILE_OPEN);
  CHECK(blosc2_vlmeta_add(schunk, "layer", (uint8_t *)"x", 1, NULL) < 0);
  CHECK_INT(schunk->nchunks, 3);
  CHECK_INT(schunk->nbytes, 3 * BYTES);
  CHECK_INT(schunk->nvlmetalayers, 0);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, items, BYTES), readable ? BYTES : BLOSC2_ERROR_FILE_OPEN);
  if (readable) {
    CHECK_BYTES(items, wanted, BYTES);
  }
  /* What is wrong with the request comes first. */
  CHECK_INT(blosc2_vlmeta_update(schunk, "layer", (uint8_t *)"x", 1, NULL), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_vlmeta_delete(schunk, "layer"), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_meta_update(schunk, "layer", (uint8_t *)"x", 1), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_meta_add(schunk, "layer", (uint8_t *)"x", 1), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  CHECK(blosc2_schunk_open(places[place].urlpath) == NULL);
}

/* Bits 4 to 6 of byte 31 of a chunk name a special value; 5 to 7 are none. */
static void unknown_special_values(int place) {
  uint8_t chunk[BYTES + BLOSC2_MAX_OVERHEAD], *lazy;
  int32_t items[ITEMS];
  bool needs_free;
  blosc2_schunk *schunk = make(place, 1);
  int kind;
  fill(items, 1);
  CHECK(blosc2_compress_ctx(schunk->cctx, items, BYTES, chunk, sizeof chunk) > 0);
  for (kind = 5; kind < 8; kind++) {
    chunk[31] = (uint8_t)(kind << 4);
    CHECK_INT(blosc2_schunk_append_chunk(schunk, chunk, true), 2);
    CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, items, BYTES), BLOSC2_ERROR_DATA);
    CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, ITEMS + 1, ITEMS + 2, items), BLOSC2_ERROR_FAILURE);
    if (places[place].urlpath != NULL) {
      CHECK_INT(blosc2_schunk_get_lazychunk(schunk, 1, &lazy, &needs_free), BLOSC2_ERROR_INVALID_HEADER);
    }
    CHECK_INT(blosc2_schunk_delete_chunk(schunk, 1), 1);
  }
  release(place, schunk);
}

/* Metalayers stay where they are in memory as long as they are there. */
static void metalayers_stay_where_they_are(int place) {
  blosc2_schunk *schunk = make(place, 0);
  blosc2_metalayer *fixed, *layer;
  uint8_t *content;
  char *name;
  CHECK_INT(blosc2_meta_add(schunk, "fixed", (uint8_t *)"abc", 3), 0);
  fixed = schunk->metalayers[0];
  content = fixed->content;
  CHECK_INT(blosc2_meta_add(schunk, "another", (uint8_t *)"abc", 3), 1);
  CHECK_INT(blosc2_meta_update(schunk, "fixed", (uint8_t *)"x", 1), 0);
  CHECK(schunk->metalayers[0] == fixed && fixed->content == content);
  CHECK_INT(fixed->content_len, 3);
  CHECK_BYTES(content, "xbc", 3);
  CHECK_INT(blosc2_vlmeta_add(schunk, "first", (uint8_t *)"1", 1, NULL), 0);
  CHECK_INT(blosc2_vlmeta_add(schunk, "second", (uint8_t *)"2", 1, NULL), 1);
  CHECK_INT(blosc2_vlmeta_add(schunk, "third", (uint8_t *)"3", 1, NULL), 2);
  layer = schunk->vlmetalayers[2];
  name = layer->name;
  CHECK_INT(blosc2_vlmeta_update(schunk, "third", (uint8_t *)"longer than before", 18, NULL), 2);
  CHECK(schunk->vlmetalayers[2] == layer && layer->name == name);
  CHECK_INT(blosc2_vlmeta_delete(schunk, "first"), 2);
  CHECK_STR(schunk->vlmetalayers[0]->name, "second");
  CHECK(schunk->vlmetalayers[1] == layer && layer->name == name);
  CHECK_STR(name, "third");
  CHECK_INT(schunk->nvlmetalayers, 2);
  release(place, schunk);
}

/* The members at the front of what `blosc2_schunk.frame` points to, which tests of the C library read. */
typedef struct {
  char *urlpath;
  uint8_t *cframe;
  bool avoid_cframe_free;
  uint8_t *coffsets;
  bool coffsets_needs_free;
  int64_t len;
} frame_front;

static void frames_show_their_path_and_owner(int place) {
  blosc2_schunk *schunk = make(place, 1);
  frame_front *frame = (frame_front *)schunk->frame;
  const char *path = places[place].urlpath;
  char url[100];
  if (path == NULL) {
    if (CHECK(frame != NULL)) {
      CHECK(frame->urlpath == NULL && frame->cframe != NULL && !frame->avoid_cframe_free);
      blosc2_schunk_avoid_cframe_free(schunk, true);
      CHECK(frame->avoid_cframe_free);
      blosc2_schunk_avoid_cframe_free(schunk, false);
      CHECK(!frame->avoid_cframe_free);
    }
    blosc2_schunk_free(schunk);
    return;
  }
  CHECK_STR(frame->urlpath, path);
  CHECK_INT(frame->len, blosc2_schunk_frame_len(schunk));
  blosc2_schunk_free(schunk);
  snprintf(url, sizeof url, "file:///%s%s", path, places[place].contiguous ? "" : "/");
  schunk = blosc2_schunk_open(url);
  if (CHECK(schunk != NULL)) {
    CHECK_STR(schunk->storage->urlpath, url);
    CHECK_STR(((frame_front *)schunk->frame)->urlpath, path);
    blosc2_schunk_free(schunk);
  }
  blosc2_remove_urlpath(path);
}

/* Copies are described by the context, if a client gave the super-chunk another. */
static void headers_of_copies_are_those_of_the_context(int place) {
  blosc2_schunk *schunk = make(place, 1);
  blosc2_cparams cparams = *schunk->storage->cparams;
  uint8_t *cframe;
  bool needs_free;
  cparams.compcode = BLOSC_ZSTD;
  cparams.clevel = 7;
  cparams.splitmode = BLOSC_ALWAYS_SPLIT;
  cparams.filters[5] = BLOSC_BITSHUFFLE;
  blosc2_free_ctx(schunk->cctx);
  schunk->cctx = blosc2_create_cctx(cparams);
  REQUIRE(blosc2_schunk_to_buffer(schunk, &cframe, &needs_free) > 0);
  if (CHECK(needs_free == (place != 1)) && needs_free) {
    CHECK_INT(cframe[0x1b], 7 << 4 | BLOSC_ZSTD);
    CHECK_INT(cframe[0x1c], BLOSC_ALWAYS_SPLIT - 1);
    CHECK_INT(cframe[0x4c], BLOSC_BITSHUFFLE);
    free(cframe);
  }
  release(place, schunk);
}

/* The block size that a copy was compressed with is in the header of a frame made from it, although none was asked for. */
static void copies_know_the_block_size_that_they_were_made_with(int place) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk = make(place, 2), *copy;
  blosc2_cparams cparams = *schunk->storage->cparams;
  uint8_t *cframe;
  bool needs_free;
  cparams.clevel = 9;
  storage.cparams = &cparams;
  copy = blosc2_schunk_copy(schunk, &storage);
  if (CHECK(copy != NULL)) {
    CHECK_INT(copy->blocksize, 0);
    REQUIRE(blosc2_schunk_to_buffer(copy, &cframe, &needs_free) > 0 && needs_free);
    CHECK_INT(cframe[0x37] << 8 | cframe[0x38], BYTES);
    free(cframe);
    blosc2_schunk_free(copy);
  }
  release(place, schunk);
}

/* An empty chunk at the end, which cannot be read lazily from files, is copied with the others. */
static void copies_that_end_with_an_empty_chunk(int place) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk = make(0, 2), *copy;
  blosc2_cparams cparams = *schunk->storage->cparams;
  const int32_t nothing = 0;
  REQUIRE_INT(blosc2_schunk_append_buffer(schunk, &nothing, 0), 3);
  cparams.clevel = 9;
  storage.cparams = &cparams;
  storage.contiguous = places[place].contiguous;
  storage.urlpath = (char *)places[place].urlpath;
  blosc2_remove_urlpath(storage.urlpath);
  copy = blosc2_schunk_copy(schunk, &storage);
  if (CHECK(copy != NULL)) {
    CHECK_INT(copy->nchunks, 3);
    release(place, copy);
  }
  release(0, schunk);
}

/* Contexts know items of more than 255 bytes as bytes; copies know them as they are. */
static void copies_keep_large_items(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  uint8_t items[3000], *cframe;
  bool needs_free;
  blosc2_schunk *copy, *schunk;
  cparams.typesize = 300;
  storage.cparams = &cparams;
  schunk = blosc2_schunk_new(&storage);
  memset(items, 7, sizeof items);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, sizeof items), 1);
  storage.cparams = NULL;
  copy = blosc2_schunk_copy(schunk, &storage);
  if (CHECK(copy != NULL)) {
    CHECK_INT(copy->typesize, 300);
    CHECK_INT(blosc2_schunk_get_slice_buffer(copy, 9, 10, items), 0);
    blosc2_schunk_free(copy);
  }
  REQUIRE(blosc2_schunk_to_buffer(schunk, &cframe, &needs_free) > 0);
  CHECK_INT(cframe[0x32] << 8 | cframe[0x33], 300);
  free(cframe);
  blosc2_schunk_free(schunk);
}

/* Blocks of large items may end within one: read by number, it is whole all the same. */
static void broken_items(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  const int64_t numbers[6] = {199, 3, 0, 3, 100, 13};
  uint8_t *items = test_make_data(TEST_FLOATS, 60000), got[6 * 300];
  blosc2_schunk *schunk;
  int i;
  cparams.typesize = 300;
  cparams.blocksize = 1000;
  storage.cparams = &cparams;
  schunk = blosc2_schunk_new(&storage);
  REQUIRE(schunk != NULL);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, 30000), 1);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items + 30000, 30000), 2);
  CHECK_INT(schunk->blocksize, 1000);
  CHECK_INT(blosc2_schunk_get_sparse_buffer(schunk, 6, numbers, got), 0);
  for (i = 0; i < 6; i++) {
    CHECK_BYTES(got + 300 * i, items + 300 * numbers[i], 300);
  }
  blosc2_schunk_free(schunk);
  free(items);
}

/* Chunks of variable-length blocks are copied as they are, whatever the parameters. */
static void copies_of_vl_blocks(void) {
  const void *blocks[2] = {"one", "two and more"};
  int32_t sizes[2] = {3, 12};
  uint8_t chunk[200];
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *copy, *schunk = make(0, 0);
  int i;
  CHECK(blosc2_vlcompress_ctx(schunk->cctx, blocks, sizes, 2, chunk, sizeof chunk) > 0);
  for (i = 0; i < 3; i++) {
    CHECK_INT(blosc2_schunk_append_chunk(schunk, chunk, true), i + 1);
  }
  cparams.clevel = 9;
  storage.cparams = &cparams;
  copy = blosc2_schunk_copy(schunk, &storage);
  if (CHECK(copy != NULL)) {
    CHECK_INT(copy->nchunks, 3);
    CHECK_INT(copy->current_nchunk, 2);
    CHECK_INT(copy->cbytes, schunk->cbytes);
    blosc2_schunk_free(copy);
  }
  blosc2_schunk_free(schunk);
}

/* Chunks that a super-chunk has lent may be stored in it again, though they move when it grows. */
static void lent_chunks_are_stored_again(int place) {
  enum { LARGE = 200000 };
  blosc2_schunk *schunk = make(place, 0);
  uint8_t *data = test_make_data(TEST_NOISE, LARGE), *back = (uint8_t *)test_alloc(LARGE);
  int64_t i;
  CHECK_INT(blosc2_schunk_append_buffer(schunk, data, LARGE), 1);
  for (i = 0; i < 8; i++) {
    uint8_t *chunk;
    bool needs_free;
    CHECK(blosc2_schunk_get_chunk(schunk, i / 2, &chunk, &needs_free) > LARGE);
    switch (i % 3) {
      case 0:
        CHECK(blosc2_schunk_append_chunk(schunk, chunk, true) > 0);
        break;
      case 1:
        CHECK(blosc2_schunk_insert_chunk(schunk, 0, chunk, true) > 0);
        break;
      default:
        CHECK(blosc2_schunk_update_chunk(schunk, i / 2, chunk, true) > 0);
        break;
    }
    if (needs_free) {
      free(chunk);
    }
  }
  CHECK_INT(schunk->nchunks, 7);
  for (i = 0; i < schunk->nchunks; i++) {
    memset(back, 0, LARGE);
    CHECK_INT(blosc2_schunk_decompress_chunk(schunk, i, back, LARGE), LARGE);
    CHECK_BYTES(back, data, LARGE);
  }
  free(data);
  free(back);
  release(place, schunk);
}

/* Lazy chunks that somebody has edited: the trailer tells where the chunk is and how long its blocks are. */
static void edited_lazy_chunks(int place) {
  static const struct {
    int clevel, at; /* from the trailer on */
    int32_t value;
    int expected_file, expected_dir;
  } cases[] = {
      {5, 0, 0, BYTES, BYTES},
      {5, 0, 99, BYTES, BLOSC2_ERROR_FILE_OPEN},
      {5, 8, -1, BLOSC2_ERROR_INVALID_HEADER, BYTES},
      {0, 12, BYTES, BYTES, BYTES},
      {0, 12, 0, BLOSC2_ERROR_INVALID_HEADER, BLOSC2_ERROR_INVALID_HEADER},
      {0, 12, -1, BLOSC2_ERROR_INVALID_HEADER, BLOSC2_ERROR_INVALID_HEADER},
      {0, 12, 2 * BYTES, BLOSC2_ERROR_INVALID_HEADER, BLOSC2_ERROR_INVALID_HEADER},
  };
  size_t i;
  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    blosc2_schunk *schunk = make(place, 0);
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_context *cctx, *dctx;
    int32_t items[ITEMS], back[ITEMS];
    uint8_t chunk[BYTES + BLOSC2_MAX_OVERHEAD], *lazy;
    bool needs_free;
    int size, byte;
    cparams.typesize = 4;
    cparams.clevel = (uint8_t)cases[i].clevel;
    cparams.blocksize = BYTES;
    cctx = blosc2_create_cctx(cparams);
    fill(items, 1);
    CHECK(blosc2_compress_ctx(cctx, items, BYTES, chunk, sizeof chunk) > 0);
    blosc2_free_ctx(cctx);
    CHECK_INT(blosc2_schunk_append_chunk(schunk, chunk, true), 1);
    size = blosc2_schunk_get_lazychunk(schunk, 0, &lazy, &needs_free);
    if (CHECK_INT(size, 32 + 4 + 12 + 4)) {
      for (byte = 0; byte < 4; byte++) {
        lazy[36 + cases[i].at + byte] = (uint8_t)((uint32_t)cases[i].value >> (8 * byte));
      }
      dparams.schunk = schunk;
      dctx = blosc2_create_dctx(dparams);
      CHECK_INT(blosc2_decompress_ctx(dctx, lazy, size, back, BYTES),
                places[place].contiguous ? cases[i].expected_file : cases[i].expected_dir);
      CHECK_INT(blosc2_getitem_ctx(dctx, lazy, size, 3, 0, back, BYTES), 0);
      blosc2_free_ctx(dctx);
    }
    if (needs_free) {
      free(lazy);
    }
    CHECK_INT(blosc2_schunk_free(schunk), 0);
  }
  blosc2_remove_urlpath(places[place].urlpath);
}

/* Lazy chunks have no data to store. */
static void lazy_chunks_are_not_stored(int place) {
  blosc2_schunk *schunk = make(place, 2);
  uint8_t *lazy;
  bool needs_free;
  REQUIRE(blosc2_schunk_get_lazychunk(schunk, 0, &lazy, &needs_free) > 0);
  CHECK_INT(blosc2_schunk_append_chunk(schunk, lazy, true), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_insert_chunk(schunk, 0, lazy, true), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_update_chunk(schunk, 1, lazy, true), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(schunk->nchunks, 2);
  if (needs_free) {
    free(lazy);
  }
  release(place, schunk);
}

/* A super-chunk in memory of which the client took chunk `nchunk`. */
static blosc2_schunk *make_without(int nchunk) {
  blosc2_schunk *schunk = make(0, 3);
  free(schunk->data[nchunk]);
  schunk->data[nchunk] = NULL;
  return schunk;
}

/* Where the C library crashes, there is an error. */
static void missing_chunks_are_not_read(void) {
  int32_t items[3 * ITEMS], size;
  int64_t coords[] = {ITEMS + 1, ITEMS + 50};
  uint8_t *chunk = (uint8_t *)items;
  bool needs_free = true;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk = make_without(1);
  CHECK_INT(blosc2_schunk_get_chunk(schunk, 1, &chunk, &needs_free), 0);
  CHECK(chunk == NULL && !needs_free);
  CHECK_INT(schunk->current_nchunk, 1);
  chunk = (uint8_t *)items;
  CHECK_INT(blosc2_schunk_get_lazychunk(schunk, 1, &chunk, &needs_free), 0);
  CHECK(chunk == NULL && !needs_free);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, items, BYTES), 0);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, ITEMS, 2 * ITEMS, items), BLOSC2_ERROR_FAILURE);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, ITEMS + 1, ITEMS + 2, items), BLOSC2_ERROR_FAILURE);
  CHECK_INT(blosc2_schunk_get_sparse_buffer(schunk, 2, coords, items), BLOSC2_ERROR_FAILURE);
  CHECK_INT(blosc2_schunk_get_vlblock(schunk, 1, 0, &chunk, &size), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, ITEMS + 1, ITEMS + 2, items), BLOSC2_ERROR_FAILURE);
  CHECK_INT(blosc2_schunk_to_buffer(schunk, &chunk, &needs_free), BLOSC2_ERROR_SCHUNK_COPY);
  CHECK(blosc2_schunk_copy(schunk, &storage) == NULL);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 2, items, BYTES), BYTES);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
}

static void missing_chunks_are_replaced_moved_and_deleted(void) {
  int32_t items[3 * ITEMS], back[3 * ITEMS];
  int64_t order[] = {2, 1, 0};
  uint8_t *chunk;
  bool needs_free;
  int i;
  blosc2_schunk *schunk = make_without(1);
  for (i = 0; i < 3; i++) {
    fill(items + i * ITEMS, i);
  }
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, ITEMS - 5, 2 * ITEMS + 5, items + ITEMS - 5), 0);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 0, 3 * ITEMS, back), 0);
  CHECK_BYTES(back, items, sizeof back);
  CHECK_INT(blosc2_schunk_free(schunk), 0);

  schunk = make_without(1);
  REQUIRE(blosc2_schunk_get_chunk(schunk, 0, &chunk, &needs_free) > 0);
  CHECK_INT(blosc2_schunk_update_chunk(schunk, 1, chunk, true), 3);
  CHECK_INT(schunk->nbytes, 3 * BYTES);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, back, BYTES), BYTES);
  CHECK_BYTES(back, items, BYTES);
  CHECK_INT(blosc2_schunk_free(schunk), 0);

  schunk = make_without(2);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 4);
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 0), 3);
  CHECK_INT(blosc2_schunk_reorder_offsets(schunk, order), 0);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, back, BYTES), BYTES);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, back, BYTES), 0);
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 1), 2);
  CHECK_INT(schunk->nbytes, 2 * BYTES);
  CHECK(schunk->data[2] == NULL);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 0, 2 * ITEMS, back), 0);
  CHECK_BYTES(back, items, BYTES);
  CHECK_BYTES(back + ITEMS, items + ITEMS, BYTES);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
}

static int invert(blosc2_postfilter_params *params) {
  int32_t i;
  for (i = 0; i < params->size; i++) {
    params->output[i] = (uint8_t)~params->input[i];
  }
  return 0;
}

/* Copies hold what a postfilter makes of the chunks; unlike there, metalayers are not filtered. */
static void copies_are_filtered_and_metalayers_are_not(int place) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_postfilter_params postparams = {0};
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS, plain = BLOSC2_STORAGE_DEFAULTS;
  int32_t items[ITEMS], inverted[ITEMS], got[ITEMS], len = 0;
  blosc2_schunk *schunk, *copy;
  uint8_t *content = NULL;
  int i;
  cparams.typesize = 4;
  dparams.postfilter = invert;
  dparams.postparams = &postparams;
  storage.cparams = &cparams;
  storage.dparams = &dparams;
  storage.contiguous = places[place].contiguous;
  storage.urlpath = (char *)places[place].urlpath;
  blosc2_remove_urlpath(storage.urlpath);
  schunk = blosc2_schunk_new(&storage);
  REQUIRE(schunk != NULL);
  append_chunks(schunk, 2);
  fill(items, 1);
  for (i = 0; i < ITEMS; i++) {
    inverted[i] = ~items[i];
  }
  CHECK_INT(blosc2_vlmeta_add(schunk, "layer", (uint8_t *)items, BYTES, NULL), 0);
  CHECK_INT(blosc2_vlmeta_get(schunk, "layer", &content, &len), 0);
  if (CHECK_INT(len, BYTES)) {
    CHECK_BYTES(content, items, BYTES);
    free(content);
  }
  copy = blosc2_schunk_copy(schunk, &plain);
  REQUIRE(copy != NULL);
  CHECK_INT(blosc2_schunk_decompress_chunk(copy, 1, got, BYTES), BYTES);
  CHECK_BYTES(got, inverted, BYTES);
  CHECK_INT(blosc2_vlmeta_get(copy, "layer", &content, &len), 0);
  if (CHECK_INT(len, BYTES)) {
    CHECK_BYTES(content, items, BYTES);
    free(content);
  }
  CHECK_INT(blosc2_schunk_free(copy), 0);
  release(place, schunk);
}

int main(void) {
  int place;
  blosc2_init();
  for (place = 0; place < NPLACES; place++) {
    copies_of_buffers_keep_the_block_size_of_the_frame(place);
    empty_chunks_at_the_end(place);
    unknown_special_values(place);
    metalayers_stay_where_they_are(place);
    headers_of_copies_are_those_of_the_context(place);
    copies_know_the_block_size_that_they_were_made_with(place);
    copies_that_end_with_an_empty_chunk(place);
    lent_chunks_are_stored_again(place);
    copies_are_filtered_and_metalayers_are_not(place);
    if (place != 0) {
      frames_show_their_path_and_owner(place);
    }
    if (places[place].urlpath != NULL) {
      files_that_are_gone_are_not_written(place);
      edited_lazy_chunks(place);
      lazy_chunks_are_not_stored(place);
    }
  }
  copies_keep_large_items();
  broken_items();
  copies_of_vl_blocks();
  missing_chunks_are_not_read();
  missing_chunks_are_replaced_moved_and_deleted();
  blosc2_destroy();
  return test_end();
}
