/* Uses Zstandard by itself, and through the static library, which contains a Zstandard of its own. The system's
   functions must be the ones that this program calls, and the two must not disturb each other. */

#include "test.h"

#include <blosc2.h>
#include <zstd.h>

int main(void) {
  const int32_t size = 300000;
  uint8_t *data = test_make_data(TEST_TEXT, (size_t)size), *back = test_alloc((size_t)size);
  size_t bound = ZSTD_compressBound((size_t)size), plain;
  uint8_t *packed = test_alloc(bound > (size_t)size + 32 ? bound : (size_t)size + 32);
  char *name = NULL, *inside = NULL;
  int cbytes;

  CHECK(ZSTD_versionNumber() == ZSTD_VERSION_NUMBER);
  CHECK_INT(blosc2_get_complib_info("zstd", &name, &inside), BLOSC_ZSTD_LIB);
  printf("Zstandard of the system %s, inside the library %s\n", ZSTD_versionString(), inside);
  free(name);
  free(inside);

  plain = ZSTD_compress(packed, bound, data, (size_t)size, 3);
  CHECK(!ZSTD_isError(plain));
  CHECK(ZSTD_decompress(back, (size_t)size, packed, plain) == (size_t)size);
  CHECK_BYTES(back, data, (size_t)size);

  blosc2_init();
  CHECK_INT(blosc1_set_compressor("zstd"), BLOSC_ZSTD);
  cbytes = blosc2_compress(5, BLOSC_NOFILTER, 1, data, size, packed, size + BLOSC2_MAX_OVERHEAD);
  CHECK(cbytes > 0 && cbytes < size);
  memset(back, 0, (size_t)size);
  CHECK_INT(blosc2_decompress(packed, cbytes, back, size), size);
  CHECK_BYTES(back, data, (size_t)size);
  blosc2_destroy();

  free(data);
  free(back);
  free(packed);
  return test_end();
}
