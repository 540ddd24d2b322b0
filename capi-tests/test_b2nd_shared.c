/* Arrays that several handles share, and what must not come along from an array into another one. */

#include "arrays.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH "test_b2nd_shared.b2nd"
#define OTHER "test_b2nd_shared_other.b2nd"
#define SIDE 40
#define COUNT (SIDE * SIDE)

static const int64_t square[2] = {SIDE, SIDE};
static const int32_t square_chunk[2] = {20, 20}, square_block[2] = {10, 10};

/* Parameters for a square array. */
static b2nd_context_t *make_square_ctx(bool contiguous, const char *urlpath, int32_t typesize, uint8_t clevel) {
  static blosc2_cparams cparams;
  static blosc2_dparams dparams;
  const struct place place = {contiguous, urlpath};
  cparams = blosc2_get_blosc2_cparams_defaults();
  dparams = blosc2_get_blosc2_dparams_defaults();
  cparams.typesize = typesize;
  cparams.clevel = clevel;
  return make_ctx(&place, &cparams, &dparams, 2, square, square_chunk, square_block);
}

/* A square array of items that count from `first`. */
static b2nd_array_t *counting(bool contiguous, const char *urlpath, int32_t typesize, int32_t first) {
  const struct place place = {contiguous, urlpath};
  return make_counting(&place, typesize, first, 2, square, square_chunk, square_block);
}

/* Items that an array lost when it became smaller are not in slices of it, not even behind their edge. */
static void test_slices_after_shrinking(bool contiguous, const char *urlpath) {
  static const int64_t small[2] = {30, 30}, start[2] = {0, 0}, large[2] = {SIDE, SIDE};
  static int32_t items[COUNT];
  b2nd_context_t *ctx = make_square_ctx(contiguous, urlpath, 4, 5);
  b2nd_array_t *array = counting(false, NULL, 4, 1000), *slice = NULL;
  int i, strays = 0;
  CHECK_INT(b2nd_resize(array, small, NULL), 0);
  REQUIRE_INT(b2nd_get_slice(ctx, &slice, array, start, small), 0);
  CHECK_INT(b2nd_resize(slice, large, NULL), 0);
  CHECK_INT(b2nd_to_cbuffer(slice, items, sizeof items), 0);
  for (i = 0; i < COUNT; i++) {
    int kept = i / SIDE < 30 && i % SIDE < 30;
    strays += items[i] != (kept ? 1000 + i : 0);
  }
  CHECK_INT(strays, 0);
  b2nd_free(slice);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
}

/* Items that were never set are zero where they are compressed for the first time, not what the library had in memory. */
static void test_copies_of_uninitialised(void) {
  static int64_t items[COUNT];
  b2nd_context_t *ctx = make_square_ctx(false, NULL, 8, 5), *other = make_square_ctx(true, NULL, 8, 1);
  b2nd_array_t *secret = counting(false, NULL, 8, 123456), *copy = NULL, *array = NULL;
  int i, strays = 0;
  int64_t one = 1;
  /* Leaves the items in buffers of the library. */
  REQUIRE_INT(b2nd_copy(other, secret, &copy), 0);
  b2nd_free(copy);
  b2nd_free(secret);
  REQUIRE_INT(b2nd_uninit(ctx, &array), 0);
  REQUIRE_INT(b2nd_copy(other, array, &copy), 0);
  CHECK_INT(b2nd_to_cbuffer(copy, items, sizeof items), 0);
  for (i = 0; i < COUNT; i++) {
    strays += items[i] != 0;
  }
  CHECK_INT(strays, 0);
  b2nd_free(copy);
  CHECK_INT(blosc2_schunk_set_slice_buffer(array->sc, 7, 8, &one), 0);
  CHECK_INT(blosc2_schunk_decompress_chunk(array->sc, 0, items, sizeof items), 400 * 8);
  for (i = 0; i < 400; i++) {
    strays += items[i] != (i == 7);
  }
  CHECK_INT(strays, 0);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
  b2nd_free_ctx(other);
}

/* What another handle added is in copies that this one makes, also in the first. */
static void test_copies_after_changes(bool contiguous) {
  static const int64_t larger[2] = {2 * SIDE, SIDE};
  b2nd_array_t *array = counting(contiguous, PATH, 4, 0), *handles[4], *read = NULL;
  uint8_t *frame = NULL;
  int64_t len = 0;
  bool needs_free = false;
  blosc2_schunk *copy;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  int i;
  for (i = 0; i < 4; i++) {
    REQUIRE_INT(b2nd_open(PATH, &handles[i]), 0);
  }
  CHECK_INT(b2nd_resize(array, larger, NULL), 0);
  REQUIRE_INT(b2nd_to_cframe(handles[0], &frame, &len, &needs_free), 0);
  REQUIRE_INT(b2nd_from_cframe(frame, len, true, &read), 0);
  CHECK(read != NULL && read->shape[0] == 2 * SIDE && read->sc->nchunks == 8);
  b2nd_free(read);
  if (needs_free) {
    free(frame);
  }
  len = blosc2_schunk_to_buffer(handles[1]->sc, &frame, &needs_free);
  REQUIRE_INT(b2nd_from_cframe(frame, len, true, &read), 0);
  CHECK(read != NULL && read->shape[0] == 2 * SIDE && read->sc->nchunks == 8);
  b2nd_free(read);
  if (needs_free) {
    free(frame);
  }
  blosc2_remove_urlpath(OTHER);
  CHECK(blosc2_schunk_to_file(handles[2]->sc, OTHER) > 0);
  REQUIRE_INT(b2nd_open(OTHER, &read), 0);
  CHECK(read != NULL && read->shape[0] == 2 * SIDE && read->sc->nchunks == 8);
  b2nd_free(read);
  blosc2_remove_urlpath(OTHER);
  storage.contiguous = true;
  copy = blosc2_schunk_copy(handles[3]->sc, &storage);
  CHECK(copy != NULL && copy->nchunks == 8);
  blosc2_schunk_free(copy);
  for (i = 0; i < 4; i++) {
    b2nd_free(handles[i]);
  }
  b2nd_free(array);
  blosc2_remove_urlpath(PATH);
}

/* An array is joined with itself through a second handle, with locks: neither waits for the other. */
static void test_joining_with_locks(bool contiguous) {
  static int32_t items[2 * COUNT];
  b2nd_array_t *array, *other = NULL, *joined = NULL;
  int i, wrong = 0;
  setenv("BLOSC_LOCKING", "1", 1);
  array = counting(contiguous, PATH, 4, 0);
  REQUIRE_INT(b2nd_open(PATH, &other), 0);
  REQUIRE_INT(b2nd_concatenate(NULL, array, other, 0, false, &joined), 0);
  CHECK_INT(array->shape[0], 2 * SIDE);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  for (i = 0; i < 2 * COUNT; i++) {
    wrong += items[i] != i % COUNT;
  }
  CHECK_INT(wrong, 0);
  b2nd_free(other);
  b2nd_free(array);
  unsetenv("BLOSC_LOCKING");
  blosc2_remove_urlpath(PATH);
}

/* An array with items of another size takes the path: it is not changed as if its items were those of before. */
static void test_other_items_at_the_path(void) {
  static const int64_t larger[2] = {2 * SIDE, SIDE};
  static int64_t items[COUNT];
  b2nd_array_t *array = counting(true, PATH, 8, 0);
  uint8_t byte = 1;
  b2nd_free(counting(true, OTHER, 4, 5));
  CHECK_INT(rename(OTHER, PATH), 0);
  CHECK(blosc2_vlmeta_add(array->sc, "layer", &byte, 1, NULL) < 0);
  CHECK(b2nd_resize(array, larger, NULL) < 0);
  CHECK(b2nd_to_cbuffer(array, items, sizeof items) < 0);
  CHECK(blosc2_schunk_append_buffer(array->sc, items, 3200) < 0);
  CHECK(blosc2_schunk_decompress_chunk(array->sc, 0, items, sizeof items) < 0);
  b2nd_free(array);
  REQUIRE_INT(b2nd_open(PATH, &array), 0);
  CHECK_INT(b2nd_to_cbuffer(array, items, COUNT * 4), 0);
  CHECK_INT(((int32_t *)items)[COUNT - 1], 5 + COUNT - 1);
  CHECK(blosc2_vlmeta_exists(array->sc, "layer") < 0);
  b2nd_free(array);
  blosc2_remove_urlpath(PATH);
}

/* Length of a file. */
static int64_t file_length(const char *path) {
  FILE *file = fopen(path, "rb");
  long length;
  REQUIRE(file != NULL);
  CHECK_INT(fseek(file, 0, SEEK_END), 0);
  length = ftell(file);
  fclose(file);
  return length;
}

/* An array that grows in steps takes as much room as one that was written at once, while it is open and afterwards. */
static void test_growing_leaves_no_room(void) {
  enum { ITEMS = 100000, STEP = 1000 };
  int64_t *items = (int64_t *)test_alloc(ITEMS * sizeof(int64_t));
  int64_t *back = (int64_t *)test_alloc(ITEMS * sizeof(int64_t));
  int64_t lengths[3], i;
  int way;
  for (i = 0; i < ITEMS; i++) {
    items[i] = (i * i * 2654435761LL) >> 7;
  }
  for (way = 0; way < 3; way++) { /* at once, by slices, by appending */
    int64_t shape = way == 0 ? ITEMS : 0, start = 0, stop, size;
    int32_t chunkshape = 16384, blockshape = 256;
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
    b2nd_context_t *ctx;
    b2nd_array_t *array = NULL;
    cparams.typesize = 8;
    storage.cparams = &cparams;
    storage.contiguous = true;
    storage.urlpath = (char *)PATH;
    blosc2_remove_urlpath(PATH);
    ctx = b2nd_create_ctx(&storage, 1, &shape, &chunkshape, &blockshape, NULL, 0, NULL, 0);
    REQUIRE_INT(b2nd_zeros(ctx, &array), 0);
    for (; start < ITEMS; start = stop) {
      size = way == 0 ? ITEMS : STEP;
      stop = start + size;
      if (way == 2) {
        CHECK_INT(b2nd_append(array, items + start, size * 8, 0), 0);
        continue;
      }
      if (way == 1) {
        CHECK_INT(b2nd_resize(array, &stop, NULL), 0);
      }
      CHECK_INT(b2nd_set_slice_cbuffer(items + start, &size, size * 8, &start, &stop, array), 0);
    }
    CHECK_INT(b2nd_to_cbuffer(array, back, ITEMS * 8), 0);
    CHECK(memcmp(items, back, ITEMS * 8) == 0);
    lengths[way] = file_length(PATH);
    CHECK(lengths[way] <= lengths[0] + 4096);
    b2nd_free(array);
    CHECK_INT(file_length(PATH), lengths[way]);
    b2nd_free_ctx(ctx);
  }
  free(back);
  free(items);
}

/* What is copied from a mapped file goes to other files by way of plain calls. */
static void test_mapped_file_is_appended(void) {
  blosc2_stdio_mmap map = BLOSC2_STDIO_MMAP_DEFAULTS;
  blosc2_io io = BLOSC2_IO_DEFAULTS;
  blosc2_schunk *mapped, *copy;
  int64_t offset;
  b2nd_array_t *array = counting(true, PATH, 4, 0);
  b2nd_free(array);
  map.mode = "r";
  io.id = BLOSC2_IO_FILESYSTEM_MMAP;
  io.params = &map;
  mapped = blosc2_schunk_open_udio(PATH, &io);
  REQUIRE(mapped != NULL);
  remove(PATH ".copy");
  CHECK_INT(blosc2_schunk_append_file(mapped, PATH ".copy"), 0);
  offset = blosc2_schunk_append_file(mapped, PATH ".copy");
  CHECK(offset > 0);
  copy = blosc2_schunk_open_offset(PATH ".copy", offset);
  CHECK(copy != NULL && copy->nchunks == mapped->nchunks && copy->nbytes == mapped->nbytes);
  blosc2_schunk_free(copy);
  blosc2_schunk_free(mapped);
  remove(PATH ".copy");
}

/* Appends columns to the array at PATH and takes them away again, until it is killed. It lets others have the lock in between:
   the system does not take care of that. */
static void change_width(void) {
  static const int64_t narrow[2] = {SIDE, SIDE};
  static int32_t column[SIDE * 20];
  b2nd_array_t *array = NULL;
  int i;
  for (i = 0; i < SIDE * 20; i++) {
    column[i] = -1;
  }
  alarm(300);
  if (b2nd_open(PATH, &array) < 0) {
    _exit(1);
  }
  for (i = 0;; i++) {
    usleep(50);
    if (b2nd_append(array, column, sizeof column, 1) < 0 || (i % 4 == 3 && b2nd_resize(array, narrow, NULL) < 0)) {
      _exit(1);
    }
  }
}

/* Whether an array has the items of a square one in its first columns, and in all others -1. */
static bool is_square_and_more(b2nd_array_t *array) {
  static int32_t items[SIDE * (SIDE + 80)];
  const int64_t width = array->shape[1];
  int64_t i;
  if (width > SIDE + 80 || b2nd_to_cbuffer(array, items, sizeof items) < 0 || array->shape[1] != width) {
    return false;
  }
  for (i = 0; i < SIDE * width; i++) {
    if (items[i] != (i % width < SIDE ? i / width * SIDE + i % width : -1)) {
      return false;
    }
  }
  return true;
}

/* Reads and copies are right while a process with locks gives most chunks other numbers. */
static void test_reading_while_chunks_are_renumbered(bool contiguous) {
  static const int64_t start[2] = {0, 0};
  static int32_t items[COUNT];
  b2nd_context_t *ctx;
  b2nd_array_t *array, *made;
  pid_t writer;
  int n, i, wrong = 0;
  setenv("BLOSC_LOCKING", "1", 1);
  b2nd_free(counting(contiguous, PATH, 4, 0));
  ctx = make_square_ctx(false, NULL, 4, 5);
  writer = fork();
  if (writer == 0) {
    change_width();
  }
  REQUIRE_INT(b2nd_open(PATH, &array), 0);
  for (n = 0; n < (test_is_watched() ? 50 : 1500); n++) {
    made = NULL;
    wrong += b2nd_get_slice_cbuffer(array, start, square, items, square, sizeof items) != 0;
    for (i = 0; i < COUNT && items[i] == i; i++) {
    }
    wrong += i < COUNT;
    wrong += b2nd_copy(ctx, array, &made) != 0 || !is_square_and_more(made);
    if (made != NULL) {
      b2nd_free(made);
    }
    made = NULL;
    wrong += b2nd_get_slice(ctx, &made, array, start, square) != 0 || !is_square_and_more(made);
    if (made != NULL) {
      b2nd_free(made);
    }
  }
  CHECK_INT(wrong, 0);
  CHECK_INT(kill(writer, SIGKILL), 0);
  CHECK_INT(waitpid(writer, &i, 0), writer);
  CHECK(WIFSIGNALED(i)); /* it did not fail */
  b2nd_free(array);
  b2nd_free_ctx(ctx);
  unsetenv("BLOSC_LOCKING");
  blosc2_remove_urlpath(PATH);
}

int main(void) {
  int contiguous;
  blosc2_init();
  alarm(300); /* what hangs fails */
  test_slices_after_shrinking(false, NULL);
  test_slices_after_shrinking(true, PATH);
  test_copies_of_uninitialised();
  for (contiguous = 0; contiguous < 2; contiguous++) {
    test_copies_after_changes(contiguous != 0);
    test_joining_with_locks(contiguous != 0);
    test_reading_while_chunks_are_renumbered(contiguous != 0);
  }
  test_other_items_at_the_path();
  test_growing_leaves_no_room();
  test_mapped_file_is_appended();
  blosc2_remove_urlpath(PATH);
  blosc2_destroy();
  return test_end();
}
