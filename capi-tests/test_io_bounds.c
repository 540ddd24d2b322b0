/* Back-ends of the application that cannot be asked for more than there is: no read goes past the end of a file. */

#include <b2nd.h>
#include <unistd.h>

#include "test.h"

#define PATH "test_io_bounds.b2frame"
#define MOST 100000 /* items of a chunk */

enum conduct {
  FAILS,  /* tells of a failure when a read goes past the end */
  COPIES, /* gives all or nothing */
  LENDS   /* lends all or nothing */
};

/* A stream with the bytes that were lent last. */
struct stream {
  FILE *file;
  char *lent;
};

static enum conduct conduct;
static int reads, past_the_end;

static void *bounds_open(const char *urlpath, const char *mode, void *params) {
  struct stream *stream;
  FILE *file = fopen(urlpath, mode);
  (void)params;
  if (file == NULL) {
    return NULL;
  }
  stream = (struct stream *)test_alloc(sizeof *stream);
  stream->file = file;
  stream->lent = NULL;
  return stream;
}

static int bounds_close(void *stream) {
  struct stream *this_one = (struct stream *)stream;
  int code = fclose(this_one->file);
  free(this_one->lent);
  free(this_one);
  return code;
}

static int64_t bounds_size(void *stream) {
  FILE *file = ((struct stream *)stream)->file;
  return fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
}

static int64_t bounds_read(void **ptr, int64_t size, int64_t nitems, int64_t position, void *stream) {
  struct stream *this_one = (struct stream *)stream;
  int64_t len = size * nitems;
  reads++;
  if (position + len > bounds_size(stream)) {
    past_the_end++;
    if (conduct == LENDS) {
      *ptr = NULL;
    }
    return conduct == FAILS ? -1 : 0;
  }
  if (conduct == LENDS) {
    free(this_one->lent);
    this_one->lent = (char *)test_alloc((size_t)len);
    *ptr = this_one->lent;
  }
  fseek(this_one->file, (long)position, SEEK_SET);
  return (int64_t)fread(*ptr, (size_t)size, (size_t)nitems, this_one->file);
}

static int64_t bounds_write(const void *ptr, int64_t size, int64_t nitems, int64_t position, void *stream) {
  FILE *file = ((struct stream *)stream)->file;
  int64_t written;
  fseek(file, (long)position, SEEK_SET);
  written = (int64_t)fwrite(ptr, (size_t)size, (size_t)nitems, file);
  return fflush(file) == 0 ? written : 0;
}

static int bounds_truncate(void *stream, int64_t size) {
  FILE *file = ((struct stream *)stream)->file;
  return fflush(file) == 0 ? ftruncate(fileno(file), size) : -1;
}

static int bounds_destroy(void *params) {
  (void)params;
  return 0;
}

static int32_t items[MOST], read_back[MOST];

static void fill(int n, int seed) {
  uint32_t noise = (uint32_t)seed + 1;
  int i;
  for (i = 0; i < n; i++) {
    noise = noise * 1664525 + 1013904223;
    items[i] = i + (int32_t)(noise >> 26);
  }
}

/* Whether chunk `nchunk` has the `n` items of `seed`, read in every way. */
static int chunk_is(blosc2_schunk *schunk, int64_t nchunk, int n, int seed) {
  int32_t nbytes = n * 4;
  int same;
  uint8_t *chunk;
  bool needs_free = false;
  int cbytes;
  fill(n, seed);
  memset(read_back, 0, sizeof read_back);
  same = blosc2_schunk_decompress_chunk(schunk, nchunk, read_back, nbytes) == nbytes;
  same = same && memcmp(read_back, items, (size_t)nbytes) == 0;
  cbytes = blosc2_schunk_get_lazychunk(schunk, nchunk, &chunk, &needs_free);
  same = same && cbytes > 0 && blosc2_getitem_ctx(schunk->dctx, chunk, cbytes, n - 1, 1, read_back, 4) == 4;
  same = same && read_back[0] == items[n - 1];
  if (cbytes > 0 && needs_free) {
    free(chunk);
  }
  needs_free = false;
  cbytes = blosc2_schunk_get_chunk(schunk, nchunk, &chunk, &needs_free);
  memset(read_back, 0, sizeof read_back);
  same = same && blosc2_decompress_ctx(schunk->dctx, chunk, cbytes, read_back, nbytes) == nbytes;
  same = same && memcmp(read_back, items, (size_t)nbytes) == 0;
  if (cbytes > 0 && needs_free) {
    free(chunk);
  }
  return same;
}

/* Makes, changes and reads a super-chunk of chunks of `n` items. */
static void test_schunk(bool contiguous, blosc2_io *io, uint8_t clevel, int n) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  uint8_t layer[300], *got;
  int32_t len = 0;
  int i;
  cparams.typesize = 4;
  cparams.clevel = clevel;
  storage.cparams = &cparams;
  storage.contiguous = contiguous;
  storage.urlpath = (char *)PATH;
  storage.io = io;
  memset(layer, 7, sizeof layer);
  blosc2_remove_urlpath(PATH);
  schunk = blosc2_schunk_new(&storage);
  REQUIRE(schunk != NULL);
  for (i = 0; i < 4; i++) {
    fill(n, i);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, n * 4), i + 1);
    CHECK(chunk_is(schunk, i / 2, n, i / 2));
  }
  CHECK(blosc2_vlmeta_add(schunk, "layer", layer, sizeof layer, NULL) >= 0);
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 1), 3);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  schunk = blosc2_schunk_open_udio(PATH, io);
  REQUIRE(schunk != NULL && schunk->nchunks == 3);
  CHECK(chunk_is(schunk, 0, n, 0) && chunk_is(schunk, 1, n, 2) && chunk_is(schunk, 2, n, 3));
  fill(n, 9);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, n, 2 * (int64_t)n, items), 0);
  CHECK(chunk_is(schunk, 1, n, 9));
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, n + n / 2, n + n / 2 + 1, read_back), 0);
  CHECK_INT(read_back[0], items[n / 2]);
  REQUIRE_INT(blosc2_vlmeta_get(schunk, "layer", &got, &len), 0);
  CHECK(len == sizeof layer && memcmp(got, layer, sizeof layer) == 0);
  free(got);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  blosc2_remove_urlpath(PATH);
}

static void test_array(bool contiguous, blosc2_io *io) {
  const int64_t shape[] = {70, 50}, start[] = {33, 11}, stop[] = {60, 30}, all[] = {0, 0}, part[] = {27, 19};
  const int32_t chunkshape[] = {20, 20}, blockshape[] = {7, 10};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *context;
  b2nd_array_t *array = NULL;
  int64_t i, j;
  cparams.typesize = 4;
  storage.cparams = &cparams;
  storage.contiguous = contiguous;
  storage.urlpath = (char *)PATH;
  storage.io = io;
  blosc2_remove_urlpath(PATH);
  context = b2nd_create_ctx(&storage, 2, shape, chunkshape, blockshape, "<i4", 0, NULL, 0);
  fill(70 * 50, 3);
  REQUIRE_INT(b2nd_from_cbuffer(context, &array, items, 70 * 50 * 4), BLOSC2_ERROR_SUCCESS);
  CHECK_INT(b2nd_get_slice_cbuffer(array, start, stop, read_back, part, 27 * 19 * 4), BLOSC2_ERROR_SUCCESS);
  for (i = 0; i < 27; i++) {
    for (j = 0; j < 19; j++) {
      CHECK_INT(read_back[i * 19 + j], items[(33 + i) * 50 + 11 + j]);
    }
  }
  CHECK_INT(b2nd_set_slice_cbuffer(read_back, part, 27 * 19 * 4, start, stop, array), BLOSC2_ERROR_SUCCESS);
  CHECK_INT(b2nd_get_slice_cbuffer(array, all, shape, read_back, shape, 70 * 50 * 4), BLOSC2_ERROR_SUCCESS);
  CHECK_BYTES(read_back, items, 70 * 50 * 4);
  CHECK_INT(b2nd_free(array), BLOSC2_ERROR_SUCCESS);
  CHECK_INT(b2nd_free_ctx(context), BLOSC2_ERROR_SUCCESS);
  blosc2_remove_urlpath(PATH);
}

static void test_conduct(enum conduct how, uint8_t id) {
  static const int sizes[] = {1, 3, 5, 20, 100, 1000, MOST};
  blosc2_io_cb back_end;
  blosc2_io io;
  size_t i;
  int contiguous;
  memset(&back_end, 0, sizeof back_end);
  conduct = how;
  back_end.id = id;
  back_end.name = (char *)"bounds";
  back_end.is_allocation_necessary = how != LENDS;
  back_end.open = bounds_open;
  back_end.close = bounds_close;
  back_end.size = bounds_size;
  back_end.write = bounds_write;
  back_end.read = bounds_read;
  back_end.truncate = bounds_truncate;
  back_end.destroy = bounds_destroy;
  REQUIRE_INT(blosc2_register_io_cb(&back_end), 0);
  io.id = id;
  io.name = "bounds";
  io.params = NULL;
  for (contiguous = 0; contiguous < 2; contiguous++) {
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      test_schunk(contiguous == 1, &io, 5, sizes[i]);
      test_schunk(contiguous == 1, &io, 0, sizes[i]);
    }
    test_array(contiguous == 1, &io);
  }
}

int main(void) {
  blosc2_init();
  test_conduct(FAILS, 200);
  test_conduct(COPIES, 201);
  test_conduct(LENDS, 202);
  CHECK(reads > 1000);
  CHECK_INT(past_the_end, 0);
  blosc2_destroy();
  return test_end();
}
