/* What becomes of calls to which the system refuses memory. */

#ifndef _WIN32
#define _GNU_SOURCE
#endif

#include <blosc2.h>

#include "test.h"

#ifdef __linux__
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether this runs under valgrind, which has its own idea of memory. */
static bool is_watched(void) {
  const char *preload = getenv("LD_PRELOAD");
  return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

/* Runs `work` in a child, since limits are for good; it returns 0 if all went well. */
static void in_child(int (*work)(void)) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(work());
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_INT(status, 0);
}

/* From now on, the process gets `bytes` bytes of address space more, and that is all. */
static int limit_memory(size_t bytes) {
  struct rlimit limit;
  unsigned long pages;
  FILE *sizes = fopen("/proc/self/statm", "r");
  if (sizes == NULL || fscanf(sizes, "%lu", &pages) != 1) {
    return -1;
  }
  fclose(sizes);
  limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
  return setrlimit(RLIMIT_AS, &limit);
}

enum { LARGE = 64 << 20 };

/* Compresses and decompresses one large block, for which buffers of its size are needed. */
static int no_room_for_a_block(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  uint8_t *data = test_make_data(TEST_RAMP, LARGE), *chunk = (uint8_t *)test_alloc(LARGE + BLOSC2_MAX_OVERHEAD);
  blosc2_context *cctx, *dctx, *late;
  int cbytes;
  cparams.typesize = 4;
  cparams.blocksize = LARGE;
  cctx = blosc2_create_cctx(cparams);
  late = blosc2_create_cctx(cparams);
  dctx = blosc2_create_dctx(dparams);
  cbytes = blosc2_compress_ctx(cctx, data, LARGE, chunk, LARGE + BLOSC2_MAX_OVERHEAD);
  if (cbytes <= 0 || limit_memory(8 << 20) != 0) {
    return 1;
  }
  if (blosc2_decompress_ctx(dctx, chunk, cbytes, data, LARGE) != BLOSC2_ERROR_THREAD_CREATE) {
    return 2;
  }
  if (blosc2_compress_ctx(late, data, LARGE, chunk, LARGE + BLOSC2_MAX_OVERHEAD) != BLOSC2_ERROR_THREAD_CREATE) {
    return 3;
  }
  /* The contexts are as good as before. */
  cbytes = blosc2_compress_ctx(late, data, 1000, chunk, LARGE);
  return cbytes > 0 && blosc2_decompress_ctx(dctx, chunk, cbytes, data, LARGE) == 1000 ? 0 : 4;
}
#endif

int main(void) {
  blosc2_init();
#ifdef __linux__
  if (!is_watched()) {
    in_child(no_room_for_a_block);
  }
#endif
  CHECK(1);
  blosc2_destroy();
  return test_end();
}
