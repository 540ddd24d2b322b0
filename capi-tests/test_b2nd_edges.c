/* Arrays at their limits: 16 dimensions, large items, callbacks, hostile metalayers, arguments out of range, threads,
   processes, more chunks than there can be, and what copies of views store. */

#include "arrays.h"

#include <blosc2/codecs-registry.h>
#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATH "test_b2nd_edges.b2nd"

static const struct place places[4] = {{false, NULL}, {true, NULL}, {true, PATH}, {false, PATH}};

/* An array of 32-bit integers that count from 0. */
static b2nd_array_t *counting(const struct place *place, int8_t ndim, const int64_t *shape, const int32_t *chunkshape,
                              const int32_t *blockshape) {
  return make_counting(place, 4, 0, ndim, shape, chunkshape, blockshape);
}

static void test_sixteen_dimensions(const struct place *place) {
  const int64_t shape[16] = {2, 3, 1, 1, 1, 1, 8, 1, 2, 2, 1, 1, 1, 1, 1, 2};
  const int32_t chunk[16] = {1, 2, 1, 1, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1};
  const int32_t block[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  int64_t start[16] = {0}, stop[16], boxshape[16], grown[16];
  int32_t items[384], box[64];
  b2nd_array_t *array = counting(place, 16, shape, chunk, block), *again = NULL;
  int32_t i, meta_len;
  uint8_t *meta, *cframe;
  int64_t cframe_len;
  bool needs_free;
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  for (i = 0; i < 384; i++) {
    CHECK_INT(items[i], i);
  }
  REQUIRE_INT(blosc2_meta_get(array->sc, "b2nd", &meta, &meta_len), 0);
  /* The array markers run out of bits; files like that exist. */
  CHECK_INT(meta[3], 0xa0);
  free(meta);
  /* The second of three rows of the second half: 64 items. */
  memcpy(stop, shape, sizeof shape);
  memcpy(boxshape, shape, sizeof shape);
  start[0] = start[1] = 1;
  stop[1] = 2;
  boxshape[0] = boxshape[1] = 1;
  CHECK_INT(b2nd_get_slice_cbuffer(array, start, stop, box, boxshape, sizeof box), 0);
  for (i = 0; i < 64; i++) {
    CHECK_INT(box[i], 192 + 64 + i);
    box[i] = -i;
  }
  CHECK_INT(b2nd_set_slice_cbuffer(box, boxshape, sizeof box, start, stop, array), 0);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  for (i = 0; i < 384; i++) {
    CHECK_INT(items[i], i >= 256 && i < 320 ? 256 - i : i);
  }
  REQUIRE_INT(b2nd_to_cframe(array, &cframe, &cframe_len, &needs_free), 0);
  REQUIRE_INT(b2nd_from_cframe(cframe, cframe_len, true, &again), 0);
  CHECK_INT(again->ndim, 16);
  if (needs_free) {
    free(cframe);
  }
  memcpy(grown, shape, sizeof shape);
  grown[15] = 3;
  CHECK_INT(b2nd_resize(again, grown, NULL), 0);
  CHECK_INT(again->nitems, 576);
  CHECK_INT(b2nd_get_slice_cbuffer(again, start, stop, box, boxshape, sizeof box), 0);
  CHECK_INT(box[63], -63);
  b2nd_free(again);
  b2nd_free(array);
}

/* Items that a chunk cannot tell the size of. */
static void test_large_items(const struct place *place, int32_t typesize) {
  enum { N = 100 };
  const int64_t shape[1] = {N}, slices[3][2] = {{0, 1}, {5, 67}, {0, N}};
  const int32_t chunk[1] = {32}, block[1] = {2};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  size_t size = (size_t)typesize * N;
  uint8_t *data = test_make_data(TEST_RAMP, size), *back = (uint8_t *)test_alloc(size);
  int64_t coords[3] = {99, 0, 33}, length;
  int i;
  cparams.typesize = typesize;
  ctx = make_ctx(place, &cparams, &dparams, 1, shape, chunk, block);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, data, (int64_t)size), 0);
  CHECK_INT(array->sc->typesize, typesize);
  for (i = 0; i < 3; i++) {
    length = slices[i][1] - slices[i][0];
    CHECK_INT(b2nd_get_slice_cbuffer(array, &slices[i][0], &slices[i][1], back, &length, length * typesize), 0);
    CHECK_BYTES(back, data + slices[i][0] * typesize, (size_t)(length * typesize));
  }
  CHECK_INT(b2nd_get_sparse_cbuffer(array, 3, coords, back, (int64_t)typesize * 3), 0);
  for (i = 0; i < 3; i++) {
    CHECK_BYTES(back + (size_t)i * (size_t)typesize, data + coords[i] * typesize, (size_t)typesize);
  }
  /* One item at the border of two blocks. */
  length = 1;
  memset(data + 7 * (size_t)typesize, 0x5a, (size_t)typesize);
  CHECK_INT(b2nd_set_slice_cbuffer(data + 7 * (size_t)typesize, &length, typesize, (const int64_t[]){7},
                                   (const int64_t[]){8}, array),
            0);
  CHECK_INT(b2nd_to_cbuffer(array, back, (int64_t)size), 0);
  CHECK_BYTES(back, data, size);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
  free(data);
  free(back);
}

/* Adds 1000 times the number of the chunk. */
static int add_chunk_number(blosc2_prefilter_params *params) {
  const int32_t *in = (const int32_t *)params->input;
  int32_t *out = (int32_t *)params->output;
  int32_t i;
  for (i = 0; i < params->output_size / 4; i++) {
    out[i] = in[i] + 1000 * (int32_t)params->nchunk;
  }
  return 0;
}

static int add_one(blosc2_postfilter_params *params) {
  const int32_t *in = (const int32_t *)params->input;
  int32_t *out = (int32_t *)params->output;
  int32_t i;
  for (i = 0; i < params->size / 4; i++) {
    out[i] = in[i] + 1;
  }
  return 0;
}

/* Prefilters run on each chunk that is written, postfilters on each block that is read, also when old values are read to
   be written again. */
static void test_callbacks(const struct place *place) {
  const int64_t shape[2] = {8, 6}, start[2] = {5, 1}, stop[2] = {6, 2}, one[2] = {1, 1};
  const int32_t chunk[2] = {4, 3}, block[2] = {2, 3};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_prefilter_params preparams;
  blosc2_postfilter_params postparams;
  int32_t items[48], back[48], value = -5;
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  int32_t i, nchunk;
  memset(&preparams, 0, sizeof preparams);
  memset(&postparams, 0, sizeof postparams);
  cparams.typesize = 4;
  cparams.prefilter = add_chunk_number;
  cparams.preparams = &preparams;
  dparams.postfilter = add_one;
  dparams.postparams = &postparams;
  for (i = 0; i < 48; i++) {
    items[i] = i;
  }
  ctx = make_ctx(place, &cparams, &dparams, 2, shape, chunk, block);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, sizeof items), 0);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  for (i = 0; i < 48; i++) {
    nchunk = i / 6 / 4 * 2 + i % 6 / 3;
    CHECK_INT(back[i], i + 1000 * nchunk + 1);
  }
  /* One item of chunk 2: its chunk goes through both callbacks once more. */
  CHECK_INT(b2nd_set_slice_cbuffer(&value, one, 4, start, stop, array), 0);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  for (i = 0; i < 48; i++) {
    nchunk = i / 6 / 4 * 2 + i % 6 / 3;
    if (i == 5 * 6 + 1) {
      CHECK_INT(back[i], value + 2000 + 1);
    } else if (nchunk == 2) {
      CHECK_INT(back[i], i + 2 * 2000 + 2);
    } else {
      CHECK_INT(back[i], i + 1000 * nchunk + 1);
    }
  }
  CHECK_INT(b2nd_get_slice_cbuffer(array, start, stop, &value, one, 4), 0);
  CHECK_INT(value, -5 + 2000 + 1);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
}

#define TASKS 4

/* Calls of `copy_alone` under way, by the number of the task, and how often one came in while another one had its number. */
static int under_way[TASKS], shared;

static int copy_alone(blosc2_postfilter_params *params) {
  const struct timespec moment = {0, 200000};
  int tid = params->tid;
  if (tid < 0 || tid >= TASKS) {
    return -1;
  }
  if (__atomic_add_fetch(&under_way[tid], 1, __ATOMIC_SEQ_CST) > 1) {
    __atomic_add_fetch(&shared, 1, __ATOMIC_SEQ_CST);
  }
  nanosleep(&moment, NULL);
  memcpy(params->output, params->input, (size_t)params->size);
  __atomic_sub_fetch(&under_way[tid], 1, __ATOMIC_SEQ_CST);
  return 0;
}

struct task {
  void (*work)(void *);
  void *data;
};

static void *run_task(void *arg) {
  struct task *task = (struct task *)arg;
  task->work(task->data);
  return NULL;
}

/* Runs each job on a thread of its own, all at once. */
static void on_threads(void *data, void (*work)(void *), int count, size_t size, void *jobs) {
  pthread_t threads[TASKS];
  struct task tasks[TASKS];
  int i;
  (void)data;
  CHECK(count <= TASKS);
  for (i = 0; i < count && i < TASKS; i++) {
    tasks[i].work = work;
    tasks[i].data = (char *)jobs + (size_t)i * size;
    CHECK_INT(pthread_create(&threads[i], NULL, run_task, &tasks[i]), 0);
  }
  for (i = 0; i < count && i < TASKS; i++) {
    CHECK_INT(pthread_join(threads[i], NULL), 0);
  }
}

/* A postfilter may keep memory for each task: no two calls at once are given the same number. */
static void test_postfilters_of_tasks(const struct place *place) {
  const int64_t shape[2] = {40, 30}, start[2] = {3, 5}, stop[2] = {37, 28}, extents[2] = {34, 23};
  const int32_t chunk[2] = {20, 30}, block[2] = {5, 10};
  int64_t rows[3] = {1, 18, 33}, columns[3] = {2, 15, 29}, counts[2] = {3, 3};
  int64_t *selection[2] = {rows, columns};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_postfilter_params postparams;
  static int32_t items[1200], back[1200];
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  int i;
  memset(&postparams, 0, sizeof postparams);
  cparams.typesize = 4;
  dparams.nthreads = TASKS;
  dparams.postfilter = copy_alone;
  dparams.postparams = &postparams;
  for (i = 0; i < 1200; i++) {
    items[i] = i;
  }
  blosc2_set_threads_callback(on_threads, NULL);
  ctx = make_ctx(place, &cparams, &dparams, 2, shape, chunk, block);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, sizeof items), 0);
  shared = 0;
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  CHECK_BYTES(back, items, sizeof items);
  CHECK_INT(shared, 0);
  CHECK_INT(b2nd_get_slice_cbuffer(array, start, stop, back, extents, sizeof back), 0);
  CHECK_INT(back[23], items[4 * 30 + 5]);
  CHECK_INT(shared, 0);
  CHECK_INT(b2nd_get_orthogonal_selection(array, selection, counts, back, counts, 36), 0);
  CHECK_INT(back[5], items[18 * 30 + 29]);
  CHECK_INT(shared, 0);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
  blosc2_set_threads_callback(NULL, NULL);
}

/* The array that `add_item_20` reads; none while it is made. */
static b2nd_array_t *being_written;

/* Adds item 20 of the array itself, as it is now. */
static int add_item_20(blosc2_prefilter_params *params) {
  const int64_t start = 20, stop = 21, one = 1;
  const int32_t *in = (const int32_t *)params->input;
  int32_t *out = (int32_t *)params->output;
  int32_t item = 0, i;
  if (being_written != NULL && b2nd_get_slice_cbuffer(being_written, &start, &stop, &item, &one, 4) != 0) {
    return -1;
  }
  for (i = 0; i < params->output_size / 4; i++) {
    out[i] = in[i] + item;
  }
  return 0;
}

/* A prefilter may read the array that is being written. */
static void test_prefilter_reads_array(const struct place *place) {
  const int64_t shape = 24, start = 1, stop = 2, one = 1;
  const int32_t chunk = 8, block = 4;
  int64_t selected[2] = {9, 22}, nselected = 2, *selection = selected;
  int32_t values[2] = {300, 400};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_prefilter_params preparams;
  int32_t items[24], back[24], value = 100;
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  int32_t i;
  memset(&preparams, 0, sizeof preparams);
  cparams.typesize = 4;
  cparams.prefilter = add_item_20;
  cparams.preparams = &preparams;
  for (i = 0; i < 24; i++) {
    items[i] = i;
  }
  ctx = make_ctx(place, &cparams, &dparams, 1, &shape, &chunk, &block);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, sizeof items), 0);
  being_written = array;
  CHECK_INT(b2nd_set_slice_cbuffer(&value, &one, 4, &start, &stop, array), 0);
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  for (i = 0; i < 24; i++) {
    CHECK_INT(back[i], (i == 1 ? 100 : i) + (i < 8 ? 20 : 0));
  }
  CHECK_INT(b2nd_set_orthogonal_selection(array, &selection, &nselected, values, &nselected, sizeof values), 0);
  being_written = NULL;
  CHECK_INT(b2nd_to_cbuffer(array, back, sizeof back), 0);
  CHECK_INT(back[9], 300 + 20);
  CHECK_INT(back[22], 400 + 20);
  CHECK_INT(back[20], 20 + 20);
  b2nd_free(array);
  b2nd_free_ctx(ctx);
}

enum { FEW = 10, MANY = 20 };

/* What `look_at_array` finds in the array. */
static struct {
  b2nd_array_t *array;
  int calls, failures, failing_call;
  int64_t shape;
  int32_t first[MANY], last[MANY];
} looked;

/* Reads all of the array that is being changed. */
static int look_at_array(blosc2_prefilter_params *params) {
  const int64_t start = 0;
  int64_t shape;
  memcpy(params->output, params->input, (size_t)params->output_size);
  if (looked.array == NULL) {
    return 0;
  }
  looked.calls++;
  shape = looked.array->shape[0];
  if (shape > MANY ||
      b2nd_get_slice_cbuffer(looked.array, &start, &shape, looked.last, &shape, sizeof looked.last) != 0) {
    looked.failures++;
  }
  if (looked.calls == 1) {
    looked.shape = shape;
    memcpy(looked.first, looked.last, sizeof looked.first);
  }
  return looked.calls == looked.failing_call;
}

/* Item `i` of an array that counts from 0, after `count` items that count from 100 were inserted at item `at`. */
static int32_t grown_item(int64_t at, int64_t count, int64_t i) {
  return (int32_t)(i < at ? i : i < at + count ? 100 + i - at : i - count);
}

/* Checks the items of an array that grew unless it `failed`. */
static void check_grown(b2nd_array_t *array, int64_t at, int64_t count, bool failed) {
  int32_t items[MANY];
  int64_t i, len = failed ? FEW : FEW + count;
  CHECK_INT(array->shape[0], len);
  CHECK_INT(array->sc->nchunks, (len + 3) / 4);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  for (i = 0; i < len; i++) {
    CHECK_INT(items[i], failed ? i : grown_item(at, count, i));
  }
}

/* A prefilter may read the array that grows: it has its new shape, with zeros where items are still missing. */
static void test_prefilter_reads_growing_array(const struct place *place, int way, int failing_call) {
  static const int64_t ats[3] = {FEW, 4, FEW}, counts[3] = {5, 8, 9};
  const int64_t few = FEW, at = ats[way], count = counts[way];
  const int32_t chunk = 4, block = 2;
  const struct place memory = {false, NULL};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_prefilter_params preparams;
  int32_t items[MANY];
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL, *other, *joined = NULL;
  int64_t i;
  int rc;
  memset(&preparams, 0, sizeof preparams);
  memset(&looked, 0, sizeof looked);
  cparams.typesize = 4;
  cparams.prefilter = look_at_array;
  cparams.preparams = &preparams;
  for (i = 0; i < FEW; i++) {
    items[i] = (int32_t)i;
  }
  ctx = make_ctx(place, &cparams, &dparams, 1, &few, &chunk, &block);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, few * 4), 0);
  other = make_counting(&memory, 4, 100, 1, &count, &chunk, &block);
  for (i = 0; i < count; i++) {
    items[i] = (int32_t)(100 + i);
  }
  looked.array = array;
  looked.failing_call = failing_call;
  rc = way == 0   ? b2nd_append(array, items, count * 4, 0)
       : way == 1 ? b2nd_insert(array, items, count * 4, 0, at)
                  : b2nd_concatenate(ctx, array, other, 0, false, &joined);
  looked.array = NULL;
  CHECK_INT(rc, failing_call > 0 ? BLOSC2_ERROR_FAILURE : 0);
  CHECK(looked.calls >= 4 || failing_call > 0);
  CHECK_INT(looked.failures, 0);
  CHECK_INT(looked.shape, FEW + count);
  for (i = 0; i < FEW + count; i++) {
    const bool is_new = i >= at && i < at + count;
    CHECK_INT(looked.first[i], is_new ? 0 : grown_item(at, count, i));
    CHECK(looked.last[i] == 0 || looked.last[i] == grown_item(at, count, i));
  }
  /* Chunks before the last one were there when that was made. */
  CHECK_INT(looked.last[at], failing_call == 1 ? 0 : 100);
  check_grown(array, at, count, failing_call > 0);
  b2nd_free(array);
  if (place->urlpath != NULL) {
    REQUIRE_INT(b2nd_open(place->urlpath, &array), 0);
    check_grown(array, at, count, failing_call > 0);
    b2nd_free(array);
  }
  b2nd_free(other);
  b2nd_free_ctx(ctx);
}

/* What b2nd_from_schunk says to the metalayer of shape (5,4), chunks (3,3), blocks (2,2), after `change`. */
static int opened_as(uint8_t *meta, int32_t len) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_schunk *schunk;
  b2nd_array_t *array = NULL;
  int code;
  cparams.typesize = 1;
  storage.cparams = &cparams;
  schunk = blosc2_schunk_new(&storage);
  CHECK(blosc2_meta_add(schunk, "b2nd", meta, len) >= 0);
  code = b2nd_from_schunk(schunk, &array);
  if (code < 0) {
    CHECK(array == NULL);
    blosc2_schunk_free(schunk);
  } else {
    b2nd_free(array);
  }
  return code;
}

static void put64(uint8_t *at, int64_t value) {
  int i;
  for (i = 0; i < 8; i++) {
    at[i] = (uint8_t)((uint64_t)value >> (56 - 8 * i));
  }
}

static void put32(uint8_t *at, int32_t value) {
  int i;
  for (i = 0; i < 4; i++) {
    at[i] = (uint8_t)((uint32_t)value >> (24 - 8 * i));
  }
}

static void test_hostile_metalayers(void) {
  const int64_t shape[2] = {5, 4};
  const int32_t chunk[2] = {3, 3}, block[2] = {2, 2};
  uint8_t *good, meta[64];
  int32_t len = b2nd_serialize_meta(2, shape, chunk, block, NULL, 0, &good), i;
  struct change {
    int at, size;
    int64_t value;
    int code;
  } changes[] = {
      {0, 1, 0, 0},      {1, 1, 0xff, 0},    {2, 1, 17, -1},          {2, 1, 255, -1},
      {3, 1, 0, 0},      {4, 1, 0, 0},       {5, 8, 0, 0},            {5, 8, -1, -12},
      {5, 8, INT64_MIN, -12}, {5, 8, INT64_MAX, -12}, {5, 8, (int64_t)1 << 62, -12},
      {24, 4, 0, -12},   {24, 4, -1, -12},   {24, 4, INT32_MAX, -12}, {35, 4, 0, -12},
      {35, 4, 9, 0},     {35, 4, -1, -12},   {35, 4, INT32_MAX, -12}, {45, 1, 0xd9, -1},
      {46, 4, 4, -1},    {46, 4, 2, 0},      {46, 4, -1, -1},         {46, 4, INT32_MAX, -1},
      {46, 4, INT32_MIN, -1}, {44, 1, 200, 0},
  };
  CHECK_INT(len, 53);
  CHECK_INT(opened_as(good, len), 0);
  for (i = 0; i < (int32_t)(sizeof changes / sizeof changes[0]); i++) {
    struct change change = changes[i];
    memcpy(meta, good, (size_t)len);
    if (change.size == 8) {
      put64(meta + change.at, change.value);
    } else if (change.size == 4) {
      put32(meta + change.at, (int32_t)change.value);
    } else {
      meta[change.at] = (uint8_t)change.value;
    }
    if (!CHECK_INT(opened_as(meta, len), change.code)) {
      printf("  with %" PRId64 " at %d\n", change.value, change.at);
    }
  }
  /* Products that overflow although no factor does: items of a chunk, of a block, of the array. */
  memcpy(meta, good, (size_t)len);
  put32(meta + 24, 1 << 16);
  put32(meta + 29, 1 << 16);
  CHECK_INT(opened_as(meta, len), -12);
  memcpy(meta, good, (size_t)len);
  put32(meta + 35, 1 << 16);
  put32(meta + 40, 1 << 16);
  CHECK_INT(opened_as(meta, len), -12);
  memcpy(meta, good, (size_t)len);
  put64(meta + 5, (int64_t)1 << 32);
  put64(meta + 14, (int64_t)1 << 32);
  CHECK_INT(opened_as(meta, len), -12);
  /* Cut off anywhere; without data type it is an array all the same. */
  for (i = 1; i < len; i++) {
    CHECK_INT(opened_as(good, i), i == 44 ? 0 : -1);
  }
  free(good);
}

/* Arguments that make no sense leave array and buffer alone. */
static void test_arguments(const struct place *place) {
  const int64_t shape[2] = {20, 10};
  const int32_t chunk[2] = {7, 5}, block[2] = {3, 5};
  b2nd_array_t *array = counting(place, 2, shape, chunk, block);
  int32_t items[200], box[4] = {1, 2, 3, 4};
  int64_t boxshape[2] = {2, 2}, coords[2] = {0, 200}, none[2] = {1, 0}, bad[2] = {0, 20}, sizes[2] = {2, 1};
  int64_t *lists[2] = {bad, none};
  int32_t i;
#define AT(a, b) ((const int64_t[]){a, b})
  CHECK(b2nd_get_slice_cbuffer(array, AT(-1, 0), AT(1, 2), box, boxshape, sizeof box) < 0);
  CHECK(b2nd_set_slice_cbuffer(box, boxshape, sizeof box, AT(-1, 0), AT(1, 2), array) < 0);
  box[0] = 7;
  CHECK_INT(b2nd_get_slice_cbuffer(array, AT(0, 0), AT(3, 2), box, boxshape, sizeof box), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(box[0], 0);
  CHECK_INT(b2nd_get_slice_cbuffer(array, AT(0, 0), AT(2, 2), box, boxshape, 15), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_get_slice_cbuffer(array, AT(0, 0), AT(2, 2), box, boxshape, -1), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_get_slice_cbuffer(array, NULL, AT(2, 2), box, boxshape, 16), BLOSC2_ERROR_NULL_POINTER);
  /* Outside of the array there are zeros, and nothing to write. */
  CHECK_INT(b2nd_get_slice_cbuffer(array, AT(19, 9), AT(21, 11), box, boxshape, sizeof box), 0);
  CHECK_INT(box[0], 199);
  CHECK_INT(box[1] | box[2] | box[3], 0);
  CHECK_INT(b2nd_get_slice_cbuffer(array, AT(20, 0), AT(22, 2), box, boxshape, sizeof box), 0);
  CHECK_INT(box[0] | box[1] | box[2] | box[3], 0);
  CHECK_INT(b2nd_set_slice_cbuffer(box, boxshape, sizeof box, AT(20, 0), AT(22, 2), array), 0);
  CHECK_INT(b2nd_get_orthogonal_selection(array, lists, sizes, box, sizes, 8), BLOSC2_ERROR_INVALID_INDEX);
  bad[1] = -1;
  CHECK_INT(b2nd_get_orthogonal_selection(array, lists, sizes, box, sizes, 8), BLOSC2_ERROR_INVALID_INDEX);
  CHECK_INT(b2nd_set_orthogonal_selection(array, lists, sizes, box, sizes, 8), BLOSC2_ERROR_INVALID_INDEX);
  bad[1] = 1;
  CHECK_INT(b2nd_get_orthogonal_selection(array, lists, sizes, box, sizes, 12), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_get_orthogonal_selection(array, lists, sizes, box, sizes, 4), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_get_sparse_cbuffer(array, 2, coords, box, 8), BLOSC2_ERROR_INVALID_PARAM);
  coords[1] = -1;
  CHECK_INT(b2nd_get_sparse_cbuffer(array, 2, coords, box, 8), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_get_sparse_cbuffer(array, 2, AT(0, 1), box, 7), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_get_sparse_cbuffer(array, -1, coords, box, 8), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_resize(array, AT(-1, 10), NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_resize(array, AT(INT64_MAX, 10), NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_resize(array, AT(27, 10), AT(21, 0)), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_resize(array, AT(27, 10), AT(3, 0)), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_resize(array, AT(27, 10), AT(-7, 0)), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_resize(array, NULL, NULL), BLOSC2_ERROR_NULL_POINTER);
  CHECK_INT(b2nd_append(array, items, 39, 0), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_append(array, items, 40, 2), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_append(array, items, 40, -1), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_insert(array, items, 40, 0, 21), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_delete(array, 0, 0, 21), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_delete(array, 0, 0, -1), BLOSC2_ERROR_INVALID_PARAM);
#undef AT
  CHECK_INT(array->shape[0], 20);
  CHECK_INT(array->sc->nchunks, 6);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  for (i = 0; i < 200; i++) {
    CHECK_INT(items[i], i);
  }
  b2nd_free(array);
}

enum { READERS = 8, ROUNDS = 60, ROWS = 64, COLUMNS = 48 };

typedef struct {
  b2nd_array_t *array;
  int number, failures;
} reader_job;

/* Reads boxes, selections and single items of an array that counts; other threads do the same with the same handle. */
static void *read_boxes(void *user_data) {
  reader_job *job = (reader_job *)user_data;
  uint32_t state = (uint32_t)job->number * 2654435761u + 1;
  int32_t box[ROWS * COLUMNS];
  int round, i, j;
  for (round = 0; round < ROUNDS; round++) {
    int64_t start[2], stop[2], shape[2], item;
    for (i = 0; i < 2; i++) {
      int64_t extent = i == 0 ? ROWS : COLUMNS;
      state = state * 1664525u + 1013904223u;
      start[i] = (int64_t)(state >> 8) % extent;
      state = state * 1664525u + 1013904223u;
      stop[i] = start[i] + 1 + (int64_t)(state >> 8) % (extent - start[i]);
      shape[i] = stop[i] - start[i];
    }
    job->failures += b2nd_get_slice_cbuffer(job->array, start, stop, box, shape, shape[0] * shape[1] * 4) != 0;
    for (i = 0; i < shape[0]; i++) {
      for (j = 0; j < shape[1]; j++) {
        job->failures += box[i * shape[1] + j] != (start[0] + i) * COLUMNS + start[1] + j;
      }
    }
    item = start[0] * COLUMNS + start[1];
    job->failures += b2nd_get_sparse_cbuffer(job->array, 1, &item, box, 4) != 0 || box[0] != item;
  }
  return NULL;
}

static void test_readers(const struct place *place) {
  const int64_t shape[2] = {ROWS, COLUMNS};
  const int32_t chunk[2] = {20, 17}, block[2] = {6, 5};
  b2nd_array_t *array = counting(place, 2, shape, chunk, block);
  pthread_t threads[READERS];
  reader_job jobs[READERS];
  int i;
  for (i = 0; i < READERS; i++) {
    jobs[i].array = array;
    jobs[i].number = i;
    jobs[i].failures = 0;
    CHECK_INT(pthread_create(&threads[i], NULL, read_boxes, &jobs[i]), 0);
  }
  for (i = 0; i < READERS; i++) {
    CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_INT(jobs[i].failures, 0);
  }
  b2nd_free(array);
}

/* A child reads through the handle of its parent and through one of its own. */
static void test_fork(const struct place *place) {
  const int64_t shape[2] = {ROWS, COLUMNS};
  const int32_t chunk[2] = {20, 17}, block[2] = {6, 5};
  b2nd_array_t *array = counting(place, 2, shape, chunk, block);
  pid_t child;
  int status = -1;
  fflush(stdout);
  child = fork();
  if (child == 0) {
    reader_job job = {array, 1, 0};
    alarm(60); /* a child that hangs fails the test */
    read_boxes(&job);
    if (place->urlpath != NULL) {
      job.failures += b2nd_open(place->urlpath, &job.array) != 0;
      if (job.failures == 0) {
        read_boxes(&job);
        b2nd_free(job.array);
      }
    }
    b2nd_free(array);
    _exit(job.failures == 0 ? 0 : 1);
  }
  CHECK(child > 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  b2nd_free(array);
}

/* Processes that insert at the front of one array under locks, and one that reads meanwhile. */
static void test_writers(const struct place *place) {
  enum { WRITERS = 4, INSERTS = 15, LEN = 10, FIRST = 20 };
  const int64_t shape[1] = {FIRST};
  const int32_t chunk[1] = {10}, block[1] = {5};
  b2nd_array_t *array, *own = NULL;
  pid_t children[WRITERS];
  int64_t total = FIRST + WRITERS * INSERTS * LEN, length, zero = 0, i;
  static int32_t *items; /* static: the children exit with it alive, which is no leak */
  int writer, round, status;
  items = (int32_t *)test_alloc((size_t)total * 4);
  setenv("BLOSC_LOCKING", "1", 1);
  b2nd_free(counting(place, 1, shape, chunk, block));
  REQUIRE_INT(b2nd_open(place->urlpath, &array), 0);
  CHECK_INT(b2nd_refresh(array), 0);
  fflush(stdout);
  for (writer = 0; writer < WRITERS; writer++) {
    children[writer] = fork();
    if (children[writer] == 0) {
      int failures = 0;
      alarm(120);
      failures += b2nd_open(place->urlpath, &own) != 0;
      for (round = 0; round < INSERTS && failures == 0; round++) {
        int32_t run[LEN];
        for (i = 0; i < LEN; i++) {
          run[i] = -1 - writer * INSERTS - round;
        }
        failures += blosc2_schunk_lock(own->sc) != 0;
        failures += b2nd_insert(own, run, sizeof run, 0, 0) != 0;
        failures += blosc2_schunk_unlock(own->sc) != 0;
      }
      _exit(failures == 0 ? 0 : 1);
    }
    CHECK(children[writer] > 0);
  }
  do {
    CHECK_INT(blosc2_schunk_lock(array->sc), 0);
    CHECK(b2nd_refresh(array) >= 0);
    length = array->shape[0];
    CHECK_INT(b2nd_get_slice_cbuffer(array, &zero, &length, items, &length, length * 4), 0);
    CHECK_INT(blosc2_schunk_unlock(array->sc), 0);
    CHECK_INT((length - FIRST) % LEN, 0);
    for (i = 0; i < length - FIRST; i++) {
      CHECK(items[i] < 0 && items[i] == items[i - i % LEN]);
    }
    for (; i < length; i++) {
      CHECK_INT(items[i], i - (length - FIRST));
    }
    usleep(2000);
    for (writer = 0; writer < WRITERS; writer++) {
      if (children[writer] > 0 && waitpid(children[writer], &status, WNOHANG) == children[writer]) {
        children[writer] = 0;
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      }
    }
  } while (children[0] > 0 || children[1] > 0 || children[2] > 0 || children[3] > 0);
  CHECK(b2nd_refresh(array) >= 0);
  CHECK_INT(array->shape[0], total);
  CHECK_INT(b2nd_refresh(array), 0);
  b2nd_free(array);
  unsetenv("BLOSC_LOCKING");
  free(items);
}

/* Copies of the super-chunk of a view describe the view, not the array behind it. */
static void test_view_copies(const struct place *place) {
  const int64_t shape[3] = {1, 6, 1};
  const int32_t chunk[3] = {1, 4, 1}, block[3] = {1, 2, 1};
  const char *path = "test_b2nd_edges_view.b2nd";
  b2nd_array_t *array = counting(place, 3, shape, chunk, block), *view = NULL, *copy = NULL;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  int32_t items[6];
  uint8_t *cframe;
  int64_t len;
  bool needs_free;
  int way, i;
  REQUIRE_INT(b2nd_squeeze(array, &view), 0);
  CHECK_INT(view->ndim, 1);
  for (way = 0; way < 4; way++) {
    if (way == 0) {
      len = blosc2_schunk_to_buffer(view->sc, &cframe, &needs_free);
      CHECK(len > 0 && needs_free);
      REQUIRE_INT(b2nd_from_cframe(cframe, len, true, &copy), 0);
      free(cframe);
    } else if (way == 1) {
      REQUIRE_INT(b2nd_from_schunk(blosc2_schunk_copy(view->sc, &storage), &copy), 0);
    } else {
      remove(path);
      CHECK(way == 2 ? blosc2_schunk_to_file(view->sc, path) > 0 : blosc2_schunk_append_file(view->sc, path) == 0);
      REQUIRE_INT(b2nd_open(path, &copy), 0);
    }
    CHECK_INT(copy->ndim, 1);
    CHECK_INT(copy->shape[0], 6);
    CHECK_INT(copy->chunkshape[0], 4);
    CHECK_INT(b2nd_to_cbuffer(copy, items, sizeof items), 0);
    for (i = 0; i < 6; i++) {
      CHECK_INT(items[i], i);
    }
    b2nd_free(copy);
  }
  remove(path);
  b2nd_free(view);
  b2nd_free(array);
}

/* A codec that works by the shape of the blocks finds it in copies, too, while their chunks are compressed. */
static void test_copies_with_codecs_for_shapes(const struct place *place) {
  const int64_t shape[2] = {64, 64};
  const int32_t chunkshape[2] = {32, 32}, blockshape[2] = {16, 16};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  b2nd_array_t *array, *copy = NULL;
  b2nd_context_t *ctx;
  uint8_t items[64 * 64], back[64 * 64];
  size_t i;
  for (i = 0; i < sizeof items; i++) {
    items[i] = (uint8_t)(i / 300);
  }
  cparams.typesize = 1;
  cparams.compcode = BLOSC_CODEC_NDLZ;
  cparams.compcode_meta = 4;
  cparams.filters[BLOSC2_MAX_FILTERS - 1] = BLOSC_NOFILTER;
  cparams.splitmode = BLOSC_NEVER_SPLIT;
  ctx = make_ctx(&places[0], &cparams, NULL, 2, shape, chunkshape, blockshape);
  REQUIRE_INT(b2nd_from_cbuffer(ctx, &array, items, sizeof items), 0);
  b2nd_free_ctx(ctx);
  cparams.clevel = 9;
  ctx = make_ctx(place, &cparams, NULL, 2, shape, chunkshape, blockshape);
  if (CHECK_INT(b2nd_copy(ctx, array, &copy), 0)) {
    CHECK_INT(b2nd_to_cbuffer(copy, back, sizeof back), 0);
    CHECK_BYTES(back, items, sizeof items);
    CHECK_INT(b2nd_free(copy), 0);
  }
  b2nd_free_ctx(ctx);
  CHECK_INT(b2nd_free(array), 0);
}

/* Of a chunk that repeats a value of two items, every other item is the same. */
static void test_values_of_two_items(void) {
  const int64_t shape = 8, start = 3, stop = 4, one = 1;
  const int32_t chunk = 8, block = 4;
  const int32_t value[2] = {5, 6}, expected[3] = {6, 5, 6};
  int64_t coords[3] = {1, 4, 7}, three = 3, *list = coords;
  int32_t got[8] = {0};
  uint8_t repeated[64];
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  b2nd_array_t *array = counting(&places[0], 1, &shape, &chunk, &block);
  cparams.typesize = sizeof value;
  cparams.blocksize = 16;
  CHECK_INT(blosc2_chunk_repeatval(cparams, 32, repeated, sizeof repeated, value), 40);
  CHECK_INT(blosc2_schunk_update_chunk(array->sc, 0, repeated, true), 1);
  CHECK_INT(b2nd_get_slice_cbuffer(array, &start, &stop, got, &one, 4), 0);
  CHECK_INT(got[0], 6);
  CHECK_INT(b2nd_get_orthogonal_selection(array, &list, &three, got, &three, 12), 0);
  CHECK_BYTES(got, expected, sizeof expected);
  memset(got, 0, sizeof got);
  CHECK_INT(b2nd_get_sparse_cbuffer(array, 3, coords, got, 12), 0);
  CHECK_BYTES(got, expected, sizeof expected);
  b2nd_free(array);
}

/* Chunks of such arrays could be written, but not read. */
static void test_blocks_that_chunks_cannot_have(const struct place *place) {
  const int64_t shape = BLOSC2_MAXBLOCKSIZE + 1;
  const int32_t part = BLOSC2_MAXBLOCKSIZE + 1;
  const uint8_t value = 3;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  b2nd_context_t *ctx;
  b2nd_array_t *array = NULL;
  cparams.typesize = 1;
  storage.cparams = &cparams;
  storage.contiguous = place->contiguous;
  storage.urlpath = (char *)place->urlpath;
  blosc2_remove_urlpath(PATH);
  ctx = b2nd_create_ctx(&storage, 1, &shape, &part, &part, "|u1", DTYPE_NUMPY_FORMAT, NULL, 0);
  CHECK_INT(b2nd_zeros(ctx, &array), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(b2nd_full(ctx, &array, &value), BLOSC2_ERROR_INVALID_PARAM);
  CHECK(array == NULL);
  b2nd_free_ctx(ctx);
}

/* Programs exchange the context of an array for one that asks for other blocks, or leaves their size to the library. What is
   written then has the blocks of the array all the same. */
static void test_contexts_with_other_blocks(bool contiguous, int32_t blocksize) {
  static const int64_t shape[2] = {40, 40}, start[2] = {3, 4}, stop[2] = {25, 33}, extents[2] = {22, 29};
  static const int32_t chunkshape[2] = {20, 20}, blockshape[2] = {7, 5};
  static int32_t box[22 * 29], items[80 * 40];
  const struct place place = {contiguous, NULL};
  b2nd_array_t *array = make_counting(&place, 4, 0, 2, shape, chunkshape, blockshape);
  blosc2_cparams *cparams = array->sc->storage->cparams;
  int i, wrong = 0;
  cparams->blocksize = blocksize;
  blosc2_free_ctx(array->sc->cctx);
  array->sc->cctx = blosc2_create_cctx(*cparams);
  array->sc->blocksize = blocksize;
  for (i = 0; i < 22 * 29; i++) {
    box[i] = -1;
  }
  for (i = 0; i < 40 * 40; i++) {
    items[i] = 1600 + i;
  }
  CHECK_INT(b2nd_set_slice_cbuffer(box, extents, sizeof box, start, stop, array), 0);
  CHECK_INT(b2nd_append(array, items, 40 * 40 * 4, 0), 0);
  CHECK_INT(b2nd_to_cbuffer(array, items, sizeof items), 0);
  for (i = 0; i < 80 * 40; i++) {
    const int row = i / 40, column = i % 40;
    wrong += items[i] != (row >= 3 && row < 25 && column >= 4 && column < 33 ? -1 : i);
  }
  CHECK_INT(wrong, 0);
  b2nd_free(array);
}

/* Arrays with more chunks than there can be are refused before any is made. */
static void test_too_many_chunks(const struct place *place) {
  const int64_t shape = 5, large = INT64_C(1) << 33;
  const int64_t starts[2] = {0, 3}, stops[2] = {INT64_C(1) << 31, INT64_C(1) << 32};
  const int32_t one = 1, chunk = 1 << 30, block = 1 << 20;
  const struct place memory = {false, NULL};
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  b2nd_array_t *array = make_counting(&memory, 1, 1, 1, &shape, &one, &one), *zeros = NULL, *made = array;
  b2nd_context_t *ctx, *other;
  const uint8_t value = 7;
  int i;
  cparams.typesize = 1;
  ctx = make_ctx(place, &cparams, &dparams, 1, &large, &one, &one);
  for (i = 0; i < 2; i++) {
    CHECK_INT(b2nd_get_slice(ctx, &made, array, &starts[i], &stops[i]), BLOSC2_ERROR_FAILURE);
    CHECK(made == NULL);
  }
  other = make_ctx(&memory, &cparams, &dparams, 1, &large, &chunk, &block);
  REQUIRE_INT(b2nd_zeros(other, &zeros), 0);
  CHECK_INT(b2nd_copy(ctx, zeros, &made), BLOSC2_ERROR_FAILURE);
  CHECK_INT(b2nd_zeros(ctx, &made), BLOSC2_ERROR_FAILURE);
  CHECK_INT(b2nd_nans(ctx, &made), BLOSC2_ERROR_FAILURE);
  CHECK_INT(b2nd_full(ctx, &made, &value), BLOSC2_ERROR_FAILURE);
  CHECK_INT(b2nd_from_cbuffer(ctx, &made, &value, 1), BLOSC2_ERROR_FAILURE);
  CHECK(place->urlpath == NULL || access(place->urlpath, F_OK) != 0);
  b2nd_free(zeros);
  b2nd_free(array);
  b2nd_free_ctx(other);
  b2nd_free_ctx(ctx);
}

int main(void) {
  int i, way;
  blosc2_init();
  test_contexts_with_other_blocks(false, 0);
  test_contexts_with_other_blocks(true, 0);
  test_contexts_with_other_blocks(true, 64);
  for (i = 0; i < 4; i++) {
    test_sixteen_dimensions(&places[i]);
    test_large_items(&places[i], 255);
    test_large_items(&places[i], 256);
    test_large_items(&places[i], 261);
    test_large_items(&places[i], 5000);
    test_blocks_that_chunks_cannot_have(&places[i]);
    test_callbacks(&places[i]);
    test_postfilters_of_tasks(&places[i]);
    test_prefilter_reads_array(&places[i]);
    for (way = 0; way < 3; way++) {
      test_prefilter_reads_growing_array(&places[i], way, 0);
      test_prefilter_reads_growing_array(&places[i], way, 1);
      test_prefilter_reads_growing_array(&places[i], way, 3);
    }
    test_arguments(&places[i]);
    test_readers(&places[i]);
    test_fork(&places[i]);
    test_too_many_chunks(&places[i]);
    test_view_copies(&places[i]);
    test_copies_with_codecs_for_shapes(&places[i]);
  }
  test_hostile_metalayers();
  test_values_of_two_items();
  test_writers(&places[2]);
  test_writers(&places[3]);
  blosc2_remove_urlpath(PATH);
  remove(PATH ".lock");
  blosc2_destroy();
  return test_end();
}
