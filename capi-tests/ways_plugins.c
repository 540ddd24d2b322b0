/* Plugins, loaded by a library that was itself loaded with local binding: found and not found, whole and broken.

   Arguments: the library, and a directory with the plugins made from plugin.c. */

#define _GNU_SOURCE

#include "test.h"

#include <blosc2.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 100000 };

/* ISO C has no conversion from an object pointer to a function pointer; POSIX says that the bytes are the same. */
#define LOOK_UP(function)                               \
  do {                                                  \
    void *address = dlsym(library, #function);          \
    if (CHECK(address != NULL)) {                       \
      memcpy(&p_##function, &address, sizeof address);  \
    }                                                   \
  } while (0)

static void (*p_blosc2_init)(void);
static void (*p_blosc2_destroy)(void);
static int (*p_blosc2_register_codec)(blosc2_codec *);
static int (*p_blosc2_register_filter)(blosc2_filter *);
static int (*p_blosc2_register_tuner)(blosc2_tuner *);
static blosc2_context *(*p_blosc2_create_cctx)(blosc2_cparams);
static blosc2_context *(*p_blosc2_create_dctx)(blosc2_dparams);
static void (*p_blosc2_free_ctx)(blosc2_context *);
static int (*p_blosc2_compress_ctx)(blosc2_context *, const void *, int32_t, void *, int32_t);
static int (*p_blosc2_decompress_ctx)(blosc2_context *, const void *, int32_t, void *, int32_t);
static int (*p_blosc2_compname_to_compcode)(const char *);
static int (*p_blosc2_compcode_to_compname)(int, const char **);

#if defined(__GLIBC__)
/* Whether the loader lacks memory. */
static bool scarce;

/* In the place of the loader's own, as far as this program and what it loads are concerned. */
void *dlopen(const char *path, int mode) {
  static void *(*loader)(const char *, int);
  void *address = dlsym(RTLD_NEXT, "dlopen");
  memcpy(&loader, &address, sizeof address);
  if (scarce) {
    errno = ENOMEM;
    return NULL;
  }
  return loader(path, mode);
}
#endif

static uint8_t data[SIZE], chunk[SIZE + BLOSC2_MAX_OVERHEAD], back[SIZE];

/* Compresses `data` into `chunk`. */
static int compress(blosc2_cparams cparams) {
  blosc2_context *cctx = p_blosc2_create_cctx(cparams);
  int cbytes;
  if (cctx == NULL) {
    return BLOSC2_ERROR_NULL_POINTER;
  }
  cbytes = p_blosc2_compress_ctx(cctx, data, SIZE, chunk, sizeof chunk);
  p_blosc2_free_ctx(cctx);
  return cbytes;
}

static int decompress(int16_t nthreads) {
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_context *dctx;
  int nbytes;
  dparams.nthreads = nthreads;
  dctx = p_blosc2_create_dctx(dparams);
  nbytes = p_blosc2_decompress_ctx(dctx, chunk, sizeof chunk, back, SIZE);
  p_blosc2_free_ctx(dctx);
  return nbytes;
}

static blosc2_cparams with_codec(uint8_t compcode) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.compcode = compcode;
  cparams.filters[5] = 0;
  cparams.blocksize = 10000;
  return cparams;
}

static int register_codec(uint8_t compcode, char *name) {
  blosc2_codec codec;
  memset(&codec, 0, sizeof codec);
  codec.compcode = compcode;
  codec.complib = compcode;
  codec.version = 1;
  codec.compname = name;
  return p_blosc2_register_codec(&codec);
}

static int compress_with_plugin(uint8_t compcode, char *name) {
  CHECK_INT(register_codec(compcode, name), 0);
  return compress(with_codec(compcode));
}

static int compress_with_filter(uint8_t id, char *name) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_filter filter;
  memset(&filter, 0, sizeof filter);
  filter.id = id;
  filter.name = name;
  CHECK_INT(p_blosc2_register_filter(&filter), 0);
  cparams.filters[4] = id;
  return compress(cparams);
}

/* A plugin that there is no memory for is not missing: it is looked for again, as all that follows does. */
static void test_scarce(void) {
#if defined(__GLIBC__)
  static char codec[] = "capi_codec", filter[] = "capi_filter";
  scarce = true;
  CHECK_INT(compress_with_plugin(200, codec), BLOSC2_ERROR_MEMORY_ALLOC);
  CHECK_INT(compress_with_filter(200, filter), BLOSC2_ERROR_MEMORY_ALLOC);
  scarce = false;
#endif
}

static void test_codec(void) {
  static char name[] = "capi_codec";
  int16_t nthreads;
  int cbytes;
  CHECK_INT(register_codec(200, name), 0);
  for (nthreads = 1; nthreads <= 4; nthreads += 3) {
    blosc2_cparams cparams = with_codec(200);
    cparams.nthreads = nthreads;
    cbytes = compress(cparams);
    CHECK(cbytes > 0 && cbytes < 1000);
    memset(back, 0, SIZE);
    CHECK_INT(decompress(nthreads), SIZE);
    CHECK_BYTES(back, data, SIZE);
  }
}

static void test_filter(void) {
  static char name[] = "capi_filter", missing[] = "capi_missing";
  CHECK(compress_with_filter(200, name) > 0);
  memset(back, 0, SIZE);
  CHECK_INT(decompress(1), SIZE);
  CHECK_BYTES(back, data, SIZE);
  CHECK_INT(compress_with_filter(201, missing), BLOSC2_ERROR_FILTER_PIPELINE);
}

static void test_tuner(void) {
  static char name[] = "capi_tuner", missing[] = "capi_missing";
  static int config = 1;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_tuner tuner;
  static const uint8_t blocksize[4] = {0x00, 0x10}; /* 4096, as chunks have it */
  memset(&tuner, 0, sizeof tuner);
  tuner.id = 200;
  tuner.name = name;
  CHECK_INT(p_blosc2_register_tuner(&tuner), 0);
  cparams.tuner_id = 200;
  CHECK(p_blosc2_create_cctx(cparams) == NULL); /* this one wants a configuration */
  cparams.tuner_params = &config;
  CHECK(compress(cparams) > 0);
  CHECK_BYTES(chunk + BLOSC2_CHUNK_BLOCKSIZE, blocksize, sizeof blocksize);
  CHECK_INT(decompress(1), SIZE);
  tuner.id = 201;
  tuner.name = missing;
  CHECK_INT(p_blosc2_register_tuner(&tuner), 0);
  cparams.tuner_id = 201;
  CHECK(p_blosc2_create_cctx(cparams) == NULL);
}

/* Broken plugins give an error code. */
static void test_broken(void) {
  static char no_info[] = "capi_no_info", half[] = "capi_half", unresolved[] = "capi_unresolved",
              no_name[] = "capi_no_name", not_a_library[] = "capi_text", missing[] = "capi_missing",
              path[] = "../capi_codec", empty[] = "";
  clock_t start;
  int i;
  CHECK_INT(compress_with_plugin(210, no_info), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(compress_with_plugin(211, half), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(compress_with_plugin(212, unresolved), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(compress_with_plugin(213, no_name), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(compress_with_plugin(214, not_a_library), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(compress_with_plugin(215, missing), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(compress_with_plugin(216, path), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(compress_with_plugin(217, empty), BLOSC2_ERROR_CODEC_SUPPORT);
  /* what is not there is not looked for again */
  start = clock();
  for (i = 0; i < 1000; i++) {
    CHECK_INT(compress(with_codec(215)), BLOSC2_ERROR_CODEC_SUPPORT);
  }
  CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 5.0);
}

/* The codecs that are registered with the Blosc developers are known, installed or not. */
static void test_known(void) {
  static const char *const names[] = {"openhtj2k", "grok", "openzl", "j2k", "htj2k"};
  int i;
  for (i = 0; i < 5; i++) {
    const char *name = NULL;
    CHECK_INT(p_blosc2_compname_to_compcode(names[i]), 36 + i);
    CHECK_INT(p_blosc2_compcode_to_compname(36 + i, &name), 36 + i);
    CHECK(name != NULL && strcmp(name, names[i]) == 0);
  }
  CHECK_INT(compress(with_codec(39)), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(compress(with_codec(41)), BLOSC2_ERROR_CODEC_SUPPORT);
}

/* Nothing is loaded when plugins are switched off; a search for them later succeeds. */
static void test_switched_off(void) {
  static char name[] = "capi_late";
  setenv("BLOSC2_NO_PLUGINS", "1", 1);
  CHECK_INT(compress_with_plugin(220, name), BLOSC2_ERROR_CODEC_SUPPORT);
  unsetenv("BLOSC2_NO_PLUGINS");
  CHECK(compress(with_codec(220)) > 0);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  if (CHECK(file != NULL)) {
    CHECK(fputs(text, file) >= 0);
    CHECK_INT(fclose(file), 0);
  }
}

/* A Python package tells where its library is. A package in the current directory is not run. */
static void test_python(const char *plugins) {
  static char name[] = "capi_py", bad[] = "capi_py_bad", here[] = "capi_py_here";
  char path[4096], text[4096];
  if (system("python3 -c '' > /dev/null 2>&1") != 0) {
    test_skip("plugins in packages of Python, which is missing");
    return;
  }
  snprintf(path, sizeof path, "%s/py", plugins);
  mkdir(path, 0755);
  setenv("PYTHONPATH", path, 1);
  snprintf(path, sizeof path, "%s/py/blosc2_capi_py.py", plugins);
  snprintf(text, sizeof text, "def print_libpath():\n    print('%s/libblosc2_capi_codec.so ')\n", plugins);
  write_file(path, text);
  CHECK(compress_with_plugin(230, name) > 0);
  snprintf(path, sizeof path, "%s/py/blosc2_capi_py_bad.py", plugins);
  write_file(path, "def print_libpath():\n    print('libc.so.6')\n");
  CHECK_INT(compress_with_plugin(231, bad), BLOSC2_ERROR_CODEC_SUPPORT);
  unsetenv("PYTHONPATH");
  if (CHECK_INT(chdir(plugins), 0)) {
    write_file("blosc2_capi_py_here.py", text);
    CHECK_INT(compress_with_plugin(232, here), BLOSC2_ERROR_CODEC_SUPPORT);
    CHECK_INT(remove("blosc2_capi_py_here.py"), 0);
  }
}

/* After the library was initialised again, missing plugins are looked for again, and loaded ones are still there. */
static void test_again(void) {
  static char name[] = "capi_codec", missing[] = "capi_missing";
  p_blosc2_destroy();
  p_blosc2_init();
  CHECK_INT(compress(with_codec(200)), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK_INT(compress_with_plugin(215, missing), BLOSC2_ERROR_CODEC_SUPPORT);
  CHECK(compress_with_plugin(200, name) > 0);
  CHECK_INT(decompress(1), SIZE);
}

int main(int argc, char **argv) {
  char path[4096];
  void *library;
  int i;
  if (argc != 3) {
    printf("usage: %s LIBRARY PLUGINS\n", argv[0]);
    return EXIT_FAILURE;
  }
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!CHECK(library != NULL)) {
    printf("%s\n", dlerror());
    return test_end();
  }
  LOOK_UP(blosc2_init);
  LOOK_UP(blosc2_destroy);
  LOOK_UP(blosc2_register_codec);
  LOOK_UP(blosc2_register_filter);
  LOOK_UP(blosc2_register_tuner);
  LOOK_UP(blosc2_create_cctx);
  LOOK_UP(blosc2_create_dctx);
  LOOK_UP(blosc2_free_ctx);
  LOOK_UP(blosc2_compress_ctx);
  LOOK_UP(blosc2_decompress_ctx);
  LOOK_UP(blosc2_compname_to_compcode);
  LOOK_UP(blosc2_compcode_to_compname);
  if (test_failures > 0) {
    return test_end();
  }
  for (i = 0; i < SIZE; i++) {
    data[i] = (uint8_t)(i % 2 ? 255 : 1 + i / 10000); /* two bytes, repeated in each block */
  }
  snprintf(path, sizeof path, "relative:%s", argv[2]);
  setenv("BLOSC2_PLUGIN_PATH", path, 1);
  p_blosc2_init();
  test_scarce();
  test_codec();
  test_filter();
  test_tuner();
  test_broken();
  test_known();
  test_switched_off();
  test_python(argv[2]);
  test_again();
  p_blosc2_destroy();
  return test_end();
}
