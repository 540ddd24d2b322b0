/* Corners of super-chunks in which programs and files of the C library meet those of this one. */

#define NAME "test_schunk_alike"
#include "plain.h"
#include "schunks.h"

#include <b2nd.h>
#include <unistd.h>

#define OTHER_PATH NAME "_other.b2frame"

static void put(const char *path, const char *bytes) {
  FILE *file = fopen(path, "wb");
  if (CHECK(file != NULL)) {
    fputs(bytes, file);
    fclose(file);
  }
}

static long size_of(const char *path) {
  FILE *file = fopen(path, "rb");
  long size = -1;
  if (file != NULL) {
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    fclose(file);
  }
  return size;
}

/* Frames are made and opened at file:///path, but neither removed, renamed nor, once made, written there. */
static void urls_are_for_making_and_opening(int place) {
  const char *url = "file:///" OTHER_PATH;
  blosc2_schunk *schunk = make(place, 2);
  put(OTHER_PATH, "x");
  CHECK_INT(blosc2_remove_urlpath(url), 0);
  CHECK_INT(blosc2_remove_dir(url), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_rename_urlpath((char *)url, (char *)NAME "_gone"), BLOSC2_ERROR_FAILURE);
  CHECK_INT(size_of(OTHER_PATH), 1);
  remove(OTHER_PATH);
  CHECK_INT(blosc2_schunk_append_file(schunk, url), BLOSC2_ERROR_FILE_OPEN);
  if (place == 1) {
    CHECK_INT(blosc2_schunk_to_file(schunk, url), BLOSC2_ERROR_FILE_OPEN);
    CHECK_INT(size_of(OTHER_PATH), -1);
  } else {
    CHECK(blosc2_schunk_to_file(schunk, url) > 0);
    CHECK(size_of(OTHER_PATH) > 0);
  }
  remove(OTHER_PATH);
  release(place, schunk);
}

static void indexes_of_special_values_are_small(int place) {
  blosc2_schunk *schunk = make(place, 0);
  CHECK_INT(blosc2_schunk_fill_special(schunk, 1000000, BLOSC2_SPECIAL_ZERO, 4), 1000000);
  if (place != 0) {
    CHECK_INT(blosc2_schunk_frame_len(schunk), 172);
  }
  if (place == 3) {
    CHECK_INT(size_of(DIR_PATH "/chunks.b2frame"), 172);
  }
  release(place, schunk);
}

static void null_follows_the_last_chunk(void) {
  blosc2_schunk *schunk = make(0, 4);
  uint8_t *last = schunk->data[3];
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 1), 3);
  CHECK(schunk->data[2] == last && schunk->data[3] == NULL);
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 2), 2);
  CHECK(schunk->data[2] == NULL);
  release(0, schunk);
}

/* Also if the client gives no parameters. */
static void the_environment_compresses_metalayers(int place) {
  uint8_t content[400] = {1, 2, 3};
  blosc2_schunk *schunk = make(place, 0);
  uint8_t *stored;
  setenv("BLOSC_COMPRESSOR", "zstd", 1);
  CHECK_INT(blosc2_vlmeta_add(schunk, "added", content, sizeof content, NULL), 0);
  CHECK_INT(blosc2_vlmeta_add(schunk, "updated", content, 4, NULL), 1);
  CHECK_INT(blosc2_vlmeta_update(schunk, "updated", content, sizeof content, NULL), 1);
  setenv("BLOSC_COMPRESSOR", "no codec", 1);
  CHECK_INT(blosc2_vlmeta_add(schunk, "not added", content, sizeof content, NULL), BLOSC2_ERROR_CODEC_SUPPORT);
  unsetenv("BLOSC_COMPRESSOR");
  for (int i = 0; i < 2; i++) {
    stored = schunk->vlmetalayers[i]->content;
    CHECK_INT(stored[2] >> 5, BLOSC_ZSTD_FORMAT);
  }
  release(place, schunk);
}

static void headers_of_copies_tell_the_threads_of_the_environment(int place) {
  blosc2_schunk *schunk = make(place, 1);
  uint8_t *cframe;
  bool needs_free;
  setenv("BLOSC_NTHREADS", "3", 1);
  REQUIRE(blosc2_schunk_to_buffer(schunk, &cframe, &needs_free) > 0);
  unsetenv("BLOSC_NTHREADS");
  if (needs_free) {
    CHECK_INT(cframe[0x40], 3);
    CHECK_INT(cframe[0x43], 3);
    free(cframe);
  }
  release(place, schunk);
}

static void empty_boxes_are_in_no_chunks(void) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  int64_t shape[] = {10, 10}, start[] = {4, 5}, stop[] = {4, 6}, *numbers = shape;
  int32_t chunkshape[] = {4, 4}, blockshape[] = {2, 2};
  b2nd_context_t *context = b2nd_create_ctx(&storage, 2, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
  b2nd_array_t *array;
  REQUIRE_INT(b2nd_zeros(context, &array), 0);
  CHECK_INT(array->sc->current_nchunk, 8);
  CHECK_INT(blosc2_get_slice_nchunks(array->sc, start, stop, &numbers), 0);
  CHECK(numbers == NULL);
  b2nd_free(array);
  b2nd_free_ctx(context);
}

static void negative_sizes_make_no_frame(void) {
  blosc2_schunk *copy, *schunk = make(1, 1);
  uint8_t *cframe;
  bool needs_free;
  int64_t len = blosc2_schunk_to_buffer(schunk, &cframe, &needs_free);
  cframe[0x1e] = 0x80;
  copy = blosc2_schunk_from_buffer(cframe, len, true);
  CHECK(copy == NULL);
  blosc2_schunk_free(copy);
  release(1, schunk);
}

static void null_buffers_are_invalid(int place) {
  blosc2_schunk *schunk = make(place, 2);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, NULL, BYTES), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, NULL, BYTES), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 0, 10, NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, 0, 10, NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_reorder_offsets(schunk, NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(schunk->nchunks, 2);
  release(place, schunk);
}

/* Chunks that are refused were not worked on. */
static void refused_chunks_are_not_current(int place) {
  uint8_t garbage[64] = "this is no chunk at all, so it cannot be stored anywhere";
  blosc2_schunk *schunk = make(place, 3);
  CHECK_INT(schunk->current_nchunk, 2);
  CHECK(blosc2_schunk_update_chunk(schunk, 1, garbage, true) < 0);
  CHECK_INT(schunk->current_nchunk, 2);
  CHECK(blosc2_schunk_insert_chunk(schunk, 0, garbage, true) < 0);
  CHECK_INT(schunk->current_nchunk, 2);
  release(place, schunk);
}

static int64_t lock_counter(void) {
  FILE *file = fopen(FILE_PATH ".b2lock", "rb");
  int64_t counters[2] = {0, 0};
  if (file != NULL) {
    if (fread(counters, 1, sizeof counters, file) != sizeof counters) {
      counters[1] = 0;
    }
    fclose(file);
  }
  return counters[1];
}

/* Changes of chunks are counted even if they fail, those of metalayers only if they are possible. */
static void locks_count_what_the_c_library_counts(void) {
  uint8_t garbage[64] = "this is no chunk at all, so it cannot be stored anywhere", *chunk;
  bool needs_free;
  blosc2_schunk *schunk;
  int64_t count;
  setenv("BLOSC_LOCKING", "1", 1);
  schunk = make(2, 0);
  CHECK_INT(blosc2_meta_add(schunk, "fixed", garbage, 5), 0);
  CHECK(blosc2_meta_add(schunk, "fixed", garbage, 5) < 0);
  CHECK_INT(lock_counter(), 1);
  CHECK_INT(blosc2_schunk_fill_special(schunk, ITEMS, BLOSC2_SPECIAL_ZERO, BYTES), 1);
  CHECK_INT(blosc2_vlmeta_add(schunk, "layer", garbage, 5, NULL), 0);
  count = lock_counter();
  CHECK(blosc2_vlmeta_add(schunk, "layer", garbage, 5, NULL) < 0);
  CHECK(blosc2_vlmeta_update(schunk, "another", garbage, 5, NULL) < 0);
  CHECK(blosc2_vlmeta_delete(schunk, "another") < 0);
  CHECK_INT(lock_counter() - count, 0);
  REQUIRE(blosc2_schunk_get_chunk(schunk, 0, &chunk, &needs_free) > 0);
  CHECK_INT(blosc2_schunk_update_chunk(schunk, 7, chunk, true), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_insert_chunk(schunk, 7, chunk, true), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 7), BLOSC2_ERROR_INVALID_PARAM);
  CHECK(blosc2_schunk_append_chunk(schunk, garbage, true) < 0);
  CHECK_INT(lock_counter() - count, 4);
  if (needs_free) {
    free(chunk);
  }
  release(2, schunk);
  setenv("BLOSC_LOCKING", "0", 1);
  schunk = make(2, 1);
  CHECK_INT(lock_counter(), 0);
  unsetenv("BLOSC_LOCKING");
  release(2, schunk);
}

/* With locks, slices are written where the chunks of other handles are by now. */
static void slices_are_written_to_chunks_of_others(void) {
  int32_t items[ITEMS] = {0}, got[ITEMS];
  blosc2_schunk *schunk, *other;
  setenv("BLOSC_LOCKING", "1", 1);
  schunk = make(2, 1);
  other = blosc2_schunk_open(FILE_PATH);
  REQUIRE(other != NULL);
  fill(items, 7);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 2);
  items[3] = -5;
  CHECK_INT(blosc2_schunk_set_slice_buffer(other, ITEMS + 3, ITEMS + 4, items + 3), 0);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, got, BYTES), BYTES);
  CHECK_BYTES(got, items, BYTES);
  unsetenv("BLOSC_LOCKING");
  CHECK_INT(blosc2_schunk_free(other), 0);
  release(2, schunk);
}

/* The C library cannot open frames that begin with an empty chunk. */
static void frames_do_not_begin_with_empty_chunks(int place) {
  blosc2_schunk *schunk = make(place, 0);
  int32_t items[ITEMS] = {1, 2, 3};
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, 0), place == 0 ? 1 : BLOSC2_ERROR_CHUNK_APPEND);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), place == 0 ? 2 : 1);
  release(place, schunk);
}

/* Frames hold chunks of Blosc1 in a form that the C library does not misread. */
static void short_headers_keep_their_data(int place) {
  uint8_t chunk[16 + BYTES] = {2, 1, 0x12, 4}, back[BYTES], *stored;
  int32_t sizes[2] = {12, BYTES};
  bool needs_free;
  for (int i = 0; i < 2; i++) {
    blosc2_schunk *schunk = make(place, 0);
    int32_t nbytes = sizes[i];
    for (int j = 16; j < 16 + nbytes; j++) {
      chunk[j] = (uint8_t)(j * j);
    }
    chunk[31] = 0x10;
    for (int j = 0; j < 2; j++) {
      chunk[4 + 4 * j] = (uint8_t)nbytes;
      chunk[5 + 4 * j] = (uint8_t)(nbytes >> 8);
    }
    chunk[12] = (uint8_t)(nbytes + 16);
    chunk[13] = (uint8_t)((nbytes + 16) >> 8);
    CHECK_INT(blosc2_schunk_append_chunk(schunk, chunk, true), 1);
    CHECK_INT(blosc2_schunk_insert_chunk(schunk, 0, chunk, true), 2);
    CHECK_INT(blosc2_schunk_update_chunk(schunk, 1, chunk, true), 2);
    for (int nchunk = 0; nchunk < 2; nchunk++) {
      int cbytes = blosc2_schunk_get_chunk(schunk, nchunk, &stored, &needs_free);
      CHECK(place == 0 ? cbytes == nbytes + 16 : cbytes >= 32 && (stored[2] & 5) == 5);
      if (needs_free) {
        free(stored);
      }
      CHECK_INT(blosc2_schunk_decompress_chunk(schunk, nchunk, back, sizeof back), nbytes);
      CHECK_BYTES(back, chunk + 16, (size_t)nbytes);
    }
    release(place, schunk);
  }
}

/* A super-chunk of two chunks and a half, of four blocks each, whose context is to skip blocks. */
static blosc2_schunk *make_masked(int place, bool *mask, int nblocks) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_schunk *schunk;
  uint8_t data[4000];
  int i;
  cparams.typesize = 4;
  cparams.blocksize = 1000;
  schunk = make_empty(place, &cparams);
  for (i = 0; i < 4000; i++) {
    data[i] = (uint8_t)(1 + i % 7 + i / 1000);
  }
  CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 4000), 1);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 4000), 2);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 2000), 3);
  CHECK_INT(blosc2_set_maskout(schunk->dctx, mask, nblocks), 0);
  return schunk;
}

/* Which of `nblocks` blocks of 1000 bytes were written: a digit each. Makes the buffer as it was. */
static int written(uint8_t *buffer, int nblocks) {
  int i, digits = 0;
  for (i = 0; i < nblocks; i++) {
    digits = digits * 10 + (buffer[i * 1000 + 1] != 0);
  }
  memset(buffer, 0, (size_t)nblocks * 1000);
  return digits;
}

/* Reads a chunk with the super-chunk's context, which is where a mask was left. */
static int written_next(blosc2_schunk *schunk, uint8_t *buffer) {
  uint8_t *chunk;
  bool needs_free;
  int cbytes = blosc2_schunk_get_chunk(schunk, 0, &chunk, &needs_free);
  REQUIRE(cbytes > 0);
  CHECK_INT(blosc2_decompress_ctx(schunk->dctx, chunk, cbytes, buffer, 4000), 4000);
  if (needs_free) {
    free(chunk);
  }
  return written(buffer, 4);
}

static void masks_are_for_the_next_whole_chunk(int place) {
  static uint8_t buffer[10000];
  bool mask[] = {true, false, true, false, false};
  int64_t coords[] = {0, 5, 1300};
  blosc2_schunk *schunk = make_masked(place, mask, 4);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, buffer, 4000), 4000);
  CHECK_INT(written(buffer, 4), 101);
  CHECK_INT(written_next(schunk, buffer), 1111);

  CHECK_INT(blosc2_set_maskout(schunk->dctx, mask, 4), 0);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 500, 2500, buffer), 0);
  CHECK_INT(written(buffer, 8), 11010111);
  CHECK_INT(written_next(schunk, buffer), 1111);

  /* Parts of chunks, and single items, are read without it. */
  CHECK_INT(blosc2_set_maskout(schunk->dctx, mask, 4), 0);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 0, 999, buffer), 0);
  written(buffer, 4);
  CHECK_INT(blosc2_schunk_get_sparse_buffer(schunk, 3, coords, buffer), 0);
  written(buffer, 4);
  CHECK_INT(written_next(schunk, buffer), 101);

  /* Another number of blocks is an error, after which the mask is gone. */
  CHECK_INT(blosc2_set_maskout(schunk->dctx, mask, 3), 0);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, buffer, 4000), BLOSC2_ERROR_DATA);
  CHECK_INT(written_next(schunk, buffer), 1111);
  CHECK_INT(blosc2_set_maskout(schunk->dctx, mask, 5), 0);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 0, 1000, buffer), BLOSC2_ERROR_FAILURE);
  CHECK_INT(written_next(schunk, buffer), 1111);
  CHECK_INT(blosc2_set_maskout(schunk->dctx, mask, 4), 0);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 2, buffer, 4000), BLOSC2_ERROR_DATA);
  CHECK_INT(written_next(schunk, buffer), 1111);

  /* It waits for a call that finds a chunk and room for it. */
  CHECK_INT(blosc2_set_maskout(schunk->dctx, mask, 4), 0);
  CHECK(blosc2_schunk_decompress_chunk(schunk, 0, buffer, 3999) < 0);
  CHECK(blosc2_schunk_decompress_chunk(schunk, 3, buffer, 4000) < 0);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, buffer, 4000), 4000);
  CHECK_INT(written(buffer, 4), 101);
  release(place, schunk);
}

/* Whether a metalayer is there is asked before anything else of it is looked at. */
static void names_come_before_contents(int place) {
  blosc2_cparams cparams[3] = {BLOSC2_CPARAMS_DEFAULTS, BLOSC2_CPARAMS_DEFAULTS, BLOSC2_CPARAMS_DEFAULTS};
  uint8_t content[1000] = {1, 2, 3}, *back;
  int32_t len;
  int i;
  blosc2_schunk *schunk = make(place, 1);
  cparams[0].clevel = 10;
  cparams[1].compcode = 77;
  cparams[2].filters[5] = 20;
  CHECK_INT(blosc2_vlmeta_add(schunk, "there", content, 10, NULL), 0);
  for (i = 0; i < 3; i++) {
    CHECK_INT(blosc2_vlmeta_add(schunk, "there", content, 1000, &cparams[i]), BLOSC2_ERROR_INVALID_PARAM);
    CHECK_INT(blosc2_vlmeta_update(schunk, "none", content, 1000, &cparams[i]), BLOSC2_ERROR_NOT_FOUND);
    CHECK(blosc2_vlmeta_add(schunk, "new", content, 1000, &cparams[i]) < 0);
    CHECK(blosc2_vlmeta_update(schunk, "there", content, 1000, &cparams[i]) < 0);
  }
  CHECK_INT(blosc2_vlmeta_update(schunk, "none", content, 2000000000, NULL), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_vlmeta_add(schunk, "there", content, 2000000000, NULL), BLOSC2_ERROR_INVALID_PARAM);
  REQUIRE_INT(blosc2_vlmeta_get(schunk, "there", &back, &len), 0);
  CHECK_INT(len, 10);
  free(back);
  CHECK_INT(schunk->nvlmetalayers, 1);
  release(place, schunk);
}

/* What other handles of a frame did is known all the same. */
static void names_come_from_the_frame(void) {
  uint8_t content[10] = {1, 2, 3};
  blosc2_schunk *schunk = make(2, 1);
  blosc2_schunk *other = blosc2_schunk_open(FILE_PATH);
  CHECK_INT(blosc2_vlmeta_add(other, "there", content, 10, NULL), 0);
  CHECK_INT(blosc2_vlmeta_update(schunk, "there", content, 9, NULL), 0);
  CHECK_INT(blosc2_vlmeta_delete(other, "there"), 0);
  CHECK_INT(blosc2_vlmeta_add(schunk, "there", content, 8, NULL), 0);
  CHECK_INT(blosc2_schunk_free(other), 0);
  release(2, schunk);
}

/* Copies with a metalayer, which writes it to their header. A frame in memory is stored as it is: its header tells what the
 * last change wrote. */
static void stored_copies_keep_it(int place, blosc2_schunk *schunk) {
  int wanted = place == 1 ? -1 : schunk->chunksize;
  const char *path = NAME "_copy.b2frame";
  uint8_t *cframe;
  bool needs_free;
  blosc2_schunk *copy;
  int64_t len = blosc2_schunk_to_buffer(schunk, &cframe, &needs_free);
  copy = blosc2_schunk_from_buffer(cframe, len, true);
  if (CHECK(copy != NULL)) {
    CHECK_INT(copy->chunksize, wanted);
    blosc2_schunk_free(copy);
  }
  if (needs_free) {
    free(cframe);
  }
  for (int append = 0; append < 2; append++) {
    blosc2_remove_urlpath(path);
    CHECK(append ? blosc2_schunk_append_file(schunk, path) == 0 : blosc2_schunk_to_file(schunk, path) > 0);
    copy = blosc2_schunk_open(path);
    if (CHECK(copy != NULL)) {
      CHECK_INT(copy->chunksize, wanted);
      blosc2_schunk_free(copy);
    }
  }
  blosc2_remove_urlpath(path);
}

/* The client assigns the size of the chunks to come. */
static void copies_keep_a_preset_chunk_size(int place) {
  int32_t items[ITEMS] = {1, 2, 3};
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *copy, *schunk = make(place, 0);
  CHECK_INT(blosc2_meta_add(schunk, "late", (uint8_t *)items, 4), 0);
  schunk->chunksize = 2 * BYTES;
  for (int contiguous = 0; contiguous < 2; contiguous++) {
    storage.contiguous = contiguous != 0;
    copy = blosc2_schunk_copy(schunk, &storage);
    REQUIRE(copy != NULL);
    CHECK_INT(copy->chunksize, 2 * BYTES);
    CHECK_INT(blosc2_schunk_append_buffer(copy, items, BYTES), 1);
    CHECK_INT(copy->chunksize, 2 * BYTES);
    CHECK_INT(blosc2_schunk_free(copy), 0);
  }
  stored_copies_keep_it(place, schunk);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 1);
  CHECK_INT(schunk->chunksize, 2 * BYTES);
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 0), 0);
  schunk->chunksize = BYTES;
  copy = blosc2_schunk_copy(schunk, &storage);
  REQUIRE(copy != NULL);
  CHECK_INT(copy->chunksize, BYTES);
  CHECK_INT(blosc2_schunk_free(copy), 0);
  release(place, schunk);
}

enum { NOTING = 230 };

/* The chunks that the filter below decoded blocks of, one digit for each time that it was another one. */
static char noted[20];

static int note_current(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_dparams *dparams,
                        uint8_t id) {
  const char digit = (char)('0' + ((blosc2_schunk *)dparams->schunk)->current_nchunk);
  const size_t n = strlen(noted);
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(id);
  if (n + 1 < sizeof noted && (n == 0 || noted[n - 1] != digit)) {
    noted[n] = digit;
  }
  memcpy(dest, src, (size_t)length);
  return 0;
}

static void check_noted(const char *expected) {
  CHECK_STR(noted, expected);
  memset(noted, 0, sizeof noted);
}

/* Filters of the application may look up by the number of the chunk what it needs. */
static void filters_find_the_number_of_the_chunk(int place) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  int32_t read[4 * ITEMS], expected[ITEMS];
  blosc2_schunk *schunk;
  cparams.typesize = 4;
  cparams.filters[0] = NOTING;
  schunk = make_empty(place, &cparams);
  append_chunks(schunk, 4);
  memset(noted, 0, sizeof noted);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 2 * ITEMS + 1, 2 * ITEMS + 5, read), 0);
  check_noted("2");
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, ITEMS / 2, 3 * ITEMS + 5, read), 0);
  check_noted("0123");
  fill(expected, 2);
  CHECK(memcmp(read + ITEMS + ITEMS / 2, expected, BYTES) == 0);
  release(place, schunk);
}

static void filters_find_the_number_of_the_chunk_in_arrays(int place) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  int64_t shape[] = {20, 20}, start[] = {13, 5}, stop[] = {14, 15}, extent[] = {1, 10};
  int32_t chunkshape[] = {10, 10}, blockshape[] = {10, 10}, items[4 * ITEMS], read[4 * ITEMS];
  b2nd_context_t *context;
  b2nd_array_t *array;
  int i;
  for (i = 0; i < 4 * ITEMS; i++) {
    items[i] = i / 3;
  }
  cparams.typesize = 4;
  cparams.filters[0] = NOTING;
  storage.cparams = &cparams;
  storage.contiguous = places[place].contiguous;
  storage.urlpath = (char *)places[place].urlpath;
  blosc2_remove_urlpath(storage.urlpath);
  context = b2nd_create_ctx(&storage, 2, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
  REQUIRE_INT(b2nd_from_cbuffer(context, &array, items, sizeof items), 0);
  memset(noted, 0, sizeof noted);
  CHECK_INT(b2nd_get_slice_cbuffer(array, start, stop, read, extent, 10 * 4), 0);
  check_noted("23");
  CHECK(memcmp(read, items + 13 * 20 + 5, 10 * 4) == 0);
  CHECK_INT(b2nd_to_cbuffer(array, read, sizeof read), 0);
  check_noted("0123");
  CHECK_INT(array->sc->current_nchunk, 3);
  b2nd_free(array);
  b2nd_free_ctx(context);
  blosc2_remove_urlpath(storage.urlpath);
}

/* Programs that know the private struct look there whether the chunk that was decompressed last has a dictionary. */
static void contexts_tell_of_dictionaries(int place) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  static char text[1 << 16], read[1 << 16];
  blosc2_schunk *schunk;
  int32_t use_dict;
  int i;
  for (i = 0; i < (int)sizeof text; i++) {
    text[i] = "some words that come again "[(i % 1000) * (i % 1000) / 7 % 27];
  }
  cparams.typesize = 1;
  cparams.compcode = BLOSC_ZSTD;
  cparams.use_dict = 1;
  cparams.blocksize = 1 << 12;
  schunk = make_empty(place, &cparams);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, text, sizeof text), 1);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, text, 100), 2);
  for (i = 0; i < 4; i++) {
    CHECK_INT(blosc2_schunk_decompress_chunk(schunk, i % 2, read, sizeof read), i % 2 == 0 ? (int)sizeof text : 100);
    if (sizeof(void *) == 8) { /* with other pointers, it is elsewhere */
      memcpy(&use_dict, (const char *)schunk->dctx + 128, sizeof use_dict);
      CHECK_INT(use_dict, i % 2 == 0);
    }
  }
  release(place, schunk);
}

int main(void) {
  blosc2_filter filter = {NOTING, (char *)"noting", 1, plain_forward, note_current};
  int place;
  blosc2_init();
  CHECK_INT(blosc2_register_filter(&filter), 0);
  for (place = 0; place < NPLACES; place++) {
    urls_are_for_making_and_opening(place);
    indexes_of_special_values_are_small(place);
    the_environment_compresses_metalayers(place);
    headers_of_copies_tell_the_threads_of_the_environment(place);
    null_buffers_are_invalid(place);
    refused_chunks_are_not_current(place);
    frames_do_not_begin_with_empty_chunks(place);
    short_headers_keep_their_data(place);
    masks_are_for_the_next_whole_chunk(place);
    names_come_before_contents(place);
    copies_keep_a_preset_chunk_size(place);
    filters_find_the_number_of_the_chunk(place);
    filters_find_the_number_of_the_chunk_in_arrays(place);
    contexts_tell_of_dictionaries(place);
  }
  names_come_from_the_frame();
  null_follows_the_last_chunk();
  empty_boxes_are_in_no_chunks();
  negative_sizes_make_no_frame();
  locks_count_what_the_c_library_counts();
  slices_are_written_to_chunks_of_others();
  blosc2_destroy();
  return test_end();
}
