/* A program that runs out of memory: operations fail with a code, leave what they work on as it was, and work again as soon
 * as there is memory. One allocation after the other is made to fail, and then each with all that follow it. */

#include <b2nd.h>
#include <blosc2.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>

#include "test.h"

#if !defined(__GLIBC__)

int main(void) {
  test_skip("all of it: allocations can be made to fail with glibc only");
  CHECK(true);
  return test_end();
}

#else

/* Smaller amounts are always there: they do not depend on the data. */
#define LEAST 4096
#define ITEMS 60000
#define BYTES ((int32_t)sizeof(items))
#define FILE_PATH "test_memory.b2frame"
#define DIR_PATH "test_memory_dir.b2frame"
#define ARRAY_PATH "test_memory.b2nd"

/* Volatile: compilers know that malloc looks at nothing of the kind. */
static volatile bool scarce;
static bool all_that_follow;
static long fail_at;
static atomic_long allocations;
static atomic_bool failed;

static bool fails(size_t size) {
  long number;
  if (!scarce || size < LEAST) {
    return false;
  }
  number = atomic_fetch_add(&allocations, 1);
  if (number == fail_at || (all_that_follow && number > fail_at)) {
    atomic_store(&failed, true);
    return true;
  }
  return false;
}

/* glibc's functions under other names. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) { return fails(size) ? NULL : __libc_malloc(size); }

void *calloc(size_t count, size_t size) { return fails(count * size) ? NULL : __libc_calloc(count, size); }

void *realloc(void *memory, size_t size) { return fails(size) ? NULL : __libc_realloc(memory, size); }

void *aligned_alloc(size_t alignment, size_t size) { return fails(size) ? NULL : __libc_memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
  void *made = fails(size) ? NULL : __libc_memalign(alignment, size);
  if (made == NULL) {
    return ENOMEM;
  }
  *memory = made;
  return 0;
}

/* Whether these functions are used: valgrind puts its own in their place. */
static bool are_used(void) {
  void *volatile memory;
  scarce = true;
  memory = malloc(LEAST);
  scarce = false;
  free(memory);
  return memory == NULL;
}

static int32_t items[ITEMS];
static int32_t back[ITEMS];
static uint8_t chunk[sizeof items + BLOSC2_MAX_OVERHEAD];

/* Failures that were reported, over all. */
static long reported;

/* The value of an expression, evaluated while memory is scarce. */
#define SCARCE(expression) (scarce = true, count_failure((int64_t)(expression)))

static int64_t count_failure(int64_t value) {
  scarce = false;
  reported += value < 0;
  return value;
}

/* As SCARCE, for pointers. */
#define SCARCE_POINTER(pointer, expression) \
  do {                                      \
    scarce = true;                          \
    (pointer) = (expression);               \
    scarce = false;                         \
    reported += (pointer) == NULL;          \
  } while (0)

static void chunks(const blosc2_cparams *cparams, const blosc2_dparams *dparams) {
  blosc2_context *cctx, *dctx = NULL;
  int64_t cbytes;
  SCARCE_POINTER(cctx, blosc2_create_cctx(*cparams));
  if (cctx == NULL) {
    return;
  }
  SCARCE_POINTER(dctx, blosc2_create_dctx(*dparams));
  if (dctx == NULL) {
    blosc2_free_ctx(cctx);
    return;
  }
  cbytes = SCARCE(blosc2_compress_ctx(cctx, items, BYTES, chunk, sizeof chunk));
  if (cbytes < 0) {
    cbytes = blosc2_compress_ctx(cctx, items, BYTES, chunk, sizeof chunk);
  }
  CHECK(cbytes > 0);
  if (SCARCE(blosc2_decompress_ctx(dctx, chunk, (int32_t)cbytes, back, BYTES)) < 0) {
    CHECK_INT(blosc2_decompress_ctx(dctx, chunk, (int32_t)cbytes, back, BYTES), BYTES);
  }
  CHECK_BYTES(back, items, BYTES);
  if (SCARCE(blosc2_getitem_ctx(dctx, chunk, (int32_t)cbytes, 70, 900, back, 3600)) >= 0) {
    CHECK_BYTES(back, items + 70, 3600);
  }
  SCARCE(blosc1_compress(5, 1, 4, BYTES, items, chunk, sizeof chunk));
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
}

/* A slice of the first chunk is the old one or the new one. */
static void set_slice(blosc2_schunk *schunk) {
  bool done = SCARCE(blosc2_schunk_set_slice_buffer(schunk, 500, 5500, items + 700)) >= 0;
  if (CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 500, 5500, back), 0)) {
    CHECK_BYTES(back, items + (done ? 700 : 500), 5000 * 4);
  }
}

/* Failing changes leave the number of chunks as it was. */
static void change_chunks(blosc2_schunk *schunk) {
  uint8_t *first = NULL;
  bool needs_free = false;
  int64_t order[8];
  int64_t i, nchunks = schunk->nchunks;
  int cbytes = blosc2_schunk_get_chunk(schunk, 0, &first, &needs_free);
  if (!CHECK(cbytes > 0 && cbytes <= (int)sizeof chunk)) {
    return;
  }
  /* It may be a part of the frame, which moves. */
  memcpy(chunk, first, (size_t)cbytes);
  if (needs_free) {
    free(first);
  }
  nchunks += SCARCE(blosc2_schunk_insert_chunk(schunk, 0, chunk, true)) >= 0;
  CHECK_INT(schunk->nchunks, nchunks);
  SCARCE(blosc2_schunk_update_chunk(schunk, nchunks - 1, chunk, true));
  CHECK_INT(schunk->nchunks, nchunks);
  nchunks -= SCARCE(blosc2_schunk_delete_chunk(schunk, 0)) >= 0;
  CHECK_INT(schunk->nchunks, nchunks);
  for (i = 0; i < nchunks; i++) {
    order[i] = nchunks - 1 - i;
  }
  SCARCE(blosc2_schunk_reorder_offsets(schunk, order));
}

static void read_all(blosc2_schunk *schunk) {
  int64_t i;
  for (i = 0; i < schunk->nchunks; i++) {
    CHECK_INT(blosc2_schunk_decompress_chunk(schunk, i, back, BYTES), BYTES);
  }
}

static void copies(blosc2_schunk *schunk, blosc2_storage *in_memory) {
  blosc2_schunk *copy;
  uint8_t *cframe = NULL;
  bool needs_free = false;
  int64_t len;
  SCARCE_POINTER(copy, blosc2_schunk_copy(schunk, in_memory));
  if (copy != NULL) {
    CHECK_INT(copy->nchunks, schunk->nchunks);
    blosc2_schunk_free(copy);
  }
  len = SCARCE(blosc2_schunk_to_buffer(schunk, &cframe, &needs_free));
  if (len > 0) {
    SCARCE_POINTER(copy, blosc2_schunk_from_buffer(cframe, len, true));
    if (copy != NULL) {
      blosc2_schunk_free(copy);
    }
    if (needs_free) {
      free(cframe);
    }
  }
}

static void schunks(blosc2_storage storage, const char *path) {
  blosc2_storage in_memory = storage;
  blosc2_schunk *schunk;
  int64_t coords[50];
  int64_t i, nchunks = 0;
  storage.urlpath = (char *)path;
  in_memory.contiguous = true;
  if (path != NULL) {
    blosc2_remove_urlpath(path);
  }
  SCARCE_POINTER(schunk, blosc2_schunk_new(&storage));
  if (schunk == NULL) {
    return;
  }
  for (i = 0; i < 3; i++) {
    nchunks += SCARCE(blosc2_schunk_append_buffer(schunk, items, BYTES)) >= 0;
    CHECK_INT(schunk->nchunks, nchunks);
  }
  if (SCARCE(blosc2_vlmeta_add(schunk, "layer", (uint8_t *)items, 20000, NULL)) >= 0) {
    SCARCE(blosc2_vlmeta_update(schunk, "layer", (uint8_t *)items, 30000, NULL));
  }
  for (i = 0; i < nchunks; i++) {
    if (SCARCE(blosc2_schunk_decompress_chunk(schunk, i, back, BYTES)) >= 0) {
      CHECK_BYTES(back, items, BYTES);
    }
  }
  if (nchunks > 0) {
    for (i = 0; i < 50; i++) {
      coords[i] = i * 7919 % (nchunks * ITEMS);
    }
    SCARCE(blosc2_schunk_get_sparse_buffer(schunk, 50, coords, back));
    set_slice(schunk);
    change_chunks(schunk);
  }
  copies(schunk, &in_memory);
  if (path != NULL) {
    blosc2_schunk_free(schunk);
    SCARCE_POINTER(schunk, blosc2_schunk_open(path));
    schunk = schunk != NULL ? schunk : blosc2_schunk_open(path);
  }
  if (CHECK(schunk != NULL)) {
    read_all(schunk);
    blosc2_schunk_free(schunk);
  }
  if (path != NULL) {
    blosc2_remove_urlpath(path);
  }
}

/* What is done with arrays, and how often it failed. */
enum {
  GET_SLICE_CBUFFER,
  SET_SLICE_CBUFFER,
  GET_SLICE,
  COPY,
  APPEND,
  GET_ORTHOGONAL,
  SET_ORTHOGONAL,
  ARRAY_OPERATIONS
};
static long failures_of[ARRAY_OPERATIONS];

/* Whether an operation with this code went well. */
static bool note(int operation, int64_t code) {
  failures_of[operation] += code < 0;
  return code >= 0;
}

static void change_array(b2nd_context_t *ctx, b2nd_array_t *array) {
  int64_t start[] = {10, 50}, stop[] = {50, 900}, box[] = {40, 850}, larger[] = {90, 1200};
  int64_t rows[] = {1, 5, 9, 40}, columns[] = {3, 700, 999}, counts[] = {4, 3};
  int64_t *selection[] = {rows, columns};
  int32_t few[12];
  b2nd_array_t *other = NULL;
  int64_t row;
  note(GET_SLICE_CBUFFER, SCARCE(b2nd_get_slice_cbuffer(array, start, stop, back, box, 40 * 850 * 4)));
  note(SET_SLICE_CBUFFER, SCARCE(b2nd_set_slice_cbuffer(items, box, 40 * 850 * 4, start, stop, array)));
  if (note(GET_SLICE, SCARCE(b2nd_get_slice(ctx, &other, array, start, stop)))) {
    b2nd_free(other);
  }
  if (note(COPY, SCARCE(b2nd_copy(ctx, array, &other)))) {
    b2nd_free(other);
  }
  SCARCE(b2nd_resize(array, larger, NULL)); /* takes little with so few chunks */
  row = array->shape[1];
  note(APPEND, SCARCE(b2nd_append(array, items, 20 * row * 4, 0)));
  note(GET_ORTHOGONAL, SCARCE(b2nd_get_orthogonal_selection(array, selection, counts, few, counts, sizeof few)));
  note(SET_ORTHOGONAL, SCARCE(b2nd_set_orthogonal_selection(array, selection, counts, few, counts, sizeof few)));
}

static void arrays(blosc2_storage storage, const char *path) {
  int64_t shape[] = {60, 1000};
  int32_t chunkshape[] = {20, 300}, blockshape[] = {7, 100};
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  int32_t *all;
  int64_t nbytes;
  storage.urlpath = (char *)path;
  if (path != NULL) {
    blosc2_remove_urlpath(path);
  }
  SCARCE_POINTER(ctx, b2nd_create_ctx(&storage, 2, shape, chunkshape, blockshape, "<i4", 0, NULL, 0));
  if (ctx == NULL) {
    return;
  }
  if (SCARCE(b2nd_from_cbuffer(ctx, &array, items, BYTES)) >= 0) {
    if (SCARCE(b2nd_to_cbuffer(array, back, BYTES)) >= 0) {
      CHECK_BYTES(back, items, BYTES);
    }
    change_array(ctx, array);
    nbytes = array->nitems * 4;
    all = (int32_t *)test_alloc((size_t)nbytes);
    CHECK_INT(b2nd_to_cbuffer(array, all, nbytes), 0);
    free(all);
    b2nd_free(array);
  }
  b2nd_free_ctx(ctx);
  if (path != NULL) {
    blosc2_remove_urlpath(path);
  }
}

/* Whether a super-chunk shows these two variable-length metalayers and no other. */
static bool shows(const blosc2_schunk *schunk) {
  return schunk->nvlmetalayers == 2 && strcmp(schunk->vlmetalayers[0]->name, "first") == 0 &&
         strcmp(schunk->vlmetalayers[1]->name, "second") == 0 && schunk->vlmetalayers[1]->content_len > LEAST;
}

/* A metalayer that was added is shown, if not at once, then to whoever asks or reads. */
static void layers_shown(blosc2_storage *storage, bool reads) {
  char *names[BLOSC2_MAX_VLMETALAYERS];
  int64_t added;
  all_that_follow = true;
  for (fail_at = 0; fail_at < 60; fail_at++) {
    blosc2_schunk *schunk;
    if (storage->urlpath != NULL) {
      blosc2_remove_urlpath(storage->urlpath);
    }
    schunk = blosc2_schunk_new(storage);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, 4000), 1);
    CHECK_INT(blosc2_vlmeta_add(schunk, "first", (uint8_t *)items, 40000, NULL), 0);
    atomic_store(&allocations, 0);
    added = SCARCE(blosc2_vlmeta_add(schunk, "second", (uint8_t *)items, 50000, NULL));
    if (added >= 0) {
      if (reads) {
        CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, back, 4000), 4000);
        CHECK(shows(schunk));
      }
      CHECK_INT(blosc2_vlmeta_get_names(schunk, names), 2);
      CHECK(shows(schunk) && names[1] == schunk->vlmetalayers[1]->name);
    }
    blosc2_schunk_free(schunk);
    if (atomic_load(&allocations) <= fail_at) {
      break;
    }
  }
  CHECK(fail_at > 0 && fail_at < 60);
}

static void layers(void) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  int kind;
  for (kind = 0; kind < 6; kind++) {
    storage.contiguous = kind / 2 > 0;
    storage.urlpath = kind / 2 == 2 ? FILE_PATH : NULL;
    layers_shown(&storage, kind % 2);
  }
  blosc2_remove_urlpath(FILE_PATH);
}

/* A frame's file with a metalayer of fixed length and one of variable length, or with three of the first kind. */
static void write_layers(blosc2_storage *storage, bool variable) {
  static const char *const fixed_names[] = {"a", "b", "c"};
  blosc2_schunk *schunk;
  int i;
  blosc2_remove_urlpath(FILE_PATH);
  schunk = blosc2_schunk_new(storage);
  for (i = 0; i < (variable ? 1 : 3); i++) {
    CHECK_INT(blosc2_meta_add(schunk, fixed_names[i], (uint8_t *)items, 100), i);
  }
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, 4000), 1);
  if (variable) {
    CHECK_INT(blosc2_vlmeta_add(schunk, "long", (uint8_t *)items, 50000, NULL), 0);
  }
  blosc2_schunk_free(schunk);
}

/* There are as many metalayers as are shown, also where there is no memory to show all of those that somebody wrote. */
static void fewer_layers(void) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  storage.contiguous = true;
  storage.urlpath = FILE_PATH;
  all_that_follow = true;
  fail_at = 0;
  do {
    blosc2_schunk *schunk;
    int i;
    write_layers(&storage, false);
    schunk = blosc2_schunk_open(FILE_PATH);
    write_layers(&storage, true);
    atomic_store(&allocations, 0);
    atomic_store(&failed, false);
    SCARCE(blosc2_schunk_refresh(schunk));
    for (i = 0; i < schunk->nmetalayers; i++) {
      CHECK(schunk->metalayers[i] != NULL);
    }
    for (i = 0; i < schunk->nvlmetalayers; i++) {
      CHECK(schunk->vlmetalayers[i] != NULL);
    }
    CHECK(blosc2_meta_exists(schunk, "none such") < 0);
    CHECK(blosc2_schunk_refresh(schunk) >= 0);
    CHECK_INT(schunk->nmetalayers, 1);
    CHECK_INT(schunk->nvlmetalayers, 1);
    blosc2_schunk_free(schunk);
    fail_at++;
  } while (atomic_load(&failed) && fail_at < 60);
  CHECK(fail_at > 2 && fail_at < 60);
  blosc2_remove_urlpath(FILE_PATH);
}

#define LONG 70000

static int32_t values[LONG + 20000];
static int32_t content[LONG + 20000];
static int32_t again[LONG + 20000];
static int32_t after[LONG + 20000];

/* A change of an array of five chunks of many blocks; most of them stay. */
static int change_blocks(int operation, b2nd_array_t *array) {
  int64_t start[] = {15990}, stop[] = {48010}, box[] = {32020}, count[] = {4};
  int64_t places[] = {40, 16900, 33000, 69000}, *selection[] = {places};
  switch (operation) {
    case 0:
      return b2nd_append(array, items, 20000 * 4, 0);
    case 1:
      return b2nd_set_slice_cbuffer(items, box, 32020 * 4, start, stop, array);
    default:
      return b2nd_set_orthogonal_selection(array, selection, count, items + 99, count, 16);
  }
}

/* What an array that is changed holds, while the allocation with the chosen number fails; whether it was changed. */
static bool blocks(int operation, b2nd_context_t *ctx, int32_t *found) {
  b2nd_array_t *array;
  int64_t shape[BLOSC2_MAX_DIM];
  int32_t chunkshape[BLOSC2_MAX_DIM], blockshape[BLOSC2_MAX_DIM], len;
  int8_t ndim;
  uint8_t *meta;
  int64_t value;
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, values, LONG * 4), 0);
  value = SCARCE(change_blocks(operation, array));
  CHECK_INT(b2nd_to_cbuffer(array, found, array->nitems * 4), 0);
  CHECK(blosc2_meta_get(array->sc, "b2nd", &meta, &len) >= 0);
  CHECK(b2nd_deserialize_meta(meta, len, &ndim, shape, chunkshape, blockshape, NULL, NULL) > 0);
  free(meta);
  CHECK_INT(shape[0], array->shape[0]);
  CHECK_INT(array->shape[0], operation == 0 && value == 0 ? LONG + 20000 : LONG);
  if (value < 0) {
    CHECK_INT(change_blocks(operation, array), 0);
    CHECK_INT(b2nd_to_cbuffer(array, again, array->nitems * 4), 0);
    CHECK_BYTES(again, after, (size_t)array->nitems * 4);
  }
  b2nd_free(array);
  return value == 0;
}

/* Arrays in memory change as a whole or not at all. */
static void many_blocks(void) {
  int64_t shape[] = {LONG};
  int32_t chunkshape[] = {16000}, blockshape[] = {32};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx;
  int operation, i;
  cparams.typesize = 4;
  cparams.compcode = BLOSC_LZ4;
  storage.cparams = &cparams;
  ctx = b2nd_create_ctx(&storage, 1, shape, chunkshape, blockshape, "<i4", 0, NULL, 0);
  for (i = 0; i < LONG; i++) {
    values[i] = i % 32 < 3 ? i : 7;
  }
  for (operation = 0; operation < 3; operation++) {
    all_that_follow = false;
    atomic_store(&allocations, 0);
    fail_at = LONG_MAX;
    memset(after, 0, sizeof after);
    CHECK(blocks(operation, ctx, after));
    for (fail_at = 0; fail_at < 400; fail_at++) {
      atomic_store(&allocations, 0);
      memset(content, 0, sizeof content);
      if (blocks(operation, ctx, content)) {
        CHECK_BYTES(content, after, sizeof after);
      } else {
        CHECK_BYTES(content, values, LONG * 4);
      }
      if (atomic_load(&allocations) <= fail_at) {
        break;
      }
    }
    CHECK(fail_at > 3 && fail_at < 400);
  }
  b2nd_free_ctx(ctx);
}

#define SHORT 5
#define CHUNKS 800
#define MANY (SHORT * CHUNKS)

/* A change of an array of many chunks. */
static int change_many(int operation, b2nd_array_t *array) {
  int64_t start[] = {3}, stop[] = {MANY - 3}, box[] = {MANY - 6};
  if (operation == 0) {
    return b2nd_set_slice_cbuffer(items + 9, box, box[0] * 4, start, stop, array);
  }
  return b2nd_delete(array, 0, 100 * SHORT, 600 * SHORT);
}

/* Arrays whose lists of chunks that come and go are what takes memory. */
static void many_chunks(const char *path) {
  int64_t shape[] = {MANY};
  int32_t chunkshape[] = {SHORT}, blockshape[] = {SHORT};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx;
  b2nd_array_t *array;
  int operation, rc;
  cparams.typesize = 4;
  storage.cparams = &cparams;
  storage.contiguous = true;
  storage.urlpath = (char *)path;
  ctx = b2nd_create_ctx(&storage, 1, shape, chunkshape, blockshape, "<i4", 0, NULL, 0);
  all_that_follow = false;
  for (operation = 0; operation < 2; operation++) {
    for (fail_at = 0; fail_at < 100; fail_at++) {
      blosc2_remove_urlpath(path);
      REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, MANY * 4), 0);
      atomic_store(&allocations, 0);
      rc = (int)SCARCE(change_many(operation, array));
      if (rc < 0) {
        CHECK_INT(b2nd_to_cbuffer(array, back, MANY * 4), 0);
        CHECK_BYTES(back, items, MANY * 4);
        CHECK_INT(change_many(operation, array), 0);
      }
      CHECK_INT(b2nd_to_cbuffer(array, back, array->nitems * 4), 0);
      if (operation == 0) {
        CHECK_BYTES(back + 3, items + 9, (MANY - 6) * 4);
      } else if (CHECK_INT(array->nitems, MANY - 600 * SHORT)) {
        CHECK_BYTES(back + 100 * SHORT, items + 700 * SHORT, 100 * SHORT * 4);
      }
      b2nd_free(array);
      if (atomic_load(&allocations) <= fail_at) {
        break;
      }
    }
    CHECK(fail_at > 3 && fail_at < 100);
  }
  b2nd_free_ctx(ctx);
  blosc2_remove_urlpath(path);
}

/* Descriptions of items that are as long as LEAST. */
static void long_dtypes(void) {
  const int64_t shape = 10;
  const int32_t chunkshape = 5, blockshape = 2;
  char dtype[LEAST + 1], *text;
  int8_t ndim, format;
  int64_t shape_back;
  int32_t chunkshape_back, blockshape_back;
  uint8_t *meta;
  int32_t len;
  memset(dtype, 'x', LEAST);
  dtype[LEAST] = 0;
  all_that_follow = false;
  for (fail_at = 0; fail_at < 20; fail_at++) {
    b2nd_context_t *ctx;
    b2nd_array_t *array, *view;
    bool added[] = {true, false};
    atomic_store(&allocations, 0);
    len = (int32_t)SCARCE(b2nd_serialize_meta(1, &shape, &chunkshape, &blockshape, dtype, 0, &meta));
    if (len >= 0) {
      if (SCARCE(b2nd_deserialize_meta(meta, len, &ndim, &shape_back, &chunkshape_back, &blockshape_back, &text,
                                       &format)) >= 0) {
        CHECK_INT(strcmp(text, dtype), 0);
        free(text);
      }
      free(meta);
    }
    SCARCE_POINTER(ctx, b2nd_create_ctx(NULL, 1, &shape, &chunkshape, &blockshape, dtype, 0, NULL, 0));
    if (ctx != NULL) {
      if (SCARCE(b2nd_zeros(ctx, &array)) >= 0) {
        if (SCARCE(b2nd_expand_dims(array, &view, added, 2)) >= 0) {
          b2nd_free(view);
        }
        b2nd_free(array);
      }
      b2nd_free_ctx(ctx);
    }
    if (atomic_load(&allocations) <= fail_at) {
      break;
    }
  }
  CHECK(fail_at > 8 && fail_at < 20);
}

#define FAR 5000
#define FEW 400

/* Items so far apart that each is read by itself. */
static void far_apart(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  static int64_t coords[FEW];
  static int16_t found[FEW];
  int16_t *all = (int16_t *)test_alloc(FEW * FAR * 2);
  uint32_t noise = 1;
  int i, rc;
  for (i = 0; i < FEW * FAR; i++) {
    noise = noise * 1103515245u + 12345u;
    all[i] = (int16_t)(noise >> 24);
  }
  cparams.typesize = 2;
  cparams.compcode = BLOSC_LZ4;
  cparams.blocksize = FEW * FAR * 2;
  storage.cparams = &cparams;
  storage.contiguous = true;
  storage.urlpath = FILE_PATH;
  blosc2_remove_urlpath(FILE_PATH);
  schunk = blosc2_schunk_new(&storage);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, all, FEW * FAR * 2), 1);
  for (i = 0; i < FEW; i++) {
    coords[i] = (int64_t)i * FAR;
  }
  all_that_follow = false;
  for (fail_at = 0; fail_at < 50; fail_at++) {
    atomic_store(&allocations, 0);
    rc = (int)SCARCE(blosc2_schunk_get_sparse_buffer(schunk, FEW, coords, found));
    for (i = 0; i < FEW && rc >= 0; i++) {
      CHECK_INT(found[i], all[coords[i]]);
    }
    if (atomic_load(&allocations) <= fail_at) {
      break;
    }
  }
  CHECK(fail_at > 0 && fail_at < 50);
  CHECK_INT(rc, 0);
  blosc2_schunk_free(schunk);
  blosc2_remove_urlpath(FILE_PATH);
  free(all);
}

/* Printing what an array is that has such a description. */
static void printed(void) {
  const int64_t shape = 10;
  const int32_t chunkshape = 5, blockshape = 2;
  char dtype[LEAST + 1];
  b2nd_context_t *ctx;
  b2nd_array_t *array;
  int64_t rc;
  memset(dtype, 'x', LEAST);
  dtype[LEAST] = 0;
  ctx = b2nd_create_ctx(NULL, 1, &shape, &chunkshape, &blockshape, dtype, 0, NULL, 0);
  REQUIRE_INT(b2nd_zeros(ctx, &array), 0);
  all_that_follow = false;
  fail_at = 0;
  do {
    atomic_store(&allocations, 0);
    rc = SCARCE(b2nd_print_meta(array));
    CHECK(rc == 0 || rc == BLOSC2_ERROR_MEMORY_ALLOC);
    fail_at++;
  } while (atomic_load(&allocations) >= fail_at && fail_at < 20);
  CHECK_INT(rc, 0);
  CHECK(fail_at > 2);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
}

/* Dictionaries: that there is no memory for one does not make it a bad one. */
static void dictionaries(void) {
  static const uint8_t codecs[] = {BLOSC_LZ4, BLOSC_ZSTD};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_context *cctx, *dctx;
  int64_t rc;
  int32_t cbytes;
  int i;
  all_that_follow = false;
  cparams.typesize = 4;
  cparams.blocksize = 8000;
  cparams.use_dict = 1;
  for (i = 0; i < 2; i++) {
    cparams.compcode = codecs[i];
    fail_at = 0;
    do {
      cctx = blosc2_create_cctx(cparams);
      dctx = blosc2_create_dctx(dparams);
      atomic_store(&allocations, 0);
      rc = SCARCE(blosc2_compress_ctx(cctx, items, BYTES, chunk, sizeof chunk));
      CHECK(rc > 0 || rc == BLOSC2_ERROR_MEMORY_ALLOC);
      cbytes = blosc2_compress_ctx(cctx, items, BYTES, chunk, sizeof chunk);
      CHECK(cbytes > 0);
      rc = SCARCE(blosc2_decompress_ctx(dctx, chunk, cbytes, back, BYTES));
      CHECK(rc == BYTES || rc == BLOSC2_ERROR_MEMORY_ALLOC);
      blosc2_free_ctx(cctx);
      blosc2_free_ctx(dctx);
      fail_at++;
    } while (atomic_load(&allocations) >= fail_at && fail_at < 200);
    CHECK(fail_at > 3 && fail_at < 200);
  }
}

/* The operations on one kind of storage, with one codec. */
static void run(int kind, const blosc2_cparams *cparams, const blosc2_dparams *dparams) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_cparams compression = *cparams;
  blosc2_dparams decompression = *dparams;
  storage.cparams = &compression;
  storage.dparams = &decompression;
  storage.contiguous = kind == 1 || kind == 2;
  switch (kind) {
    case 0:
      chunks(cparams, dparams);
      schunks(storage, NULL);
      arrays(storage, NULL);
      break;
    case 1:
      schunks(storage, NULL);
      break;
    case 2:
      schunks(storage, FILE_PATH);
      arrays(storage, ARRAY_PATH);
      break;
    default:
      schunks(storage, DIR_PATH);
  }
}

int main(void) {
  static const uint8_t codecs[] = {BLOSC_BLOSCLZ, BLOSC_LZ4, BLOSC_ZLIB, BLOSC_ZSTD};
  /* With all that follow, and every other one alone: there are hundreds. */
  static const long steps[] = {1, 2};
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  int kind, i;
  all_that_follow = true;
  if (!are_used()) {
    test_skip("all of it: another allocator is used, whose failures are not ours to choose");
    CHECK(true);
    return test_end();
  }
  for (i = 0; i < ITEMS; i++) {
    items[i] = i * 37 ^ i >> 3 ^ i * (i % 1000) >> 9;
  }
  blosc2_init();
  for (kind = 0; kind < 4; kind++) {
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    cparams.typesize = 4;
    cparams.compcode = codecs[kind];
    cparams.nthreads = dparams.nthreads = (int16_t)(1 + kind % 2);
    for (i = 0; i < 2; i++) {
      all_that_follow = i == 0;
      fail_at = 0;
      do {
        atomic_store(&allocations, 0);
        atomic_store(&failed, false);
        run(kind, &cparams, &dparams);
        fail_at += steps[i];
      } while (atomic_load(&failed) && fail_at < 1000);
      CHECK(fail_at > 10 && fail_at < 1000);
    }
  }
  CHECK(reported > 50);
  for (i = 0; i < ARRAY_OPERATIONS; i++) {
    CHECK(failures_of[i] > 0);
  }
  layers();
  fewer_layers();
  many_blocks();
  many_chunks(NULL);
  many_chunks(ARRAY_PATH);
  long_dtypes();
  printed();
  dictionaries();
  far_apart();
  blosc2_destroy();
  return test_end();
}

#endif
