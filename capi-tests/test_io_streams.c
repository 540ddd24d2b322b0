/* Streams of a back-end of the application: one thread at a time uses each of them. */

#include <b2nd.h>
#include <pthread.h>
#include <unistd.h>

#include "test.h"

#define ITEMS 200000
#define BYTES (ITEMS * 4)
#define SIDE 500
#define PATH "test_io_streams.b2frame"
#define NTHREADS 4

/* A stream has a position, as a `FILE` has, and lends its only buffer. */
struct stream {
  FILE *file;
  int users;
  char *lent;
};

static struct {
  int open, opened, most, overlaps;
  int only_one; /* whether a second stream for reading is refused */
} seen;

static void *stream_open(const char *urlpath, const char *mode, void *params) {
  struct stream *stream;
  FILE *file;
  int open;
  (void)params;
  if (seen.only_one && strcmp(mode, "rb") == 0 && __atomic_load_n(&seen.open, __ATOMIC_SEQ_CST) > 0) {
    return NULL;
  }
  file = fopen(urlpath, mode);
  if (file == NULL) {
    return NULL;
  }
  stream = (struct stream *)test_alloc(sizeof *stream);
  memset(stream, 0, sizeof *stream);
  stream->file = file;
  open = __atomic_add_fetch(&seen.open, 1, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&seen.opened, 1, __ATOMIC_SEQ_CST);
  if (open > __atomic_load_n(&seen.most, __ATOMIC_SEQ_CST)) {
    __atomic_store_n(&seen.most, open, __ATOMIC_SEQ_CST);
  }
  return stream;
}

static FILE *enter(void *stream, int64_t position) {
  struct stream *this_one = (struct stream *)stream;
  if (__atomic_fetch_add(&this_one->users, 1, __ATOMIC_SEQ_CST) != 0) {
    __atomic_add_fetch(&seen.overlaps, 1, __ATOMIC_SEQ_CST);
  }
  fseek(this_one->file, (long)position, SEEK_SET);
  return this_one->file;
}
static void leave(void *stream) { __atomic_sub_fetch(&((struct stream *)stream)->users, 1, __ATOMIC_SEQ_CST); }

static int stream_close(void *stream) {
  struct stream *this_one = (struct stream *)stream;
  int code;
  enter(stream, 0);
  code = fclose(this_one->file);
  free(this_one->lent);
  free(this_one);
  __atomic_sub_fetch(&seen.open, 1, __ATOMIC_SEQ_CST);
  return code;
}
static int64_t stream_size(void *stream) {
  FILE *file = enter(stream, 0);
  int64_t size;
  fseek(file, 0, SEEK_END);
  size = ftell(file);
  leave(stream);
  return size;
}
static int64_t stream_write(const void *ptr, int64_t size, int64_t nitems, int64_t position, void *stream) {
  int64_t n = (int64_t)fwrite(ptr, (size_t)size, (size_t)nitems, enter(stream, position));
  leave(stream);
  return n;
}
static int64_t stream_read(void **ptr, int64_t size, int64_t nitems, int64_t position, void *stream) {
  FILE *file = enter(stream, position);
  int64_t n;
  usleep(100);
  n = (int64_t)fread(*ptr, (size_t)size, (size_t)nitems, file);
  leave(stream);
  return n;
}
static int64_t stream_lend(void **ptr, int64_t size, int64_t nitems, int64_t position, void *stream) {
  struct stream *this_one = (struct stream *)stream;
  FILE *file = enter(stream, position);
  int64_t n;
  free(this_one->lent);
  this_one->lent = (char *)test_alloc((size_t)(size * nitems));
  usleep(100);
  n = (int64_t)fread(this_one->lent, (size_t)size, (size_t)nitems, file);
  *ptr = this_one->lent;
  leave(stream);
  return n == nitems ? n : 0;
}
static int stream_truncate(void *stream, int64_t size) {
  FILE *file = enter(stream, 0);
  int code = fflush(file) == 0 ? ftruncate(fileno(file), (off_t)size) : -1;
  leave(stream);
  return code;
}
static int stream_destroy(void *params) {
  (void)params;
  return 0;
}

static void forget(void) {
  CHECK_INT(seen.open, 0);
  seen.opened = seen.most = seen.overlaps = 0;
}

/* What one operation did. */
static void check_streams(const char *operation, int nthreads) {
  if (!CHECK_INT(seen.overlaps, 0) || !CHECK(seen.most <= nthreads + 1)) {
    printf("%s: %d streams at once\n", operation, seen.most);
  }
  forget();
}

static int32_t items[2 * ITEMS], got[2 * ITEMS];

static void fill(void) {
  uint8_t *noise = test_make_data(TEST_NOISE, sizeof items);
  int i;
  memcpy(items, noise, sizeof items);
  for (i = 0; i < 2 * ITEMS; i++) {
    items[i] = i / 4 % 4 == 0 ? i : items[i];
  }
  free(noise);
}

static void test_schunk(blosc2_storage *storage, int nthreads) {
  blosc2_schunk *schunk;
  uint8_t *lazy;
  bool needs_free, masks[256];
  int nblocks = (BYTES + storage->cparams->blocksize - 1) / storage->cparams->blocksize;
  int i, length, block_items = storage->cparams->blocksize / 4;
  blosc2_remove_urlpath(PATH);
  schunk = blosc2_schunk_new(storage);
  if (!CHECK(schunk != NULL)) {
    return;
  }
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 1);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items + ITEMS, BYTES), 2);
  check_streams("append", nthreads);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, got, BYTES), BYTES);
  CHECK_BYTES(got, items + ITEMS, BYTES);
  if (nthreads == 1) {
    /* The frame, and in a directory the file of the chunk. */
    CHECK_INT(seen.opened, storage->contiguous ? 1 : 2);
  }
  check_streams("a chunk", nthreads);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 100, 300000, got), 0);
  CHECK_BYTES(got, items + 100, (300000 - 100) * 4);
  check_streams("a slice", nthreads);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, 100, 300000, items + 100), 0);
  check_streams("a slice written", nthreads);
  length = blosc2_schunk_get_lazychunk(schunk, 0, &lazy, &needs_free);
  REQUIRE(length > 0);
  memset(got, 0, BYTES);
  CHECK_INT(blosc2_decompress_ctx(schunk->dctx, lazy, length, got, BYTES), BYTES);
  CHECK_BYTES(got, items, BYTES);
  check_streams("a lazy chunk", nthreads);
  for (i = 0; i < nblocks; i++) {
    masks[i] = i % 2 == 0;
  }
  CHECK_INT(blosc2_set_maskout(schunk->dctx, masks, nblocks), 0);
  memset(got, 0, BYTES);
  CHECK(blosc2_decompress_ctx(schunk->dctx, lazy, length, got, BYTES) > 0);
  CHECK_BYTES(got + block_items, items + block_items, (size_t)block_items * 4);
  check_streams("every other block", nthreads);
  CHECK_INT(blosc2_getitem_ctx(schunk->dctx, lazy, length, 50000, 10, got, 40), 40);
  CHECK_BYTES(got, items + 50000, 40);
  if (needs_free) {
    free(lazy);
  }
  check_streams("items", nthreads);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  forget();
}

static void test_array(blosc2_storage *storage, int nthreads) {
  static const int64_t shape[2] = {SIDE, SIDE}, start[2] = {10, 10}, stop[2] = {490, 480}, size[2] = {480, 470};
  static const int32_t chunkshape[2] = {250, 250}, blockshape[2] = {50, 50};
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  int row, wrong = 0;
  blosc2_remove_urlpath(PATH);
  ctx = b2nd_create_ctx(storage, 2, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
  if (!CHECK_INT(b2nd_from_cbuffer(ctx, &array, items, SIDE * SIDE * 4), 0)) {
    return;
  }
  check_streams("an array made", nthreads);
  CHECK_INT(b2nd_to_cbuffer(array, got, SIDE * SIDE * 4), 0);
  CHECK_BYTES(got, items, SIDE * SIDE * 4);
  check_streams("an array", nthreads);
  CHECK_INT(b2nd_get_slice_cbuffer(array, start, stop, got, size, 480 * 470 * 4), 0);
  for (row = 0; row < 480; row++) {
    wrong += memcmp(got + row * 470, items + (row + 10) * SIDE + 10, 470 * 4) != 0;
  }
  CHECK_INT(wrong, 0);
  check_streams("a box", nthreads);
  CHECK_INT(b2nd_set_slice_cbuffer(got, size, 480 * 470 * 4, start, stop, array), 0);
  CHECK_INT(b2nd_to_cbuffer(array, got, SIDE * SIDE * 4), 0);
  CHECK_BYTES(got, items, SIDE * SIDE * 4);
  check_streams("a box written", nthreads);
  CHECK_INT(b2nd_free(array), 0);
  CHECK_INT(b2nd_free_ctx(ctx), 0);
  forget();
}

/* Blocks of 8 KiB are read together, those of 64 KiB one by one. */
static void test_reads(uint8_t id, bool contiguous, int nthreads, int32_t blocksize) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_io io;
  io.id = id;
  io.name = "streams";
  io.params = NULL;
  cparams.typesize = 4;
  cparams.blocksize = blocksize;
  cparams.compcode = BLOSC_LZ4;
  cparams.nthreads = (int16_t)nthreads;
  dparams.nthreads = (int16_t)nthreads;
  storage.cparams = &cparams;
  storage.dparams = &dparams;
  storage.contiguous = contiguous;
  storage.urlpath = (char *)PATH;
  storage.io = &io;
  test_schunk(&storage, nthreads);
  test_array(&storage, nthreads);
  blosc2_remove_urlpath(PATH);
}

/* How much less the next write, and how much more the next read, says than it did. */
static int64_t less, more;

static int64_t lying_write(const void *ptr, int64_t size, int64_t nitems, int64_t position, void *stream) {
  int64_t n = stream_write(ptr, size, nitems, position, stream) - less;
  less = 0;
  return n;
}
static int64_t lying_read(void **ptr, int64_t size, int64_t nitems, int64_t position, void *stream) {
  int64_t n = stream_read(ptr, size, nitems, position, stream) + more;
  more = 0;
  return n;
}

/* Less than was to be written, and more than was asked for, are failures. */
static void test_lies(uint8_t id) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  uint8_t bytes[1000] = {1}, back[1000];
  blosc2_schunk *schunk;
  blosc2_io io;
  io.id = id;
  io.name = "lying";
  io.params = NULL;
  storage.contiguous = true;
  storage.urlpath = (char *)PATH;
  storage.io = &io;
  blosc2_remove_urlpath(PATH);
  schunk = blosc2_schunk_new(&storage);
  REQUIRE(schunk != NULL);
  REQUIRE_INT(blosc2_schunk_append_buffer(schunk, bytes, 1000), 1);
  less = 1;
  CHECK(blosc2_schunk_append_buffer(schunk, bytes, 1000) < 0);
  more = 1;
  CHECK(blosc2_schunk_decompress_chunk(schunk, 0, back, 1000) < 0);
  CHECK_INT(less + more, 0);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, back, 1000), 1000);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, bytes, 1000), 2);
  blosc2_schunk_free(schunk);
  blosc2_remove_urlpath(PATH);
}

/* Two super-chunks in one file, opened where they start. */
static void test_offsets(uint8_t id) {
  static int32_t back[ITEMS];
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_io io = {id, "streams", NULL};
  int64_t offsets[2];
  int i;
  cparams.typesize = 4;
  storage.cparams = &cparams;
  storage.contiguous = true;
  remove(PATH);
  for (i = 0; i < 2; i++) {
    blosc2_schunk *schunk = blosc2_schunk_new(&storage);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items + i, BYTES), 1);
    offsets[i] = blosc2_schunk_append_file(schunk, PATH);
    blosc2_schunk_free(schunk);
  }
  CHECK(offsets[0] == 0 && offsets[1] > 0);
  for (i = 0; i < 2; i++) {
    blosc2_schunk *schunk = blosc2_schunk_open_offset_udio(PATH, offsets[i], &io);
    REQUIRE(schunk != NULL);
    CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, back, BYTES), BYTES);
    CHECK_BYTES(back, items + i, BYTES);
    blosc2_schunk_free(schunk);
  }
  CHECK(blosc2_schunk_open_offset_udio(PATH, offsets[1] + 1, &io) == NULL);
  CHECK_INT(seen.open, 0);
  remove(PATH);
}

int main(void) {
  blosc2_io_cb back_end;
  int i;
  memset(&back_end, 0, sizeof back_end);
  back_end.id = 210;
  back_end.name = (char *)"streams";
  back_end.is_allocation_necessary = true;
  back_end.open = stream_open;
  back_end.close = stream_close;
  back_end.size = stream_size;
  back_end.write = stream_write;
  back_end.read = stream_read;
  back_end.truncate = stream_truncate;
  back_end.destroy = stream_destroy;
  blosc2_init();
  CHECK_INT(blosc2_register_io_cb(&back_end), 0);
  back_end.id = 211;
  back_end.is_allocation_necessary = false;
  back_end.read = stream_lend;
  CHECK_INT(blosc2_register_io_cb(&back_end), 0);
  back_end.id = 212;
  back_end.is_allocation_necessary = true;
  back_end.read = lying_read;
  back_end.write = lying_write;
  CHECK_INT(blosc2_register_io_cb(&back_end), 0);
  test_lies(212);
  fill();
  test_offsets(210);
  for (i = 0; i < 4; i++) {
    uint8_t id = (uint8_t)(210 + i % 2);
    bool contiguous = i / 2 == 1;
    test_reads(id, contiguous, NTHREADS, 64 << 10);
    test_reads(id, contiguous, NTHREADS, 8 << 10);
    test_reads(id, contiguous, 1, 64 << 10);
    if (contiguous) {
      /* Where there is no other stream to be had, threads wait for each other. */
      seen.only_one = 1;
      test_reads(id, true, NTHREADS, 64 << 10);
      seen.only_one = 0;
    }
  }
  blosc2_destroy();
  return test_end();
}
