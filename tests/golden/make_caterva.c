/* Makes a golden array of one release of caterva, the predecessor of b2nd; see make_frames.py. */

#include <caterva.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  static int32_t items[17 * 23];
  static char path[1000];
  caterva_config_t config = CATERVA_CONFIG_DEFAULTS;
  caterva_ctx_t *context;
  caterva_array_t *array;
  caterva_params_t params;
  caterva_storage_t storage;
  int i;
  if (argc != 2) {
    return 2;
  }
  for (i = 0; i < 17 * 23; i++) {
    items[i] = 5 * 100000 + i * 3;
  }
  memset(&params, 0, sizeof params);
  memset(&storage, 0, sizeof storage);
  snprintf(path, sizeof path, "%s/array.caterva", argv[1]);
  params.itemsize = 4;
  params.ndim = 2;
  params.shape[0] = 17;
  params.shape[1] = 23;
  storage.contiguous = true;
  storage.urlpath = path;
  storage.chunkshape[0] = 6;
  storage.chunkshape[1] = 10;
  storage.blockshape[0] = 4;
  storage.blockshape[1] = 3;
  if (caterva_ctx_new(&config, &context) != 0 ||
      caterva_from_buffer(context, items, sizeof items, &params, &storage, &array) != 0 ||
      caterva_free(context, &array) != 0) {
    return 1;
  }
  return caterva_ctx_free(&context) != 0;
}
