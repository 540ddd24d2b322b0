/* A very small test harness: checks that print where they failed, and a count at the end. */

#ifndef CAPI_TESTS_TEST_H
#define CAPI_TESTS_TEST_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long test_checks;
static long test_failures;

/* Counts a check, and prints it if it failed. */
static inline int test_check(int holds, const char *what, const char *file, int line) {
  test_checks++;
  if (!holds) {
    test_failures++;
    if (test_failures <= 50) {
      printf("%s:%d: %s\n", file, line, what);
    }
  }
  return holds;
}

/* Counts a check of two integers, and prints both if they differ. */
static inline int test_equal(int64_t got, int64_t wanted, const char *what, const char *file, int line) {
  test_checks++;
  if (got != wanted) {
    test_failures++;
    if (test_failures <= 50) {
      printf("%s:%d: %s is %" PRId64 ", not %" PRId64 "\n", file, line, what, got, wanted);
    }
  }
  return got == wanted;
}

/* Both return whether the check held. */
#define CHECK(condition) test_check((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define CHECK_INT(got, wanted) test_equal((int64_t)(got), (int64_t)(wanted), #got, __FILE__, __LINE__)
#define CHECK_STR(got, wanted) test_check(strcmp((got), (wanted)) == 0, #got " is " #wanted, __FILE__, __LINE__)
#define CHECK_BYTES(got, wanted, size) \
  test_check(memcmp((got), (wanted), (size)) == 0, #got " equals " #wanted, __FILE__, __LINE__)

/* Ends the program unless `holds`: what follows cannot go on. */
static inline void test_require(int holds) {
  if (!holds) {
    printf("%ld checks, %ld failures; what follows depends on the last\n", test_checks, test_failures);
    fflush(stdout);
    exit(EXIT_FAILURE);
  }
}

/* Checks without which the program does not go on. */
#define REQUIRE(condition) test_require(test_check((condition) ? 1 : 0, #condition, __FILE__, __LINE__))
#define REQUIRE_INT(got, wanted) \
  test_require(test_equal((int64_t)(got), (int64_t)(wanted), #got, __FILE__, __LINE__))

/* The last statement of main. */
static inline int test_end(void) {
  printf("%ld checks, %ld failures\n", test_checks, test_failures);
  return test_failures == 0 && test_checks > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Tells what cannot be tested here; `cargo xtask test` shows lines that begin like this. */
static inline void test_skip(const char *what_and_why) {
  printf("skipped: %s\n", what_and_why);
  fflush(stdout); /* else children would say it again */
}

/* malloc that ends the program when there is no memory. */
static inline void *test_alloc(size_t size) {
  void *memory = malloc(size > 0 ? size : 1);
  if (memory == NULL) {
    printf("no memory\n");
    exit(EXIT_FAILURE);
  }
  return memory;
}

/* Whether the program runs under valgrind, which has an allocator and a scheduler of its own. */
static inline int test_is_watched(void) {
  const char *preload = getenv("LD_PRELOAD");
  return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

/* Kinds of data. */
enum test_data {
  TEST_ZEROS,
  TEST_RAMP,   /* 32-bit integers that grow slowly */
  TEST_FLOATS, /* smooth doubles */
  TEST_TEXT,
  TEST_NOISE,
  TEST_KINDS
};

/* `size` bytes of the given kind, with numbers as this machine has them; the same bytes at each call. The caller frees
   them. */
static inline uint8_t *test_make_data(enum test_data kind, size_t size) {
  static const char words[] = "the quick brown fox jumps over the lazy dog; ";
  uint8_t *data = (uint8_t *)test_alloc(size);
  uint64_t state = 88172645463325252u;
  size_t i;
  for (i = 0; i < size; i++) {
    switch (kind) {
      case TEST_RAMP: {
        uint32_t value = (uint32_t)(i / 4 * 7);
        data[i] = ((const uint8_t *)&value)[i % 4];
        break;
      }
      case TEST_FLOATS: {
        double value = (double)(i / 8) * 0.001 + 1.0;
        data[i] = ((const uint8_t *)&value)[i % 8];
        break;
      }
      case TEST_TEXT:
        data[i] = (uint8_t)words[(i + i / 97) % (sizeof words - 1)];
        break;
      case TEST_NOISE:
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data[i] = (uint8_t)(state >> 32);
        break;
      default:
        data[i] = 0;
    }
  }
  return data;
}

#endif /* CAPI_TESTS_TEST_H */
