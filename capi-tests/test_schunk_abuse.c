/* Super-chunk functions called wrongly: the code that comes back, and that nothing has changed after it. */

#include <blosc2.h>

#include <limits.h>

#include "test.h"

#define ITEMS 1000
#define BYTES (ITEMS * 4)

static const char *const paths[] = {NULL, NULL, "test_schunk_abuse_file.b2frame", "test_schunk_abuse_dir.b2frame"};
#define KINDS ((int)(sizeof paths / sizeof *paths))

/* What calls get and give. */
static int kind;
static int32_t items[ITEMS];
static uint8_t chunk[BYTES + 64];
static int64_t start, stop, *numbers;
static uint8_t *bytes;
static int32_t size;
static bool flag;
static char *names[3];
static blosc2_cparams *cparams_copy;
static blosc2_dparams *dparams_copy;

/* A super-chunk of the kind that is tried, with `nchunks` chunks; `chunk` is another one. */
static blosc2_schunk *make(int nchunks) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_context *context;
  blosc2_schunk *schunk;
  int i;
  cparams.typesize = 4;
  storage.cparams = &cparams;
  storage.contiguous = kind == 1 || kind == 2;
  storage.urlpath = (char *)paths[kind];
  blosc2_remove_urlpath(paths[kind]);
  schunk = blosc2_schunk_new(&storage);
  if (!CHECK(schunk != NULL)) {
    exit(test_end());
  }
  for (i = 0; i < ITEMS; i++) {
    items[i] = i * 7;
  }
  for (i = 0; i < nchunks; i++) {
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), i + 1);
  }
  context = blosc2_create_cctx(cparams);
  CHECK(blosc2_compress_ctx(context, items, BYTES, chunk, sizeof chunk) > 0);
  blosc2_free_ctx(context);
  return schunk;
}

/* Gives an empty super-chunk chunks of several sizes. */
static int vary(blosc2_schunk *schunk) {
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, 400), 1);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 2);
  return 0;
}

/* What a failed call must not change. */
typedef struct {
  int64_t nchunks, nbytes, cbytes;
  int32_t chunksize;
  int nmetalayers, nvlmetalayers;
  uint64_t contents;
} state;

/* A number for bytes, after others with the number `before`. */
static uint64_t number_of(uint64_t before, const uint8_t *some, int64_t count) {
  int64_t i;
  for (i = 0; i < count; i++) {
    before = (before ^ some[i]) * 0x100000001b3u;
  }
  return before * 31 + (uint64_t)count;
}

static uint64_t number_of_layers(uint64_t before, blosc2_metalayer *const *layers, int count) {
  int i;
  for (i = 0; i < count; i++) {
    before = number_of(before, (const uint8_t *)layers[i]->name, (int64_t)strlen(layers[i]->name));
    before = number_of(before, layers[i]->content, layers[i]->content_len);
  }
  return before;
}

static state state_of(blosc2_schunk *schunk) {
  state now;
  int64_t i;
  now.nchunks = schunk->nchunks;
  now.nbytes = schunk->nbytes;
  now.cbytes = schunk->cbytes;
  now.chunksize = schunk->chunksize;
  now.nmetalayers = schunk->nmetalayers;
  now.nvlmetalayers = schunk->nvlmetalayers;
  now.contents = number_of_layers(1, schunk->metalayers, schunk->nmetalayers);
  now.contents = number_of_layers(now.contents, schunk->vlmetalayers, schunk->nvlmetalayers);
  for (i = 0; i < now.nchunks; i++) {
    uint8_t *stored = NULL;
    bool needs_free = false;
    int cbytes = blosc2_schunk_get_chunk(schunk, i, &stored, &needs_free);
    if (CHECK(cbytes > 0)) {
      now.contents = number_of(now.contents, stored, cbytes);
    }
    if (needs_free) {
      free(stored);
    }
  }
  return now;
}

/* Checks the code of a call, and ends the super-chunk. */
static void check(blosc2_schunk *schunk, state before, int64_t code, int64_t wanted, const char *call, int line) {
  state after = state_of(schunk);
  test_equal(code, wanted, call, __FILE__, line);
  if (code < 0) {
    test_equal(after.nchunks, before.nchunks, "nchunks afterwards", __FILE__, line);
    test_equal(after.nbytes, before.nbytes, "nbytes afterwards", __FILE__, line);
    test_equal(after.cbytes, before.cbytes, "cbytes afterwards", __FILE__, line);
    test_equal(after.chunksize, before.chunksize, "chunksize afterwards", __FILE__, line);
    test_equal(after.nmetalayers, before.nmetalayers, "nmetalayers afterwards", __FILE__, line);
    test_equal(after.nvlmetalayers, before.nvlmetalayers, "nvlmetalayers afterwards", __FILE__, line);
    test_check(after.contents == before.contents, "the contents afterwards", __FILE__, line);
  }
  test_equal(blosc2_schunk_free(schunk), 0, "free", __FILE__, line);
  if (paths[kind] != NULL) {
    blosc2_schunk *again = blosc2_schunk_open(paths[kind]);
    if (test_check(again != NULL, call, __FILE__, line)) {
      test_equal(again->nchunks, after.nchunks, "nchunks when reopened", __FILE__, line);
      blosc2_schunk_free(again);
    }
    blosc2_remove_urlpath(paths[kind]);
  }
}

/* Calls something for a super-chunk of each kind that starts with so many chunks; the code of lists, and of frames. */
#define CODES(nchunks, list, framed, call) CODES_AFTER(nchunks, list, framed, 0, call)

/* The same after something else. */
#define CODES_AFTER(nchunks, list, framed, first, call)                                \
  for (kind = 0; kind < KINDS; kind++) {                                               \
    blosc2_schunk *schunk = make(nchunks);                                             \
    state before;                                                                      \
    int64_t code;                                                                      \
    (void)(first);                                                                     \
    before = state_of(schunk);                                                         \
    code = (int64_t)(call);                                                            \
    check(schunk, before, code, kind == 0 ? (list) : (framed), #call, __LINE__);       \
  }

/* Chunks that come and go. */
static void chunks_in(void) {
  CODES(2, -12, -12, blosc2_schunk_append_chunk(NULL, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_append_chunk(schunk, NULL, true));
  CODES_AFTER(2, -11, -11, memset(chunk, 0, 64), blosc2_schunk_append_chunk(schunk, chunk, true));
  CODES_AFTER(2, 3, 3, chunk[0] = 99, blosc2_schunk_append_chunk(schunk, chunk, true));
  CODES_AFTER(2, -11, -11, chunk[7] = 0xff, blosc2_schunk_append_chunk(schunk, chunk, true));
  CODES_AFTER(2, -11, -11, chunk[15] = 0xff, blosc2_schunk_append_chunk(schunk, chunk, true));
  CODES_AFTER(2, -11, -11, chunk[11] = 0xff, blosc2_schunk_append_chunk(schunk, chunk, true));
  CODES_AFTER(2, -11, -11, chunk[3] = 0, blosc2_schunk_append_chunk(schunk, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_append_buffer(NULL, items, 400));
  CODES(2, -12, -12, blosc2_schunk_append_buffer(schunk, NULL, 400));
  CODES(2, 3, 3, blosc2_schunk_append_buffer(schunk, NULL, 0));
  CODES(2, -35, -35, blosc2_schunk_append_buffer(schunk, items, -1));
  CODES(2, -35, -35, blosc2_schunk_append_buffer(schunk, items, INT_MIN));
  CODES(2, -35, -35, blosc2_schunk_append_buffer(schunk, items, INT_MAX));
  CODES(2, 3, 3, blosc2_schunk_append_buffer(schunk, items, 4001));
  CODES(2, -12, -12, blosc2_schunk_insert_chunk(schunk, -1, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_insert_chunk(schunk, 3, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_insert_chunk(schunk, INT64_MAX, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_insert_chunk(schunk, INT64_MIN, chunk, true));
  CODES(2, 3, 3, blosc2_schunk_insert_chunk(schunk, 2, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_insert_chunk(schunk, 1, NULL, true));
  CODES(2, -12, -12, blosc2_schunk_insert_chunk(NULL, 1, chunk, true));
  CODES_AFTER(2, -11, -11, memset(chunk, 0, 64), blosc2_schunk_insert_chunk(schunk, 1, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_update_chunk(schunk, -1, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_update_chunk(schunk, 2, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_update_chunk(schunk, INT64_MAX, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_update_chunk(schunk, 1, NULL, true));
  CODES_AFTER(2, -11, -11, memset(chunk, 0, 64), blosc2_schunk_update_chunk(schunk, 1, chunk, true));
  CODES_AFTER(2, -12, -12, memset(chunk, 0, 64), blosc2_schunk_update_chunk(schunk, 7, chunk, true));
  CODES(2, -12, -12, blosc2_schunk_delete_chunk(schunk, -1));
  CODES(2, -12, -12, blosc2_schunk_delete_chunk(schunk, 2));
  CODES(2, -12, -12, blosc2_schunk_delete_chunk(NULL, 0));
  CODES(0, -12, -12, blosc2_schunk_delete_chunk(schunk, 0));
  CODES(2, -12, -12, blosc2_schunk_append_file(schunk, NULL));
  CODES(2, -15, -15, blosc2_schunk_append_file(schunk, ""));
  CODES(2, -12, -12, blosc2_schunk_append_file(NULL, "x.b2frame"));
  CODES_AFTER(2, 3, 3, (blosc2_free_ctx(schunk->cctx), schunk->cctx = NULL),
              blosc2_schunk_append_chunk(schunk, chunk, true));
  CODES_AFTER(2, -32, -32, (blosc2_free_ctx(schunk->cctx), schunk->cctx = NULL),
              blosc2_schunk_append_buffer(schunk, items, 4000));
  CODES_AFTER(2, 3, -12, schunk->typesize = 0, blosc2_schunk_append_buffer(schunk, items, 4000));
  CODES_AFTER(0, -20, -20, schunk->chunksize = 100, blosc2_schunk_append_buffer(schunk, items, 4000));
  CODES_AFTER(0, 1, 1, schunk->chunksize = 0, blosc2_schunk_append_buffer(schunk, items, 4000));
}

/* Chunks that are read. */
static void chunks_out(void) {
  CODES(2, -12, -12, blosc2_schunk_decompress_chunk(schunk, -1, items, 4000));
  CODES(2, -12, -12, blosc2_schunk_decompress_chunk(schunk, 2, items, 4000));
  CODES(2, -12, -6, blosc2_schunk_decompress_chunk(schunk, 1, items, 3999));
  CODES(2, -12, -6, blosc2_schunk_decompress_chunk(schunk, 1, items, -5));
  CODES(2, -12, -6, blosc2_schunk_decompress_chunk(schunk, 1, items, 0));
  CODES(2, -12, -12, blosc2_schunk_decompress_chunk(schunk, 1, NULL, 4000));
  CODES(2, -12, -12, blosc2_schunk_decompress_chunk(NULL, 1, items, 4000));
  CODES(2, -12, -12, blosc2_schunk_get_chunk(schunk, -1, &bytes, &flag));
  CODES(2, -12, -12, blosc2_schunk_get_chunk(schunk, 2, &bytes, &flag));
  CODES(2, -12, -12, blosc2_schunk_get_chunk(schunk, 1, NULL, &flag));
  CODES(2, -12, -12, blosc2_schunk_get_chunk(schunk, 1, &bytes, NULL));
  CODES(2, -12, -12, blosc2_schunk_get_chunk(NULL, 1, &bytes, &flag));
  CODES(2, -12, -12, blosc2_schunk_get_lazychunk(schunk, -1, &bytes, &flag));
  CODES(2, -12, -12, blosc2_schunk_get_lazychunk(schunk, 2, &bytes, &flag));
  CODES(2, -12, -12, blosc2_schunk_get_lazychunk(schunk, INT64_MAX, &bytes, &flag));
  CODES(2, -12, -12, blosc2_schunk_get_vlblock(schunk, 1, 0, &bytes, &size));
  CODES(2, -12, -12, blosc2_schunk_get_vlblock(schunk, 1, -1, &bytes, &size));
  CODES(2, -12, -12, blosc2_schunk_get_vlblock(schunk, 5, 0, &bytes, &size));
  CODES(2, -12, -12, blosc2_schunk_get_vlblock(schunk, 1, 0, NULL, &size));
  CODES(2, -12, -12, blosc2_schunk_get_vlblock(schunk, 1, 0, &bytes, NULL));
  CODES(2, -12, -12, blosc2_schunk_get_vlblock(NULL, 1, 0, &bytes, &size));
  CODES_AFTER(2, 4000, 4000, (blosc2_free_ctx(schunk->dctx), schunk->dctx = NULL),
              blosc2_schunk_decompress_chunk(schunk, 1, items, 4000));
}

/* Orders of chunks, and special values. */
static void orders_and_fillings(void) {
  CODES(3, -3, -3, blosc2_schunk_reorder_offsets(schunk, (int64_t[]){0, 0, 1}));
  CODES(3, -3, -3, blosc2_schunk_reorder_offsets(schunk, (int64_t[]){0, -1, 1}));
  CODES(3, -3, -3, blosc2_schunk_reorder_offsets(schunk, (int64_t[]){0, 3, 1}));
  CODES(3, -3, -3, blosc2_schunk_reorder_offsets(schunk, (int64_t[]){0, INT64_MAX, 1}));
  CODES(3, -12, -12, blosc2_schunk_reorder_offsets(schunk, NULL));
  CODES(0, 0, -3, blosc2_schunk_reorder_offsets(schunk, (int64_t[]){0}));
  CODES(0, 0, -3, blosc2_schunk_reorder_offsets(schunk, NULL));
  CODES(3, 0, 0, blosc2_schunk_reorder_offsets(schunk, (int64_t[]){2, 1, 0}));
  CODES(0, -12, -12, blosc2_schunk_fill_special(schunk, -1, BLOSC2_SPECIAL_ZERO, 4000));
  CODES(0, 0, 0, blosc2_schunk_fill_special(schunk, 0, 77, -4000));
  CODES(0, -29, -28, blosc2_schunk_fill_special(schunk, 100, 77, 4000));
  CODES(0, -29, -28, blosc2_schunk_fill_special(schunk, 100, -1, 4000));
  CODES(0, -29, -28, blosc2_schunk_fill_special(schunk, 100, 0, 4000));
  CODES(0, -29, -28, blosc2_schunk_fill_special(schunk, 100, BLOSC2_SPECIAL_VALUE, 4000));
  CODES(0, -12, -12, blosc2_schunk_fill_special(schunk, 100, BLOSC2_SPECIAL_ZERO, 0));
  CODES(0, -12, -12, blosc2_schunk_fill_special(schunk, 100, BLOSC2_SPECIAL_ZERO, -4));
  CODES(0, -12, -12, blosc2_schunk_fill_special(schunk, 100, BLOSC2_SPECIAL_ZERO, 3));
  CODES(0, -29, -28, blosc2_schunk_fill_special(schunk, 100, BLOSC2_SPECIAL_ZERO, 5));
  CODES(0, -29, -29, blosc2_schunk_fill_special(schunk, INT64_MAX, BLOSC2_SPECIAL_ZERO, 4000));
  CODES(0, -29, -29, blosc2_schunk_fill_special(schunk, INT64_MAX / 4, BLOSC2_SPECIAL_ZERO, INT_MAX));
  CODES(0, -29, -29, blosc2_schunk_fill_special(schunk, 1LL << 40, BLOSC2_SPECIAL_ZERO, 4));
  CODES(2, -28, -28, blosc2_schunk_fill_special(schunk, 100, BLOSC2_SPECIAL_ZERO, 4000));
  CODES(0, -12, -12, blosc2_schunk_fill_special(NULL, 100, BLOSC2_SPECIAL_ZERO, 4000));
  CODES(0, -29, -28, blosc2_schunk_fill_special(schunk, 100, BLOSC2_SPECIAL_ZERO, INT_MAX));
}

/* Items. */
static void items_of(void) {
  CODES(2, -1, -1, blosc2_schunk_get_slice_buffer(schunk, -5, 5, items));
  CODES(2, -1, -1, blosc2_schunk_get_slice_buffer(schunk, -5, -2, items));
  CODES(2, -1, -1, blosc2_schunk_get_slice_buffer(schunk, 1990, 2001, items));
  CODES(2, -1, -1, blosc2_schunk_get_slice_buffer(schunk, INT64_MAX - 2, INT64_MAX, items));
  CODES(2, 0, 0, blosc2_schunk_get_slice_buffer(schunk, 5, 2, items));
  CODES(2, -12, -12, blosc2_schunk_get_slice_buffer(schunk, 2, 5, NULL));
  CODES(2, -12, -12, blosc2_schunk_get_slice_buffer(NULL, 2, 5, items));
  CODES(0, -1, -1, blosc2_schunk_get_slice_buffer(schunk, 2, 5, items));
  CODES(0, 0, 0, blosc2_schunk_get_slice_buffer(schunk, 0, 0, items));
  CODES(2, -1, -1, blosc2_schunk_set_slice_buffer(schunk, -5, 5, items));
  CODES(2, -1, -1, blosc2_schunk_set_slice_buffer(schunk, 1990, 2001, items));
  CODES(2, -1, -1, blosc2_schunk_set_slice_buffer(schunk, INT64_MAX - 2, INT64_MAX, items));
  CODES(2, 0, 0, blosc2_schunk_set_slice_buffer(schunk, 5, 2, items));
  CODES(2, -12, -12, blosc2_schunk_set_slice_buffer(schunk, 2, 5, NULL));
  CODES(2, -12, -12, blosc2_schunk_set_slice_buffer(NULL, 2, 5, items));
  CODES(2, -12, -12, blosc2_schunk_get_sparse_buffer(schunk, 1, (int64_t[]){-1}, items));
  CODES(2, -12, -12, blosc2_schunk_get_sparse_buffer(schunk, 1, (int64_t[]){2000}, items));
  CODES(2, -12, -12, blosc2_schunk_get_sparse_buffer(schunk, -1, (int64_t[]){0}, items));
  CODES(2, 0, 0, blosc2_schunk_get_sparse_buffer(schunk, 0, NULL, NULL));
  CODES(2, -12, -12, blosc2_schunk_get_sparse_buffer(schunk, 1, NULL, items));
  CODES(2, -12, -12, blosc2_schunk_get_sparse_buffer(schunk, 1, (int64_t[]){0}, NULL));
  CODES(2, -12, -12, blosc2_schunk_get_sparse_buffer(NULL, 1, (int64_t[]){0}, items));
  CODES(2, -12, -12, blosc2_schunk_get_sparse_buffer(schunk, INT64_MAX, (int64_t[]){0}, items));
  CODES_AFTER(2, -32, -32, (start = 0, stop = 5), blosc2_get_slice_nchunks(NULL, &start, &stop, &numbers));
  CODES_AFTER(2, -32, -32, stop = 5, blosc2_get_slice_nchunks(schunk, NULL, &stop, &numbers));
  CODES_AFTER(2, -32, -32, (start = 0, stop = 5), blosc2_get_slice_nchunks(schunk, &start, &stop, NULL));
  CODES_AFTER(2, -1, -1, (start = -5000, stop = 5), blosc2_get_slice_nchunks(schunk, &start, &stop, &numbers));
  CODES_AFTER(2, -1, -1, (start = 2500, stop = 5), blosc2_get_slice_nchunks(schunk, &start, &stop, &numbers));
  CODES_AFTER(2, -1, -1, (start = 0, stop = 1LL << 45), blosc2_get_slice_nchunks(schunk, &start, &stop, &numbers));
  CODES_AFTER(2, -12, -12, (start = 0, stop = INT64_MAX), blosc2_get_slice_nchunks(schunk, &start, &stop, &numbers));
  CODES_AFTER(2, 0, 0, (blosc2_free_ctx(schunk->dctx), schunk->dctx = NULL),
              blosc2_schunk_get_slice_buffer(schunk, 1, 5, items));
  CODES_AFTER(2, -12, -12, schunk->typesize = 0, blosc2_schunk_get_slice_buffer(schunk, 1, 5, items));
  CODES_AFTER(2, -12, -12, schunk->typesize = 0, blosc2_schunk_set_slice_buffer(schunk, 1, 5, items));
  CODES_AFTER(2, -12, -12, schunk->typesize = -4, blosc2_schunk_get_slice_buffer(schunk, 1, 5, items));
  CODES_AFTER(0, -12, -12, vary(schunk), blosc2_schunk_get_slice_buffer(schunk, 1, 5, items));
  CODES_AFTER(0, -12, -12, vary(schunk), blosc2_schunk_set_slice_buffer(schunk, 1, 5, items));
  CODES_AFTER(0, -12, -12, (vary(schunk), start = 0, stop = 5),
              blosc2_get_slice_nchunks(schunk, &start, &stop, &numbers));
}

/* Metalayers of fixed length. */
static void fixed_metalayers(void) {
  CODES(0, -12, -12, blosc2_meta_add(NULL, "a", chunk, 4));
  CODES(0, -12, -12, blosc2_meta_add(schunk, NULL, chunk, 4));
  CODES(0, -12, -12, blosc2_meta_add(schunk, "a", NULL, 4));
  CODES(0, 0, 0, blosc2_meta_add(schunk, "a", NULL, 0));
  CODES(0, -12, -12, blosc2_meta_add(schunk, "a", chunk, -4));
  CODES_AFTER(0, -12, -12, blosc2_meta_add(schunk, "a", chunk, 4), blosc2_meta_add(schunk, "a", chunk, 4));
  CODES(0, 0, 0, blosc2_meta_add(schunk, "", chunk, 4));
  CODES(0, 0, 0, blosc2_meta_add(schunk, "0123456789012345678901234567890", chunk, 4));
  CODES(0, -12, -12, blosc2_meta_add(schunk, "01234567890123456789012345678901", chunk, 4));
  CODES(0, 0, 0, blosc2_meta_add(schunk, "\xff\xfe\x80", chunk, 4));
  CODES(2, 0, -12, blosc2_meta_add(schunk, "a", chunk, 4));
  CODES(0, -16, -16, blosc2_meta_update(schunk, "a", chunk, 4));
  CODES_AFTER(0, 0, 0, blosc2_meta_add(schunk, "a", chunk, 4), blosc2_meta_update(schunk, "a", chunk, 5));
  CODES_AFTER(0, -12, -12, blosc2_meta_add(schunk, "a", chunk, 4), blosc2_meta_update(schunk, "a", chunk, -1));
  CODES_AFTER(0, -12, -12, blosc2_meta_add(schunk, "a", chunk, 4), blosc2_meta_update(schunk, "a", NULL, 3));
  CODES_AFTER(0, 0, 0, blosc2_meta_add(schunk, "a", chunk, 4), blosc2_meta_update(schunk, "a", NULL, 0));
  CODES(0, -12, -12, blosc2_meta_update(schunk, "01234567890123456789012345678901", chunk, 4));
  CODES(0, -12, -12, blosc2_meta_update(NULL, "a", chunk, 4));
  CODES(0, -12, -12, blosc2_meta_update(schunk, NULL, chunk, 4));
  CODES(0, -12, -12, blosc2_meta_exists(NULL, "a"));
  CODES(0, -12, -12, blosc2_meta_exists(schunk, "01234567890123456789012345678901"));
}

/* Metalayers of variable length. */
static void variable_metalayers(void) {
  CODES(0, -12, -12, blosc2_vlmeta_add(NULL, "a", chunk, 4, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_add(schunk, NULL, chunk, 4, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_add(schunk, "a", NULL, 4, NULL));
  CODES(0, 0, 0, blosc2_vlmeta_add(schunk, "a", NULL, 0, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_add(schunk, "a", chunk, -4, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_add(schunk, "a", chunk, INT_MIN, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_add(schunk, "a", chunk, INT_MAX, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_add(schunk, "a", chunk, INT_MAX - 31, NULL));
  CODES_AFTER(0, -12, -12, blosc2_vlmeta_add(schunk, "a", chunk, 4, NULL),
              blosc2_vlmeta_add(schunk, "a", chunk, 4, NULL));
  CODES(0, 0, 0, blosc2_vlmeta_add(schunk, "", chunk, 4, NULL));
  CODES(0, 0, 0, blosc2_vlmeta_add(schunk, "0123456789012345678901234567890", chunk, 4, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_add(schunk, "01234567890123456789012345678901", chunk, 4, NULL));
  CODES(0, 0, 0, blosc2_vlmeta_add(schunk, "\xff\xfe\x80", chunk, 4, NULL));
  CODES(0, -16, -16, blosc2_vlmeta_update(schunk, "a", chunk, 4, NULL));
  CODES_AFTER(0, -12, -12, blosc2_vlmeta_add(schunk, "a", chunk, 4, NULL),
              blosc2_vlmeta_update(schunk, "a", chunk, -4, NULL));
  CODES_AFTER(0, -12, -12, blosc2_vlmeta_add(schunk, "a", chunk, 4, NULL),
              blosc2_vlmeta_update(schunk, "a", NULL, 4, NULL));
  CODES_AFTER(0, 0, 0, blosc2_vlmeta_add(schunk, "a", chunk, 4, NULL),
              blosc2_vlmeta_update(schunk, "a", NULL, 0, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_update(schunk, "01234567890123456789012345678901", chunk, 4, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_update(NULL, "a", chunk, 4, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_update(schunk, NULL, chunk, 4, NULL));
  CODES_AFTER(0, -12, -12, blosc2_vlmeta_add(schunk, "a", chunk, 4, NULL),
              blosc2_vlmeta_get(schunk, "a", NULL, &size));
  CODES_AFTER(0, -12, -12, blosc2_vlmeta_add(schunk, "a", chunk, 4, NULL),
              blosc2_vlmeta_get(schunk, "a", &bytes, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_get(NULL, "a", &bytes, &size));
  CODES(0, -12, -12, blosc2_vlmeta_get(schunk, NULL, &bytes, &size));
  CODES(0, -12, -12, blosc2_vlmeta_get(schunk, "01234567890123456789012345678901", &bytes, &size));
  CODES(0, -12, -12, blosc2_vlmeta_exists(NULL, "a"));
  CODES(0, -12, -12, blosc2_vlmeta_exists(schunk, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_exists(schunk, "01234567890123456789012345678901"));
  CODES(0, -16, -16, blosc2_vlmeta_delete(schunk, "a"));
  CODES(0, -12, -12, blosc2_vlmeta_delete(NULL, "a"));
  CODES(0, -12, -12, blosc2_vlmeta_delete(schunk, NULL));
  CODES(0, -12, -12, blosc2_vlmeta_delete(schunk, "01234567890123456789012345678901"));
  CODES(0, -12, -12, blosc2_vlmeta_get_names(NULL, names));
  CODES(0, 0, 0, blosc2_vlmeta_get_names(schunk, NULL));
  CODES_AFTER(0, -12, -12, blosc2_vlmeta_add(schunk, "a", chunk, 4, NULL), blosc2_vlmeta_get_names(schunk, NULL));
}

static bool has_offsets(blosc2_schunk *schunk) {
  int64_t *offsets = blosc2_frame_get_offsets(schunk);
  free(offsets);
  return offsets != NULL;
}

/* Whole super-chunks. */
static void whole(void) {
  CODES(2, 0, 0, has_offsets(NULL));
  CODES(0, 0, 0, has_offsets(schunk));
  CODES(2, 0, 1, has_offsets(schunk));
  CODES(2, -12, -12, blosc2_schunk_frame_len(NULL));
  CODES(2, -12, -12, blosc2_schunk_to_buffer(NULL, &bytes, &flag));
  CODES(2, -12, -12, blosc2_schunk_to_buffer(schunk, NULL, &flag));
  CODES(2, -12, -12, blosc2_schunk_to_buffer(schunk, &bytes, NULL));
  CODES(2, -12, -12, blosc2_schunk_to_file(NULL, "x.b2frame"));
  CODES(2, -12, -12, blosc2_schunk_to_file(schunk, NULL));
  CODES(2, 0, 0, blosc2_schunk_from_buffer(NULL, 100, true) != NULL);
  CODES(2, 0, 0, blosc2_schunk_from_buffer(chunk, -1, true) != NULL);
  CODES(2, 0, 0, blosc2_schunk_from_buffer(chunk, 0, 0) != NULL);
  CODES(2, 0, 0, blosc2_schunk_from_buffer(chunk, 200, 0) != NULL);
  CODES(2, 0, 0, blosc2_schunk_open(NULL) != NULL);
  CODES(2, 0, 0, blosc2_schunk_open("") != NULL);
  CODES(2, 0, 0, blosc2_schunk_open("nothing here") != NULL);
  CODES(2, 0, 0, blosc2_schunk_copy(schunk, NULL) != NULL);
  CODES(2, 0, 0, blosc2_schunk_free(NULL));
  CODES(2, -32, -32, blosc2_schunk_refresh(NULL));
  CODES(2, -12, -12, blosc2_schunk_lock(NULL));
  CODES(2, -12, -12, blosc2_schunk_unlock(NULL));
  CODES(2, 0, 0, blosc2_schunk_unlock(schunk));
  CODES(2, -12, -12, blosc2_schunk_get_cparams(NULL, &cparams_copy));
  CODES(2, -12, -12, blosc2_schunk_get_cparams(schunk, NULL));
  CODES(2, -12, -12, blosc2_schunk_get_dparams(NULL, &dparams_copy));
  CODES(2, 0, 0, (blosc2_schunk_avoid_cframe_free(NULL, 1), 0));
}

/* Adds metalayers of one byte. */
static int add_many(blosc2_schunk *schunk, bool variable, int count) {
  char name[16];
  int i;
  for (i = 0; i < count; i++) {
    sprintf(name, "m%d", i);
    CHECK_INT(variable ? blosc2_vlmeta_add(schunk, name, chunk, 1, NULL) : blosc2_meta_add(schunk, name, chunk, 1), i);
  }
  return 0;
}

static int append_zeros(blosc2_schunk *schunk) {
  static int32_t zeros[ITEMS];
  CHECK_INT(blosc2_schunk_append_buffer(schunk, zeros, BYTES), 1);
  return 0;
}

static int add_with(blosc2_schunk *schunk, int compcode, int clevel, int filter, int typesize) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.compcode = (uint8_t)compcode;
  cparams.clevel = (uint8_t)clevel;
  cparams.filters[5] = (uint8_t)filter;
  cparams.typesize = typesize;
  return blosc2_vlmeta_add(schunk, "a", (uint8_t *)items, 400, &cparams);
}

static void too_many_metalayers(void) {
  CODES_AFTER(0, -12, -12, add_many(schunk, false, 16), blosc2_meta_add(schunk, "more", chunk, 1));
  CODES_AFTER(0, -12, -1, add_many(schunk, true, kind == 0 ? 8192 : 16),
              blosc2_vlmeta_add(schunk, "more", chunk, 1, NULL));
  CODES_AFTER(0, 0, -12, append_zeros(schunk), blosc2_meta_add(schunk, "a", chunk, 4));
  CODES(0, -7, -7, add_with(schunk, 77, 5, 1, 4));
  CODES(0, -8, -8, add_with(schunk, 0, 12, 1, 4));
  CODES(0, -32, -32, add_with(schunk, 0, 5, 22, 4));
  CODES(0, -12, -12, add_with(schunk, 0, 5, 1, 0));
  CODES(0, -12, -12, add_with(schunk, 0, 5, 1, -3));
}

int main(void) {
  blosc2_init();
  chunks_in();
  chunks_out();
  orders_and_fillings();
  items_of();
  fixed_metalayers();
  variable_metalayers();
  too_many_metalayers();
  whole();
  blosc2_destroy();
  return test_end();
}
