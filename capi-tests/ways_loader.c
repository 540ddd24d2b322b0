/* A plugin that compresses with several threads in its constructor, under the lock of the loader, and in its destructor. Its
 * host loads and unloads it, and the library with it, although the thread goes on. One source for both: AS_PLUGIN is for the
 * first. */

#include "test.h"

#include <blosc2.h>

#ifdef AS_PLUGIN

static void round_trip(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_context *cctx, *dctx;
  uint8_t *data = test_make_data(TEST_RAMP, 1000000), *chunk = test_alloc(1000032), *back = test_alloc(1000000);
  int cbytes;
  cparams.nthreads = dparams.nthreads = 4;
  cctx = blosc2_create_cctx(cparams);
  dctx = blosc2_create_dctx(dparams);
  cbytes = blosc2_compress_ctx(cctx, data, 1000000, chunk, 1000032);
  if (cbytes <= 0 || blosc2_decompress_ctx(dctx, chunk, cbytes, back, 1000000) != 1000000 ||
      memcmp(data, back, 1000000) != 0) {
    abort();
  }
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
  free(data);
  free(chunk);
  free(back);
}

__attribute__((constructor)) static void begin(void) {
  blosc2_init();
  round_trip();
}

__attribute__((destructor)) static void end(void) {
  round_trip();
  blosc2_destroy();
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static const char *plugin_path;

static void *use(void *unused) {
  void *plugin = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
  (void)unused;
  if (CHECK(plugin != NULL)) {
    CHECK_INT(dlclose(plugin), 0);
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t thread;
  if (argc != 3) {
    printf("usage: %s PLUGIN LIBRARY\n", argv[0]);
    return EXIT_FAILURE;
  }
  plugin_path = argv[1];
  /* Threads that wait for the loader, which waits for them, would do so for ever. */
  alarm(60);
  for (int round = 0; round < 3; round++) {
    use(NULL);
    CHECK(dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD) == NULL);
    CHECK_INT(pthread_create(&thread, NULL, use, NULL), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK(dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD) == NULL);
  }
  return test_end();
}

#endif
