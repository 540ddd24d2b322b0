/* Loads the library at run time with local binding, as Python extensions and plugins do, twice over. */

#include "test.h"

#include <blosc2.h>
#include <dlfcn.h>

/* ISO C has no conversion from an object pointer to a function pointer; POSIX says that the bytes are the same. */
#define LOOK_UP(library, function)                                  \
  do {                                                              \
    void *address = dlsym(library, #function);                      \
    if (CHECK(address != NULL)) {                                   \
      memcpy(&p_##function, &address, sizeof address);              \
    }                                                               \
  } while (0)

static void use(const char *path) {
  void (*p_blosc2_init)(void) = NULL;
  void (*p_blosc2_destroy)(void) = NULL;
  const char *(*p_blosc2_get_version_string)(void) = NULL;
  int (*p_blosc2_compress)(int, int, int32_t, const void *, int32_t, void *, int32_t) = NULL;
  int (*p_blosc2_decompress)(const void *, int32_t, void *, int32_t) = NULL;
  uint8_t *data = test_make_data(TEST_RAMP, 100000), *chunk = test_alloc(100032), *back = test_alloc(100000);
  int cbytes;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!CHECK(library != NULL)) {
    printf("%s\n", dlerror());
    exit(test_end());
  }
  LOOK_UP(library, blosc2_init);
  LOOK_UP(library, blosc2_destroy);
  LOOK_UP(library, blosc2_get_version_string);
  LOOK_UP(library, blosc2_compress);
  LOOK_UP(library, blosc2_decompress);
  if (test_failures > 0) {
    exit(test_end());
  }
  p_blosc2_init();
  CHECK_STR(p_blosc2_get_version_string(), BLOSC2_VERSION_STRING);
  cbytes = p_blosc2_compress(5, BLOSC_SHUFFLE, 4, data, 100000, chunk, 100032);
  CHECK(cbytes > 0 && cbytes < 100000);
  CHECK_INT(p_blosc2_decompress(chunk, cbytes, back, 100000), 100000);
  CHECK_BYTES(back, data, 100000);
  p_blosc2_destroy();
  CHECK_INT(dlclose(library), 0);
  free(data);
  free(chunk);
  free(back);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    printf("usage: %s LIBRARY\n", argv[0]);
    return EXIT_FAILURE;
  }
  use(argv[1]);
  use(argv[1]);
  return test_end();
}
