/* Compresses a file with each codec, reads it back, and prints ratio and speed.

   Ordinary use of the library: chunks in memory, one context to compress and one to decompress. Build it with
       cc demo.c $(pkg-config --cflags --libs blosc2)
   and run it with the name of a file. */

#include <blosc2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  CHUNK_SIZE = 1024 * 1024,
  MOST_BYTES = 64 * CHUNK_SIZE, /* how much of the file is used */
  ROUNDS = 3
};

/* The chunks of a file. */
typedef struct {
  uint8_t *data;   /* compressed, CHUNK_SIZE + BLOSC2_MAX_OVERHEAD bytes each */
  int32_t *cbytes; /* compressed bytes of each */
  size_t count;
} chunks;

/* Reads the first MOST_BYTES of a file; NULL if that fails. */
static uint8_t *read_file(const char *name, size_t *size) {
  FILE *file = fopen(name, "rb");
  uint8_t *data = (uint8_t *)malloc(MOST_BYTES);
  if (file == NULL || data == NULL) {
    free(data);
    data = NULL;
  } else {
    *size = fread(data, 1, MOST_BYTES, file);
  }
  if (file != NULL) {
    fclose(file);
  }
  return data;
}

static int32_t chunk_bytes(size_t size, size_t chunk) {
  size_t left = size - chunk * CHUNK_SIZE;
  return (int32_t)(left < CHUNK_SIZE ? left : CHUNK_SIZE);
}

static int compress_all(blosc2_context *cctx, const uint8_t *data, size_t size, chunks *out) {
  size_t i;
  for (i = 0; i < out->count; i++) {
    uint8_t *dest = out->data + i * (CHUNK_SIZE + BLOSC2_MAX_OVERHEAD);
    int32_t nbytes = chunk_bytes(size, i);
    int cbytes = blosc2_compress_ctx(cctx, data + i * CHUNK_SIZE, nbytes, dest, nbytes + BLOSC2_MAX_OVERHEAD);
    if (cbytes <= 0) {
      fprintf(stderr, "cannot compress: %s\n", blosc2_error_string(cbytes));
      return -1;
    }
    out->cbytes[i] = cbytes;
  }
  return 0;
}

static int decompress_all(blosc2_context *dctx, const chunks *in, uint8_t *data, size_t size) {
  size_t i;
  for (i = 0; i < in->count; i++) {
    const uint8_t *src = in->data + i * (CHUNK_SIZE + BLOSC2_MAX_OVERHEAD);
    int32_t nbytes = chunk_bytes(size, i);
    int done = blosc2_decompress_ctx(dctx, src, in->cbytes[i], data + i * CHUNK_SIZE, nbytes);
    if (done != nbytes) {
      fprintf(stderr, "cannot decompress: %s\n", blosc2_error_string(done));
      return -1;
    }
  }
  return 0;
}

/* Seconds that have passed. */
static double seconds_since(blosc_timestamp_t start) {
  blosc_timestamp_t now;
  blosc_set_timestamp(&now);
  return blosc_elapsed_secs(start, now);
}

/* One line of the table; 0 if the file came back as it was. */
static int try_codec(int codec, const uint8_t *data, size_t size, uint8_t *back, chunks *compressed) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_context *cctx, *dctx;
  const char *name;
  double pack = 1e9, unpack = 1e9;
  size_t i, cbytes = 0;
  int round, failed = 0;

  if (blosc2_compcode_to_compname(codec, &name) < 0) {
    return -1;
  }
  cparams.compcode = (uint8_t)codec;
  cparams.typesize = 4;
  cctx = blosc2_create_cctx(cparams);
  dctx = blosc2_create_dctx(dparams);
  if (cctx == NULL || dctx == NULL) {
    failed = 1;
  }
  for (round = 0; round < ROUNDS && !failed; round++) {
    blosc_timestamp_t start;
    double seconds;
    blosc_set_timestamp(&start);
    failed = compress_all(cctx, data, size, compressed) != 0;
    seconds = seconds_since(start);
    pack = seconds < pack ? seconds : pack;
    memset(back, 0xa5, size);
    blosc_set_timestamp(&start);
    failed = failed || decompress_all(dctx, compressed, back, size) != 0;
    seconds = seconds_since(start);
    unpack = seconds < unpack ? seconds : unpack;
    failed = failed || memcmp(back, data, size) != 0;
  }
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
  if (failed) {
    printf("%-8s  FAILED\n", name);
    return -1;
  }
  for (i = 0; i < compressed->count; i++) {
    cbytes += (size_t)compressed->cbytes[i];
  }
  printf("%-8s  %7.2f  %13.2f  %15.2f  equal\n", name, (double)size / (double)cbytes, (double)size / pack / 1e9,
         (double)size / unpack / 1e9);
  return 0;
}

int main(int argc, char **argv) {
  static const int codecs[] = {BLOSC_BLOSCLZ, BLOSC_LZ4, BLOSC_LZ4HC, BLOSC_ZLIB, BLOSC_ZSTD};
  size_t size = 0, i;
  uint8_t *data, *back;
  chunks compressed;
  int failures = 0;

  if (argc != 2) {
    fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return EXIT_FAILURE;
  }
  data = read_file(argv[1], &size);
  if (data == NULL || size == 0 || size > MOST_BYTES) {
    fprintf(stderr, "cannot read %s, or it is empty\n", argv[1]);
    free(data);
    return EXIT_FAILURE;
  }
  compressed.count = (size + CHUNK_SIZE - 1) / CHUNK_SIZE;
  compressed.data = (uint8_t *)malloc(compressed.count * (CHUNK_SIZE + BLOSC2_MAX_OVERHEAD));
  compressed.cbytes = (int32_t *)malloc(compressed.count * sizeof *compressed.cbytes);
  back = (uint8_t *)malloc(size);
  if (compressed.data == NULL || compressed.cbytes == NULL || back == NULL) {
    fprintf(stderr, "no memory\n");
    return EXIT_FAILURE;
  }
  blosc2_init();
  printf("libblosc2 %s, %s: %.2f MB, level 5, byte shuffle, items of 4 bytes, 1 thread\n",
         blosc2_get_version_string(), argv[1], (double)size / 1e6);
  printf("%-8s  %7s  %13s  %15s\n", "codec", "ratio", "compress GB/s", "decompress GB/s");
  for (i = 0; i < sizeof codecs / sizeof *codecs; i++) {
    failures += try_codec(codecs[i], data, size, back, &compressed) != 0;
  }
  blosc2_destroy();
  free(data);
  free(back);
  free(compressed.data);
  free(compressed.cbytes);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
