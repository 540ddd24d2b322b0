/* One thread changes a super-chunk or an array while many read it through the same handle: each read gives data of one
   moment, and the thread that changes it gets its turn. */

#include "test.h"

#include <b2nd.h>
#include <pthread.h>

#define PATH "test_writer.b2frame"

enum { ITEMS = 5000, CHUNKS = 6, CHANGES = 120, READERS = 8, SIDE = 60 };

static const struct place {
  bool contiguous;
  const char *urlpath;
} places[4] = {{false, NULL}, {true, NULL}, {true, PATH}, {false, PATH}};

/* What the threads share. */
typedef struct {
  blosc2_schunk *schunk;
  b2nd_array_t *array;
  pthread_mutex_t lock;
  int done;
} shared;

/* What a reader found. */
typedef struct {
  shared *all;
  long reads, mixed, failed;
} reader;

static int is_done(shared *all) {
  int done;
  pthread_mutex_lock(&all->lock);
  done = all->done;
  pthread_mutex_unlock(&all->lock);
  return done;
}

static int all_equal(const int32_t *items, int count) {
  int i;
  for (i = 1; i < count; i++) {
    if (items[i] != items[0]) {
      return 0;
    }
  }
  return 1;
}

/* Counts a read that gave `items`, or failed. */
static void count(reader *own, int ok, const int32_t *items, int nitems) {
  own->reads++;
  own->failed += !ok;
  own->mixed += ok && !all_equal(items, nitems);
}

/* Reads chunks, slices, items and a metalayer, each of which holds one value at any moment. */
static void *read_schunk(void *argument) {
  reader *own = (reader *)argument;
  blosc2_schunk *schunk = own->all->schunk;
  const int64_t numbers[3] = {4999, 1, 700};
  int32_t items[ITEMS];
  int n = 0;
  while (!is_done(own->all) || own->reads < 4) {
    uint8_t *content = NULL;
    int32_t len = 0, value[5];
    n = (n + 1) % CHUNKS;
    count(own, blosc2_schunk_decompress_chunk(schunk, n, items, sizeof items) == (int)sizeof items, items, ITEMS);
    count(own, blosc2_schunk_get_slice_buffer(schunk, n * ITEMS + 10, n * ITEMS + 900, items) == 0, items, 890);
    count(own, blosc2_schunk_get_sparse_buffer(schunk, 3, numbers, items) == 0, items, 3);
    len = blosc2_vlmeta_get(schunk, "value", &content, &len) >= 0 ? len : 0;
    if (len == (int32_t)sizeof value) {
      memcpy(value, content, sizeof value);
    }
    count(own, len == (int32_t)sizeof value, value, 5);
    free(content);
  }
  return NULL;
}

/* Changes chunks in every way that leaves `CHUNKS` of them. */
static void change_schunk(shared *all) {
  int32_t items[ITEMS], value, i;
  for (value = 1; value <= CHANGES; value++) {
    uint8_t chunk[ITEMS * 4 + BLOSC2_MAX_OVERHEAD];
    const int64_t at = value % CHUNKS;
    for (i = 0; i < ITEMS; i++) {
      items[i] = value;
    }
    switch (value % 4) {
      case 0:
        CHECK_INT(blosc2_schunk_set_slice_buffer(all->schunk, at * ITEMS, (at + 1) * ITEMS, items), 0);
        break;
      case 1:
        CHECK(blosc2_compress_ctx(all->schunk->cctx, items, sizeof items, chunk, sizeof chunk) > 0);
        CHECK_INT(blosc2_schunk_update_chunk(all->schunk, at, chunk, true), CHUNKS);
        break;
      case 2:
        CHECK_INT(blosc2_schunk_append_buffer(all->schunk, items, sizeof items), CHUNKS + 1);
        CHECK_INT(blosc2_schunk_delete_chunk(all->schunk, at), CHUNKS);
        break;
      default:
        CHECK_INT(blosc2_vlmeta_update(all->schunk, "value", (uint8_t *)items, 20, NULL), 0);
    }
  }
}

/* Takes chunks, which stay where they are while others are added. */
static void *take_chunks(void *argument) {
  reader *own = (reader *)argument;
  blosc2_context *dctx = blosc2_create_dctx(BLOSC2_DPARAMS_DEFAULTS);
  int32_t items[ITEMS];
  int n = 0;
  while (!is_done(own->all) || own->reads < 4) {
    uint8_t *chunk = NULL;
    bool needs_free = false;
    int cbytes;
    n = (n + 5) % (CHUNKS + CHANGES);
    cbytes = blosc2_schunk_get_chunk(own->all->schunk, n, &chunk, &needs_free);
    if (cbytes < 0 && n >= CHUNKS) {
      continue; /* not there yet */
    }
    count(own, cbytes > 0 && blosc2_decompress_ctx(dctx, chunk, cbytes, items, sizeof items) == (int)sizeof items, items,
          ITEMS);
    if (needs_free) {
      free(chunk);
    }
  }
  blosc2_free_ctx(dctx);
  return NULL;
}

static void add_chunks(shared *all) {
  int32_t items[ITEMS], value, i;
  for (value = 1; value <= CHANGES; value++) {
    for (i = 0; i < ITEMS; i++) {
      items[i] = value;
    }
    CHECK_INT(blosc2_schunk_append_buffer(all->schunk, items, sizeof items), CHUNKS + value);
  }
}

/* Reads boxes, each row of which holds one value at any moment. */
static void *read_array(void *argument) {
  reader *own = (reader *)argument;
  int32_t items[SIDE];
  int64_t row = 0;
  while (!is_done(own->all) || own->reads < 4) {
    int64_t start[2] = {row, 3}, stop[2] = {row + 1, SIDE};
    const int64_t shape[2] = {1, SIDE - 3};
    row = (row + 7) % SIDE;
    count(own, b2nd_get_slice_cbuffer(own->all->array, start, stop, items, shape, (SIDE - 3) * 4) == 0, items, SIDE - 3);
  }
  return NULL;
}

static void change_array(shared *all) {
  int32_t items[SIDE], value, i;
  for (value = 1; value <= CHANGES; value++) {
    const int64_t row = value * 11 % SIDE, start[2] = {row, 0}, stop[2] = {row + 1, SIDE}, shape[2] = {1, SIDE};
    for (i = 0; i < SIDE; i++) {
      items[i] = value;
    }
    CHECK_INT(b2nd_set_slice_cbuffer(items, shape, sizeof items, start, stop, all->array), 0);
  }
}

/* Runs readers beside a thread that changes what they read. */
static void run(shared *all, void *(*read)(void *), void (*change)(shared *)) {
  pthread_t threads[READERS];
  reader readers[READERS];
  int i;
  memset(readers, 0, sizeof readers);
  pthread_mutex_init(&all->lock, NULL);
  all->done = 0;
  for (i = 0; i < READERS; i++) {
    readers[i].all = all;
    CHECK_INT(pthread_create(&threads[i], NULL, read, &readers[i]), 0);
  }
  change(all);
  pthread_mutex_lock(&all->lock);
  all->done = 1;
  pthread_mutex_unlock(&all->lock);
  for (i = 0; i < READERS; i++) {
    pthread_join(threads[i], NULL);
    CHECK(readers[i].reads > 0);
    CHECK_INT(readers[i].failed, 0);
    CHECK_INT(readers[i].mixed, 0);
  }
  pthread_mutex_destroy(&all->lock);
}

static blosc2_storage storage_of(const struct place *place, blosc2_cparams *cparams) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  cparams->typesize = 4;
  storage.cparams = cparams;
  storage.contiguous = place->contiguous;
  storage.urlpath = (char *)place->urlpath;
  blosc2_remove_urlpath(PATH);
  return storage;
}

static void test_schunk(const struct place *place) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = storage_of(place, &cparams);
  int32_t items[ITEMS] = {0};
  shared all = {NULL, NULL, PTHREAD_MUTEX_INITIALIZER, 0};
  int i;
  all.schunk = blosc2_schunk_new(&storage);
  REQUIRE(all.schunk != NULL);
  for (i = 0; i < CHUNKS; i++) {
    CHECK_INT(blosc2_schunk_append_buffer(all.schunk, items, sizeof items), i + 1);
  }
  CHECK_INT(blosc2_vlmeta_add(all.schunk, "value", (uint8_t *)items, 20, NULL), 0);
  run(&all, read_schunk, change_schunk);
  if (!place->contiguous || place->urlpath != NULL) { /* a frame in memory moves as it grows */
    run(&all, take_chunks, add_chunks);
  }
  blosc2_schunk_free(all.schunk);
}

static void test_array(const struct place *place) {
  const int64_t shape[2] = {SIDE, SIDE};
  const int32_t chunkshape[2] = {20, SIDE}, blockshape[2] = {5, SIDE};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = storage_of(place, &cparams);
  b2nd_context_t *ctx = b2nd_create_ctx(&storage, 2, shape, chunkshape, blockshape, NULL, 0, NULL, 0);
  shared all = {NULL, NULL, PTHREAD_MUTEX_INITIALIZER, 0};
  REQUIRE_INT(b2nd_zeros(ctx, &all.array), 0);
  run(&all, read_array, change_array);
  b2nd_free(all.array);
  b2nd_free_ctx(ctx);
}

int main(void) {
  size_t i;
  blosc2_init();
  for (i = 0; i < 4; i++) {
    test_schunk(&places[i]);
    test_array(&places[i]);
  }
  blosc2_remove_urlpath(PATH);
  blosc2_destroy();
  return test_end();
}
