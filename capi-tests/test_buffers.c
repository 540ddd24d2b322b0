/* Buffers that go from client to library and back: boxes copied between them, frames in them, and who frees them. */

#include "test.h"

#include <b2nd.h>

/* b2nd_copy_buffer has to work as well. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { MAX_ITEMS = 3000 };

static uint32_t random_state = 1;

/* A number below `bound`. */
static uint32_t below(uint32_t bound) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % bound;
}

/* Copies a box item by item. */
static void copy_box(int8_t ndim, size_t itemsize, const uint8_t *src, const int64_t *src_shape, const int64_t *start,
                     const int64_t *stop, uint8_t *dst, const int64_t *dst_shape, const int64_t *dst_start) {
  int64_t at[16];
  memcpy(at, start, (size_t)ndim * sizeof *at);
  for (;;) {
    int64_t from = 0, to = 0;
    int i;
    for (i = 0; i < ndim; i++) {
      from = from * src_shape[i] + at[i];
      to = to * dst_shape[i] + dst_start[i] + at[i] - start[i];
    }
    memcpy(dst + (size_t)to * itemsize, src + (size_t)from * itemsize, itemsize);
    for (i = ndim - 1; i >= 0 && ++at[i] == stop[i]; i--) {
      at[i] = start[i];
    }
    if (i < 0) {
      return;
    }
  }
}

/* Random boxes of 1 to 8 dimensions in buffers of random shapes. */
static void test_copied_boxes(void) {
  static const int32_t itemsizes[] = {1, 2, 3, 4, 7, 8, 16, 32, 255, 300};
  int round;
  for (round = 0; round < 400; round++) {
    const int8_t ndim = (int8_t)(1 + below(8));
    const int32_t itemsize = itemsizes[below(10)];
    int64_t start[8], stop[8], src_shape[8], dst_shape[8], dst_start[8];
    size_t src_items = 1, dst_items = 1, size;
    uint8_t *src, *dst, *expected;
    int i;
    for (i = 0; i < ndim; i++) {
      const int64_t longest = ndim > 4 ? 2 : ndim > 2 ? 5 : 40;
      const int64_t extent = 1 + below((uint32_t)longest);
      start[i] = below(2);
      stop[i] = start[i] + extent;
      src_shape[i] = stop[i] + below(2);
      dst_start[i] = below(2);
      dst_shape[i] = dst_start[i] + extent + below(2);
      src_items *= (size_t)src_shape[i];
      dst_items *= (size_t)dst_shape[i];
    }
    src = test_make_data(TEST_NOISE, src_items * (size_t)itemsize);
    size = dst_items * (size_t)itemsize;
    dst = (uint8_t *)test_alloc(size);
    expected = (uint8_t *)test_alloc(size);
    memset(dst, 0xEE, size);
    memset(expected, 0xEE, size);
    copy_box(ndim, (size_t)itemsize, src, src_shape, start, stop, expected, dst_shape, dst_start);
    CHECK_INT(b2nd_copy_buffer2(ndim, itemsize, src, src_shape, start, stop, dst, dst_shape, dst_start), 0);
    CHECK_BYTES(dst, expected, size);
    if (itemsize <= UINT8_MAX) {
      memset(dst, 0xEE, size);
      CHECK_INT(b2nd_copy_buffer(ndim, (uint8_t)itemsize, src, src_shape, start, stop, dst, dst_shape, dst_start), 0);
      CHECK_BYTES(dst, expected, size);
    }
    free(src);
    free(dst);
    free(expected);
  }
}

/* Where there is nothing to copy, the buffers need not exist. */
static void test_empty_boxes(void) {
  const int64_t shape[2] = {3, 3}, start[2] = {1, 2}, none[2] = {2, 2}, zeros[2] = {0, 0};
  uint8_t dst[9] = {9, 9, 9, 9, 9, 9, 9, 9, 9};
  CHECK_INT(b2nd_copy_buffer2(2, 4, NULL, shape, start, none, NULL, shape, zeros), 0);
  CHECK_INT(b2nd_copy_buffer(2, 1, dst, shape, start, none, dst, shape, zeros), 0);
  CHECK(dst[0] == 9 && dst[8] == 9);
}

/* A super-chunk of three chunks in a frame in memory. */
static blosc2_schunk *make_frame(void) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  uint8_t *data = test_make_data(TEST_RAMP, MAX_ITEMS);
  blosc2_schunk *schunk;
  int i;
  storage.contiguous = true;
  schunk = blosc2_schunk_new(&storage);
  for (i = 0; i < 3; i++) {
    CHECK_INT(blosc2_schunk_append_buffer(schunk, data, MAX_ITEMS), i + 1);
  }
  free(data);
  return schunk;
}

/* A frame of `make_frame` in memory of the client. */
static uint8_t *make_buffer(int64_t *len) {
  blosc2_schunk *schunk = make_frame();
  uint8_t *frame, *copy;
  bool needs_free;
  *len = blosc2_schunk_to_buffer(schunk, &frame, &needs_free);
  CHECK(*len > 0 && !needs_free);
  copy = (uint8_t *)test_alloc((size_t)*len);
  memcpy(copy, frame, (size_t)*len);
  blosc2_schunk_free(schunk);
  return copy;
}

static void check_chunk(blosc2_schunk *schunk, int64_t nchunk) {
  uint8_t *data = test_make_data(TEST_RAMP, MAX_ITEMS);
  uint8_t *got = (uint8_t *)test_alloc(MAX_ITEMS);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, nchunk, got, MAX_ITEMS), MAX_ITEMS);
  CHECK_BYTES(got, data, MAX_ITEMS);
  free(got);
  free(data);
}

/* The client keeps the frame of a super-chunk that it frees. */
static void test_kept_frame(void) {
  blosc2_schunk *schunk = make_frame();
  uint8_t *frame;
  bool needs_free;
  int64_t len;
  blosc2_schunk_avoid_cframe_free(schunk, true);
  len = blosc2_schunk_to_buffer(schunk, &frame, &needs_free);
  CHECK(len > 0 && !needs_free);
  blosc2_schunk_free(schunk);

  schunk = blosc2_schunk_from_buffer(frame, len, false);
  REQUIRE(schunk != NULL);
  check_chunk(schunk, 2);
  blosc2_schunk_free(schunk);
  free(frame);
}

/* The library frees a frame that the client gives away; and one that it lent, the client does. */
static void test_given_frame(void) {
  int64_t len;
  uint8_t *frame = make_buffer(&len);
  blosc2_schunk *schunk = blosc2_schunk_from_buffer(frame, len, false);
  REQUIRE(schunk != NULL);
  check_chunk(schunk, 0);
  blosc2_schunk_avoid_cframe_free(schunk, false);
  check_chunk(schunk, 1);
  blosc2_schunk_free(schunk);

  frame = make_buffer(&len);
  schunk = blosc2_schunk_from_buffer(frame, len, false);
  REQUIRE(schunk != NULL);
  blosc2_schunk_avoid_cframe_free(schunk, false);
  blosc2_schunk_avoid_cframe_free(schunk, true);
  check_chunk(schunk, 0);
  blosc2_schunk_free(schunk);
  free(frame);
}

/* Without a frame there is nothing to keep. */
static void test_no_frame(void) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  const uint8_t items[16] = {1, 2, 3};
  uint8_t got[16];
  blosc2_schunk *schunk = blosc2_schunk_new(&storage);
  REQUIRE(schunk != NULL && schunk->frame == NULL);
  blosc2_schunk_avoid_cframe_free(schunk, true);
  CHECK(schunk->frame == NULL);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, sizeof items), 1);
  blosc2_schunk_avoid_cframe_free(schunk, false);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, got, sizeof got), sizeof got);
  CHECK_BYTES(got, items, sizeof items);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
}

/* A chunk that lies in the frame is added to it: the frame moves as it grows. */
static void test_own_chunk(void) {
  enum { LARGE = 3000000 };
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  uint8_t *data = test_make_data(TEST_NOISE, LARGE), *got = (uint8_t *)test_alloc(LARGE), *chunk = NULL;
  blosc2_schunk *schunk;
  bool needs_free = true;
  int i;
  storage.contiguous = true;
  schunk = blosc2_schunk_new(&storage);
  REQUIRE(schunk != NULL);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, data, LARGE), 1);
  for (i = 1; i < 6; i++) {
    CHECK(blosc2_schunk_get_chunk(schunk, i - 1, &chunk, &needs_free) > LARGE);
    CHECK(!needs_free);
    CHECK_INT(blosc2_schunk_append_chunk(schunk, chunk, true), i + 1);
  }
  for (i = 0; i < 6; i++) {
    CHECK_INT(blosc2_schunk_decompress_chunk(schunk, i, got, LARGE), LARGE);
    CHECK_BYTES(got, data, LARGE);
  }
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  free(got);
  free(data);
}

/* What the structs of the library begin with. */
static void test_defaults(void) {
  const blosc2_storage storage = blosc2_get_blosc2_storage_defaults(), same = BLOSC2_STORAGE_DEFAULTS;
  const blosc2_io io = blosc2_get_blosc2_io_defaults();
  CHECK(storage.contiguous == same.contiguous && storage.urlpath == same.urlpath);
  CHECK(storage.cparams == same.cparams && storage.dparams == same.dparams && storage.io == same.io);
  CHECK_INT(io.id, BLOSC2_IO_FILESYSTEM);
  CHECK_STR(io.name, "filesystem");
  CHECK(io.params == NULL);
}

int main(void) {
  blosc2_init();
  test_copied_boxes();
  test_empty_boxes();
  test_kept_frame();
  test_given_frame();
  test_no_frame();
  test_own_chunk();
  test_defaults();
  blosc2_destroy();
  return test_end();
}
