/* Super-chunks through other back-ends, from several handles and threads, and with callbacks. */

#include <blosc2.h>

#include "test.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#define HAVE_PTHREADS
#endif

#define ITEMS 5000
#define BYTES (ITEMS * 4)
#define PATH "test_schunk_io.b2frame"

static void fill(int32_t *items, int nchunk) {
  int i;
  for (i = 0; i < ITEMS; i++) {
    items[i] = nchunk * 1000000 + i;
  }
}

static blosc2_schunk *make(bool contiguous, const char *urlpath, blosc2_io *io, int nchunks) {
  static int32_t items[ITEMS];
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  int i;
  cparams.typesize = 4;
  cparams.blocksize = 4000;
  storage.cparams = &cparams;
  storage.contiguous = contiguous;
  storage.urlpath = (char *)urlpath;
  storage.io = io;
  blosc2_remove_urlpath(urlpath);
  schunk = blosc2_schunk_new(&storage);
  if (!CHECK(schunk != NULL)) {
    exit(test_end());
  }
  for (i = 0; i < nchunks; i++) {
    fill(items, i);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), i + 1);
  }
  return schunk;
}

static int chunk_is(blosc2_schunk *schunk, int64_t nchunk, int value) {
  int32_t *items = (int32_t *)test_alloc(2 * BYTES);
  int same;
  fill(items + ITEMS, value);
  same = blosc2_schunk_decompress_chunk(schunk, nchunk, items, BYTES) == BYTES &&
         memcmp(items, items + ITEMS, BYTES) == 0;
  free(items);
  return same;
}

/* ---- A back-end of the application: plain files, counted ---- */

static struct {
  int open, close, size, write, read, truncate, destroy;
} calls;

static bool refuses;
static bool rounds_up; /* the sizes of files */

static void *count_open(const char *urlpath, const char *mode, void *params) {
  CHECK(params == &calls);
  if (refuses) {
    return NULL;
  }
  calls.open++;
  return blosc2_stdio_open(urlpath, mode, NULL);
}
static int count_close(void *stream) {
  calls.close++;
  return blosc2_stdio_close(stream);
}
static int64_t count_size(void *stream) {
  calls.size++;
  return blosc2_stdio_size(stream) + (rounds_up ? 1 : 0);
}
static int64_t count_write(const void *ptr, int64_t size, int64_t nitems, int64_t position, void *stream) {
  calls.write++;
  return blosc2_stdio_write(ptr, size, nitems, position, stream);
}
static int64_t count_read(void **ptr, int64_t size, int64_t nitems, int64_t position, void *stream) {
  calls.read++;
  return blosc2_stdio_read(ptr, size, nitems, position, stream);
}
static int count_truncate(void *stream, int64_t size) {
  calls.truncate++;
  return blosc2_stdio_truncate(stream, size);
}
static int count_destroy(void *params) {
  CHECK(params == &calls);
  return calls.destroy++ == 0 ? 0 : -1;
}

static blosc2_io_cb counted(uint8_t id, const char *name) {
  blosc2_io_cb back_end;
  memset(&back_end, 0, sizeof back_end);
  back_end.id = id;
  back_end.name = (char *)name;
  back_end.is_allocation_necessary = true;
  back_end.open = count_open;
  back_end.close = count_close;
  back_end.size = count_size;
  back_end.write = count_write;
  back_end.read = count_read;
  back_end.truncate = count_truncate;
  return back_end;
}

/* Replaces chunk 0 by chunk 1, again and again: a back-end only sees files that a frame has. */
static void replace_chunks(blosc2_schunk *schunk) {
  uint8_t *chunk;
  bool needs_free;
  int i;
  REQUIRE(blosc2_schunk_get_chunk(schunk, 1, &chunk, &needs_free) > 32);
  for (i = 0; i < 5; i++) {
    FILE *other;
    calls.open = calls.close = 0;
    CHECK_INT(blosc2_schunk_update_chunk(schunk, 0, chunk, true), schunk->nchunks);
    CHECK(calls.open < 20);
    other = fopen(PATH "/00.b2spare", "rb");
    CHECK(other == NULL);
    if (other != NULL) {
      fclose(other);
    }
  }
  if (needs_free) {
    free(chunk);
  }
}

/* What could not be made leaves no directory in the way. */
static void test_refusal(bool contiguous, blosc2_io *io) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  storage.contiguous = contiguous;
  storage.urlpath = (char *)PATH;
  storage.io = io;
  refuses = true;
  CHECK(blosc2_schunk_new(&storage) == NULL);
  refuses = false;
  schunk = blosc2_schunk_new(&storage);
  CHECK(schunk != NULL && blosc2_schunk_free(schunk) == 1);
  blosc2_remove_urlpath(PATH);
}

static void test_back_end(bool contiguous) {
  blosc2_io_cb back_end = counted(200, "counted");
  static const int32_t zeros[ITEMS];
  blosc2_io io;
  blosc2_schunk *schunk;
  memset(&calls, 0, sizeof calls);
  back_end.destroy = count_destroy;
  CHECK_INT(blosc2_register_io_cb(NULL), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_register_io_cb(&back_end), 0);
  CHECK_INT(blosc2_register_io_cb(&back_end), 0);
  back_end.name = (char *)"another";
  CHECK_INT(blosc2_register_io_cb(&back_end), BLOSC2_ERROR_PLUGIN_IO);
  back_end.id = 100;
  CHECK_INT(blosc2_register_io_cb(&back_end), BLOSC2_ERROR_PLUGIN_IO);
  CHECK(blosc2_get_io_cb(200) != NULL && blosc2_get_io_cb(200)->open == count_open);
  CHECK(blosc2_get_io_cb(201) == NULL);
  CHECK(blosc2_get_io_cb(BLOSC2_IO_FILESYSTEM) != NULL);
  io.id = 200;
  io.name = "counted";
  io.params = &calls;
  schunk = make(contiguous, PATH, &io, 3);
  CHECK(chunk_is(schunk, 1, 1));
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 0), 2);
  CHECK(chunk_is(schunk, 0, 1));
  CHECK(calls.open > 0 && calls.read > 0 && calls.write > 0 && calls.truncate > 0);
  CHECK_INT(calls.open, calls.close);
  replace_chunks(schunk);
  /* The C library does not ask how long a contiguous frame's file is. */
  rounds_up = contiguous;
  replace_chunks(schunk);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, zeros, BYTES), 3);
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 2), 2);
  rounds_up = false;
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  CHECK_INT(calls.destroy, 1);
  schunk = blosc2_schunk_open_udio(PATH, &io);
  CHECK(schunk != NULL && chunk_is(schunk, 1, 2));
  /* The failure of `destroy` is told. */
  CHECK_INT(blosc2_schunk_free(schunk), 1);
  CHECK_INT(calls.open, calls.close);
  /* It is called, too, when nothing can be opened: the parameters are the back-end's. */
  calls.destroy = 0;
  CHECK(blosc2_schunk_open_udio("test_schunk_io.missing", &io) == NULL);
  CHECK_INT(calls.destroy, 1);
  CHECK(blosc2_schunk_open_offset_udio(PATH, -1, &io) == NULL);
  CHECK_INT(calls.destroy, 2);
  CHECK(blosc2_schunk_open_offset_udio(PATH, 1 << 20, &io) == NULL);
  CHECK_INT(calls.destroy, 3);
  if (contiguous) {
    /* A filter that is not defined. */
    FILE *frame = fopen(PATH, "rb+");
    CHECK(frame != NULL && fseek(frame, 0x47, SEEK_SET) == 0 && fputc(100, frame) == 100);
    fclose(frame);
    CHECK(blosc2_schunk_open_udio(PATH, &io) == NULL);
    CHECK_INT(calls.open, calls.close);
    CHECK_INT(calls.destroy, 4);
  }
  io.id = 201;
  CHECK(blosc2_schunk_open_udio(PATH, &io) == NULL);
  blosc2_remove_urlpath(PATH);
  io.id = 200;
  test_refusal(contiguous, &io);
}

/* ---- Mapped files ---- */

static void test_mapped(void) {
  blosc2_stdio_mmap map = BLOSC2_STDIO_MMAP_DEFAULTS;
  blosc2_stdio_mmap *own;
  blosc2_io io;
  blosc2_schunk *schunk;
  int32_t items[ITEMS];
  uint8_t *chunk;
  bool needs_free = true;
  int64_t length;
  int i;
  io.id = BLOSC2_IO_FILESYSTEM_MMAP;
  io.name = NULL;
  io.params = &map;
  map.mode = "w+";
  map.initial_mapping_size = 1;
  schunk = make(true, PATH, &io, 4);
  CHECK(map.mode == NULL && map.addr != NULL);
  CHECK(chunk_is(schunk, 3, 3));
  REQUIRE(blosc2_schunk_get_chunk(schunk, 2, &chunk, &needs_free) > 32);
  CHECK(!needs_free);
  length = blosc2_schunk_frame_len(schunk);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  CHECK(map.addr == NULL);
  /* Read only, in a struct that the library releases. */
  own = (blosc2_stdio_mmap *)test_alloc(sizeof *own);
  *own = blosc2_get_blosc2_stdio_mmap_defaults();
  own->needs_free = true;
  io.params = own;
  schunk = blosc2_schunk_open_udio(PATH, &io);
  if (CHECK(schunk != NULL)) {
    for (i = 0; i < 4; i++) {
      CHECK(chunk_is(schunk, i, i));
    }
    fill(items, 9);
    CHECK(blosc2_schunk_append_buffer(schunk, items, BYTES) < 0);
    CHECK_INT(schunk->nchunks, 4);
    CHECK_INT(blosc2_schunk_free(schunk), 0);
  }
  /* Changes that stay in memory, and changes that do not. */
  for (i = 0; i < 2; i++) {
    blosc2_stdio_mmap change = BLOSC2_STDIO_MMAP_DEFAULTS;
    change.mode = i == 0 ? "c" : "r+";
    change.initial_mapping_size = 1;
    io.params = &change;
    schunk = blosc2_schunk_open_udio(PATH, &io);
    if (CHECK(schunk != NULL)) {
      fill(items, 4);
      CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 5);
      CHECK(chunk_is(schunk, 4, 4));
      CHECK(chunk_is(schunk, 0, 0));
      CHECK_INT(blosc2_schunk_free(schunk), 0);
    }
    schunk = blosc2_schunk_open(PATH);
    if (CHECK(schunk != NULL)) {
      CHECK_INT(schunk->nchunks, 4 + i);
      CHECK((blosc2_schunk_frame_len(schunk) == length) == (i == 0));
      CHECK_INT(blosc2_schunk_free(schunk), 0);
    }
  }
  blosc2_remove_urlpath(PATH);
}

#if !defined(_WIN32)
/* A struct that describes memory of the program, without a file. */
static void test_mapped_memory(bool cleared, bool memory_only) {
  char memory[100];
  void *address;
  blosc2_stdio_mmap map = BLOSC2_STDIO_MMAP_DEFAULTS;
  if (cleared) {
    memset(&map, 0, sizeof map);
  }
  memset(memory, '.', sizeof memory);
  map.addr = memory;
  map.file_size = 50;
  map.mapping_size = 100;
  map.is_memory_only = memory_only;
  CHECK_INT(blosc2_stdio_mmap_write("xyz", 1, 3, 7, &map), 3);
  CHECK_INT(blosc2_stdio_mmap_write("end", 3, 1, 47, &map), 1);
  CHECK(memcmp(memory + 7, "xyz.", 4) == 0 && memcmp(memory + 47, "end.", 4) == 0);
  CHECK_INT(blosc2_stdio_mmap_size(&map), 50);
  CHECK_INT(blosc2_stdio_mmap_read(&address, 1, 3, 47, &map), 3);
  CHECK(address == memory + 47);
  /* Only memory grows, up to its end: there is no file that could. */
  CHECK_INT(blosc2_stdio_mmap_write("xyz", 1, 3, 50, &map), memory_only ? 3 : 0);
  CHECK_INT(blosc2_stdio_mmap_size(&map), memory_only ? 53 : 50);
  CHECK_INT(memory[50], memory_only ? 'x' : '.');
  CHECK_INT(blosc2_stdio_mmap_truncate(&map, 60), memory_only ? 0 : -1);
  /* Closing leaves the mapping to others. */
  CHECK_INT(blosc2_stdio_mmap_close(&map), 0);
  CHECK_INT(blosc2_stdio_mmap_read(&address, 1, 3, 7, &map), 3);
  CHECK(address == memory + 7);
  CHECK_INT(blosc2_stdio_mmap_read(&address, 1, 30, 40, &map), 0);
  CHECK(address == NULL);
  CHECK_INT(blosc2_stdio_mmap_write("xyz", 1, 3, 98, &map), 0);
  CHECK(map.addr == memory && map.mapping_size == 100 && memory[98] == '.');
  map.addr = NULL;
  CHECK_INT(blosc2_stdio_mmap_write("xyz", 1, 3, 7, &map), 0);
  CHECK_INT(blosc2_stdio_mmap_read(&address, 1, 3, 7, NULL), 0);
  CHECK_INT(blosc2_stdio_mmap_size(NULL), -1);
  CHECK(blosc2_stdio_mmap_open(NULL, "r", &map) == NULL && blosc2_stdio_mmap_open(PATH, "r", NULL) == NULL);
  CHECK(blosc2_stdio_mmap_open("no such file", "r", &map) == NULL && map.addr == NULL);
}
#endif

#ifdef HAVE_PTHREADS
static int still_growing;
static int not_opened;

/* Opens a mapping that there is, as often as it can. */
static void *open_mapping(void *map) {
  while (__atomic_load_n(&still_growing, __ATOMIC_RELAXED)) {
    if (blosc2_stdio_mmap_open(PATH, "r", map) != map) {
      __atomic_add_fetch(&not_opened, 1, __ATOMIC_RELAXED);
    }
  }
  return NULL;
}

/* Readers of one mapping find that the file has grown while others open it: the mapping stays one of the same file. */
static void test_growing_while_opening(void) {
  blosc2_stdio_mmap map = BLOSC2_STDIO_MMAP_DEFAULTS;
  pthread_t threads[3];
  FILE *opened, *writer = fopen(PATH, "wb");
  /* valgrind runs one thread at a time, and threads that never rest may keep the others waiting for minutes. */
  int nthreads = test_is_watched() ? 1 : 3;
  int64_t size = 1, most = 1 << 24;
  size_t mappings = 1, before;
  int i;
  REQUIRE(writer != NULL);
  CHECK_INT(fputc('x', writer), 'x');
  CHECK_INT(fflush(writer), 0);
  REQUIRE(blosc2_stdio_mmap_open(PATH, "r", &map) == &map);
  opened = map.file;
  not_opened = 0;
  still_growing = 1;
  for (i = 0; i < nthreads; i++) {
    CHECK_INT(pthread_create(&threads[i], NULL, open_mapping, &map), 0);
  }
  before = map.mapping_size;
  while (size < most) {
    size += size / 8 + 1;
    CHECK_INT(ftruncate(fileno(writer), size), 0);
    CHECK_INT(blosc2_stdio_mmap_size(&map), size);
    mappings += map.mapping_size != before;
    before = map.mapping_size;
  }
  __atomic_store_n(&still_growing, 0, __ATOMIC_RELAXED);
  for (i = 0; i < nthreads; i++) {
    pthread_join(threads[i], NULL);
  }
  CHECK_INT(not_opened, 0);
  CHECK(map.file == opened);
  /* A file that grows bit by bit is seldom mapped anew. */
  CHECK(mappings < 30);
  CHECK_INT(blosc2_stdio_mmap_destroy(&map), 0);
  fclose(writer);
  blosc2_remove_urlpath(PATH);
}

/* With BLOSC_INFO, stderr tells how files are mapped and chunks compressed; python-blosc2's tests read it. */
static void test_messages(void) {
  static const char *const wanted[] = {
    "[INFO] - Opened memory-mapped file " PATH " in mode w+ with an mapping size of 1000000 bytes.\n",
    "[INFO] - compcode: 0, clevel: 5, blocksize: 4000, splitmode: 1, typesize: 4\n",
    "[INFO] - compcode: 0, clevel: 5, blocksize: 3000, splitmode: 1, typesize: 8\n",
  };
  static const uint8_t zeros[3000];
  static uint8_t packed[5000];
  const void *blocks[2] = {zeros, zeros};
  const int32_t sizes[2] = {1000, 3000};
  blosc2_context *context;
  blosc2_stdio_mmap map = BLOSC2_STDIO_MMAP_DEFAULTS;
  blosc2_io io;
  char text[2000];
  FILE *caught = tmpfile();
  int before = dup(2);
  size_t i;
  io.id = BLOSC2_IO_FILESYSTEM_MMAP;
  io.name = NULL;
  io.params = &map;
  map.mode = "w+";
  map.initial_mapping_size = 1000000;
  if (!CHECK(caught != NULL && before >= 0)) {
    return;
  }
  fflush(stderr);
  dup2(fileno(caught), 2);
  setenv("BLOSC_INFO", "1", 1);
  blosc2_schunk_free(make(true, PATH, &io, 1));
  /* The longest of several blocks. */
  context = blosc2_create_cctx(BLOSC2_CPARAMS_DEFAULTS);
  CHECK(blosc2_vlcompress_ctx(context, blocks, sizes, 2, packed, sizeof packed) > 0);
  blosc2_free_ctx(context);
  unsetenv("BLOSC_INFO");
  fflush(stderr);
  dup2(before, 2);
  close(before);
  rewind(caught);
  text[fread(text, 1, sizeof text - 1, caught)] = '\0';
  fclose(caught);
  for (i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    if (!CHECK(strstr(text, wanted[i]) != NULL)) {
      printf("missing %sin:\n%s", wanted[i], text);
    }
  }
  blosc2_remove_urlpath(PATH);
}
#endif

#ifdef HAVE_PTHREADS
/* A pipe cannot be mapped, and nobody waits for who writes to it. */
static void test_pipes(void) {
  blosc2_stdio_mmap map = BLOSC2_STDIO_MMAP_DEFAULTS;
  blosc2_io io;
  io.id = BLOSC2_IO_FILESYSTEM_MMAP;
  io.name = NULL;
  io.params = &map;
  map.mode = "r";
  remove(PATH);
  REQUIRE(mkfifo(PATH, 0600) == 0);
  CHECK(blosc2_schunk_open_udio(PATH, &io) == NULL);
  CHECK(blosc2_schunk_open(PATH) == NULL);
  remove(PATH);
}
#endif

/* ---- The functions for plain files ---- */

static void test_plain_files(void) {
  char buffer[8] = "";
  void *at = buffer, *none = NULL;
  void *stream;
  CHECK(blosc2_stdio_open(NULL, "rb", NULL) == NULL);
  CHECK(blosc2_stdio_open("test_missing_file", "rb", NULL) == NULL);
  CHECK_INT(blosc2_stdio_close(NULL), -1);
  CHECK_INT(blosc2_stdio_size(NULL), -1);
  stream = blosc2_stdio_open(PATH, "wb+", NULL);
  if (!CHECK(stream != NULL)) {
    return;
  }
  CHECK_INT(blosc2_stdio_write("0123456789", 5, 2, 0, stream), 2);
  CHECK_INT(blosc2_stdio_size(stream), 10);
  CHECK_INT(blosc2_stdio_read(&at, 3, 2, 4, stream), 2);
  CHECK_BYTES(buffer, "456789", 6);
  CHECK_INT(blosc2_stdio_read(&at, 3, 2, 5, stream), 1);
  CHECK(at == buffer);
  CHECK_INT(blosc2_stdio_read(&none, 1, 1, 0, stream), 0);
  CHECK_INT(blosc2_stdio_read(&at, -1, 1, 0, stream), 0);
  CHECK_INT(blosc2_stdio_truncate(stream, 4), 0);
  CHECK_INT(blosc2_stdio_truncate(stream, -1), -1);
  CHECK_INT(blosc2_stdio_size(stream), 4);
  CHECK_INT(blosc2_stdio_close(stream), 0);
  CHECK_INT(blosc2_stdio_destroy(NULL), 0);
  CHECK_INT(blosc2_stdio_mmap_destroy(NULL), -1);
  blosc2_remove_urlpath(PATH);
}

/* Handles around streams of the program. */
#ifdef HAVE_PTHREADS
static void test_own_streams(void) {
  blosc2_stdio_file handle;
  char text[16] = "";
  int ends[2];
  /* What the stream holds counts, and does not end up on top of what is written afterwards. */
  handle.file = fopen(PATH, "wb");
  REQUIRE(handle.file != NULL);
  fputs("buffered", handle.file);
  CHECK_INT(blosc2_stdio_size(&handle), 8);
  CHECK_INT(ftell(handle.file), 8);
  CHECK_INT(blosc2_stdio_write("AB", 1, 2, 2, &handle), 2);
  fputs("!", handle.file);
  CHECK_INT(fclose(handle.file), 0);
  handle.file = fopen(PATH, "rb");
  REQUIRE(handle.file != NULL);
  CHECK_INT(fgetc(handle.file), 'b');
  CHECK_INT(blosc2_stdio_size(&handle), 9);
  CHECK(fgets(text, sizeof text, handle.file) != NULL);
  CHECK_STR(text, "uABered!");
  fclose(handle.file);
  CHECK_INT(pipe(ends), 0);
  handle.file = fdopen(ends[0], "rb");
  CHECK_INT(blosc2_stdio_size(&handle), -1);
  fclose(handle.file);
  close(ends[1]);
  blosc2_remove_urlpath(PATH);
}
#endif

/* ---- Two handles of one file ---- */

static void test_two_handles(bool contiguous, bool locking) {
  blosc2_stdio_params params = BLOSC2_STDIO_PARAMS_DEFAULTS;
  blosc2_io io = BLOSC2_IO_DEFAULTS;
  blosc2_schunk *a, *b;
  int32_t items[ITEMS];
  params.locking = locking;
  io.params = &params;
  a = make(contiguous, PATH, &io, 2);
  b = blosc2_schunk_open_udio(PATH, &io);
  if (!CHECK(b != NULL)) {
    return;
  }
  CHECK_INT(blosc2_schunk_refresh(b), 0);
  fill(items, 2);
  CHECK_INT(blosc2_schunk_append_buffer(a, items, BYTES), 3);
  CHECK_INT(b->nchunks, 2);
  CHECK_INT(blosc2_schunk_refresh(b), 1);
  CHECK_INT(blosc2_schunk_refresh(b), 0);
  CHECK_INT(b->nchunks, 3);
  CHECK_INT(b->change_tick, 1);
  CHECK(chunk_is(b, 2, 2));
  /* A stale writer appends to what is there. */
  fill(items, 3);
  CHECK_INT(blosc2_schunk_append_buffer(a, items, BYTES), 4);
  fill(items, 4);
  CHECK_INT(blosc2_schunk_append_buffer(b, items, BYTES), 5);
  CHECK_INT(blosc2_vlmeta_add(b, "name", (uint8_t *)"value", 5, NULL), 0);
  CHECK_INT(blosc2_vlmeta_exists(a, "name"), 0);
  CHECK_INT(a->nvlmetalayers, 1);
  CHECK_INT(a->nchunks, 5);
  CHECK(chunk_is(a, 3, 3) && chunk_is(a, 4, 4));
  CHECK_INT(blosc2_schunk_lock(a), 0);
  CHECK_INT(blosc2_schunk_lock(a), 0);
  CHECK(chunk_is(a, 4, 4));
  CHECK_INT(blosc2_schunk_unlock(a), 0);
  CHECK_INT(blosc2_schunk_unlock(a), 0);
  CHECK_INT(blosc2_schunk_unlock(a), 0);
  CHECK(chunk_is(b, 0, 0));
  CHECK_INT(blosc2_schunk_free(a), 0);
  CHECK_INT(blosc2_schunk_free(b), 0);
  blosc2_remove_urlpath(PATH);
  CHECK(blosc2_schunk_open(PATH) == NULL);
}

/* ---- Callbacks ---- */

static int double_items(blosc2_prefilter_params *params) {
  const int32_t *in = (const int32_t *)params->input;
  int32_t *out = (int32_t *)params->output;
  int i;
  for (i = 0; i < params->output_size / 4; i++) {
    out[i] = 2 * in[i] + (int32_t)params->nchunk;
  }
  return 0;
}

static int add_chunk_number(blosc2_postfilter_params *params) {
  const int32_t *in = (const int32_t *)params->input;
  int32_t *out = (int32_t *)params->output;
  int i;
  for (i = 0; i < params->size / 4; i++) {
    out[i] = in[i] + 10 * (int32_t)params->nchunk;
  }
  return 0;
}

static void test_callbacks(bool contiguous) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_prefilter_params preparams;
  blosc2_postfilter_params postparams;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  int32_t items[ITEMS], wide[2 * ITEMS];
  int64_t coords[2] = {2 * ITEMS - 1, 0};
  int i, wrong = 0;
  memset(&preparams, 0, sizeof preparams);
  memset(&postparams, 0, sizeof postparams);
  cparams.typesize = 4;
  cparams.prefilter = double_items;
  cparams.preparams = &preparams;
  dparams.postfilter = add_chunk_number;
  dparams.postparams = &postparams;
  dparams.nthreads = 2;
  storage.cparams = &cparams;
  storage.dparams = &dparams;
  storage.contiguous = contiguous;
  schunk = blosc2_schunk_new(&storage);
  for (i = 0; i < ITEMS; i++) {
    items[i] = i;
  }
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 1);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 2);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, items, BYTES), BYTES);
  CHECK_INT(items[3], 2 * 3 + 1 + 10);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 10, 2 * ITEMS, wide), 0);
  for (i = 10; i < 2 * ITEMS; i++) {
    int nchunk = i / ITEMS;
    wrong += wide[i - 10] != 2 * (i % ITEMS) + 11 * nchunk;
  }
  CHECK_INT(wrong, 0);
  CHECK_INT(blosc2_schunk_get_sparse_buffer(schunk, 2, coords, items), 0);
  CHECK_INT(items[0], 2 * (ITEMS - 1) + 11);
  CHECK_INT(items[1], 0);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
}

/* What callbacks of a program with one thread find in the super-chunk that calls them. */
static int look_up(void *schunk, int64_t nchunk) {
  uint8_t *chunk = NULL;
  bool needs_free = false;
  int cbytes = blosc2_schunk_get_chunk((blosc2_schunk *)schunk, nchunk, &chunk, &needs_free);
  if (needs_free) {
    free(chunk);
  }
  return cbytes > 32 ? 0 : -1;
}

static int copy_if_found(blosc2_prefilter_params *params) {
  memcpy(params->output, params->input, (size_t)params->output_size);
  return params->nchunk == 0 ? 0 : look_up(params->user_data, 0);
}

static int show_if_found(blosc2_postfilter_params *params) {
  memcpy(params->output, params->input, (size_t)params->size);
  return look_up(params->user_data, params->nchunk);
}

static void test_looking_up_from_callbacks(bool contiguous) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_prefilter_params preparams;
  blosc2_postfilter_params postparams;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  uint8_t *chunk = NULL;
  bool needs_free = false;
  int32_t items[ITEMS];
  memset(&preparams, 0, sizeof preparams);
  memset(&postparams, 0, sizeof postparams);
  cparams.typesize = 4;
  cparams.nthreads = dparams.nthreads = 1;
  storage.cparams = &cparams;
  storage.dparams = &dparams;
  storage.contiguous = contiguous;
  schunk = blosc2_schunk_new(&storage);
  preparams.user_data = postparams.user_data = schunk;
  cparams.prefilter = copy_if_found;
  cparams.preparams = &preparams;
  cparams.schunk = schunk;
  dparams.postfilter = show_if_found;
  dparams.postparams = &postparams;
  dparams.schunk = schunk;
  blosc2_free_ctx(schunk->cctx);
  blosc2_free_ctx(schunk->dctx);
  schunk->cctx = blosc2_create_cctx(cparams);
  schunk->dctx = blosc2_create_dctx(dparams);
  fill(items, 0);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 1);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 2);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, items, BYTES), BYTES);
  REQUIRE(blosc2_schunk_get_chunk(schunk, 1, &chunk, &needs_free) > 32);
  CHECK_INT(blosc2_schunk_update_chunk(schunk, 0, chunk, true), 2);
  CHECK_INT(blosc2_schunk_delete_chunk(schunk, 0), 1);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, items, BYTES), BYTES);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
}

/* ---- Callbacks that ask for what the operation that called them is changing: they get an error, soon ---- */

static int change_what_is_written(blosc2_postfilter_params *params) {
  uint8_t note[1] = {7};
  CHECK(blosc2_vlmeta_exists((blosc2_schunk *)params->user_data, "note") == 0);
  CHECK(blosc2_vlmeta_update((blosc2_schunk *)params->user_data, "note", note, 1, NULL) <= 0);
  memcpy(params->output, params->input, (size_t)params->size);
  return 0;
}

/* A slice of 500 blocks, each of which calls back: together they wait once, and not for minutes. */
static void test_changing_from_callbacks(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_postfilter_params postparams;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  blosc_timestamp_t start, end;
  uint8_t note[1] = {1};
  int32_t items[ITEMS];
  memset(&postparams, 0, sizeof postparams);
  cparams.typesize = 4;
  cparams.blocksize = BYTES / 500;
  dparams.postfilter = change_what_is_written;
  dparams.postparams = &postparams;
  storage.cparams = &cparams;
  storage.contiguous = true;
  schunk = blosc2_schunk_new(&storage);
  REQUIRE(schunk != NULL);
  postparams.user_data = schunk;
  dparams.schunk = schunk;
  blosc2_free_ctx(schunk->dctx);
  schunk->dctx = blosc2_create_dctx(dparams);
  CHECK_INT(blosc2_vlmeta_add(schunk, "note", note, 1, NULL), 0);
  fill(items, 0);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 1);
  blosc_set_timestamp(&start);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, 1, ITEMS - 1, items + 1), 0);
  blosc_set_timestamp(&end);
  CHECK(blosc_elapsed_secs(start, end) < 60);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
}

static blosc2_schunk *written_to; /* by the back-end */

static int64_t write_and_look(const void *ptr, int64_t size, int64_t nitems, int64_t position, void *stream) {
  if (written_to != NULL) {
    CHECK(look_up(written_to, 0) <= 0);
    CHECK(blosc2_schunk_frame_len(written_to) != 0);
  }
  return count_write(ptr, size, nitems, position, stream);
}

static void test_looking_up_from_back_ends(void) {
  blosc2_io_cb back_end = counted(174, "looking");
  blosc2_io io;
  blosc2_schunk *schunk;
  static int32_t items[ITEMS];
  back_end.write = write_and_look;
  memset(&io, 0, sizeof io);
  io.id = 174;
  io.params = &calls;
  CHECK_INT(blosc2_register_io_cb(&back_end), 0);
  schunk = make(true, PATH, &io, 1);
  written_to = schunk;
  fill(items, 1);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), 2);
  written_to = NULL;
  CHECK(chunk_is(schunk, 1, 1));
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  CHECK_INT(blosc2_remove_urlpath(PATH), 0);
}

/* ---- Blocks of variable length ---- */

static void test_vl_blocks(bool contiguous, const char *urlpath) {
  const char *texts[3] = {"one", "two and more", "three"};
  const void *blocks[3];
  int32_t sizes[3], cbytes, size = 0;
  uint8_t chunk[400], *block = NULL, *lazy;
  uint8_t whole[40];
  bool needs_free;
  blosc2_schunk *schunk = make(contiguous, urlpath, NULL, 0);
  int i;
  for (i = 0; i < 3; i++) {
    blocks[i] = texts[i];
    sizes[i] = (int32_t)strlen(texts[i]);
  }
  cbytes = blosc2_vlcompress_ctx(schunk->cctx, blocks, sizes, 3, chunk, sizeof chunk);
  CHECK(cbytes > 32);
  CHECK_INT(blosc2_schunk_append_chunk(schunk, chunk, true), 1);
  CHECK_INT(blosc2_schunk_append_chunk(schunk, chunk, true), 2);
  CHECK_INT(schunk->flags2 & 1, 1);
  CHECK_INT(blosc2_schunk_get_vlblock(schunk, 1, 1, &block, &size), 12);
  CHECK_INT(size, 12);
  CHECK_BYTES(block, texts[1], 12);
  free(block);
  CHECK_INT(blosc2_schunk_get_vlblock(schunk, 1, 3, &block, &size), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_get_vlblock(schunk, 2, 0, &block, &size), BLOSC2_ERROR_INVALID_PARAM);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, whole, sizeof whole), 20);
  CHECK_BYTES(whole, "onetwo and morethree", 20);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, whole, 20), BLOSC2_ERROR_CHUNK_APPEND);
  cbytes = blosc2_schunk_get_lazychunk(schunk, 0, &lazy, &needs_free);
  REQUIRE(cbytes > 0);
  CHECK_INT(blosc2_vldecompress_block_ctx(schunk->dctx, lazy, cbytes, 2, &block, &size), 5);
  CHECK_BYTES(block, texts[2], 5);
  free(block);
  if (needs_free) {
    free(lazy);
  }
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  blosc2_remove_urlpath(urlpath);
}

/* ---- Readers of one handle in several threads ---- */

#ifdef HAVE_PTHREADS
#define NREADERS 8

struct reader {
  blosc2_schunk *schunk;
  int seed, wrong;
};

static void *read_all(void *arg) {
  struct reader *reader = (struct reader *)arg;
  blosc2_schunk *schunk = reader->schunk;
  int32_t items[64];
  int round;
  for (round = 0; round < 30; round++) {
    int nchunk = (reader->seed * 7 + round * 3) % 6;
    int64_t coords[2], start = (int64_t)nchunk * ITEMS + 100 * round;
    uint8_t *chunk, *content;
    int32_t length;
    bool needs_free;
    reader->wrong += !chunk_is(schunk, nchunk, nchunk);
    reader->wrong += blosc2_schunk_get_slice_buffer(schunk, start, start + 64, items) != 0 ||
                     items[63] != nchunk * 1000000 + 100 * round + 63;
    coords[0] = start + 1;
    coords[1] = 5 * ITEMS;
    reader->wrong += blosc2_schunk_get_sparse_buffer(schunk, 2, coords, items) != 0 ||
                     items[0] != nchunk * 1000000 + 100 * round + 1 || items[1] != 5000000;
    reader->wrong += blosc2_schunk_get_chunk(schunk, nchunk, &chunk, &needs_free) <= 32;
    if (needs_free) {
      free(chunk);
    }
    reader->wrong += blosc2_schunk_get_lazychunk(schunk, nchunk, &chunk, &needs_free) <= 32;
    if (needs_free) {
      free(chunk);
    }
    reader->wrong += blosc2_vlmeta_get(schunk, "name", &content, &length) != 0 || length != 5;
    free(content);
  }
  return NULL;
}

static void test_readers(bool contiguous, const char *urlpath) {
  blosc2_schunk *schunk = make(contiguous, urlpath, NULL, 6);
  struct reader readers[NREADERS];
  pthread_t threads[NREADERS];
  int i;
  CHECK_INT(blosc2_vlmeta_add(schunk, "name", (uint8_t *)"value", 5, NULL), 0);
  blosc2_free_ctx(schunk->dctx);
  schunk->storage->dparams->nthreads = 2;
  schunk->dctx = blosc2_create_dctx(*schunk->storage->dparams);
  for (i = 0; i < NREADERS; i++) {
    readers[i].schunk = schunk;
    readers[i].seed = i;
    readers[i].wrong = 0;
    CHECK_INT(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
  }
  for (i = 0; i < NREADERS; i++) {
    pthread_join(threads[i], NULL);
    CHECK_INT(readers[i].wrong, 0);
  }
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  blosc2_remove_urlpath(urlpath);
}
#endif

int main(void) {
#ifdef HAVE_PTHREADS
  int i;
#endif
  blosc2_init();
  test_looking_up_from_callbacks(true);
  test_looking_up_from_callbacks(false);
  test_changing_from_callbacks();
  test_looking_up_from_back_ends();
  test_plain_files();
  test_back_end(true);
  test_back_end(false);
#if !defined(_WIN32)
  test_mapped();
  test_mapped_memory(false, false);
  test_mapped_memory(false, true);
  test_mapped_memory(true, false);
  test_mapped_memory(true, true);
#endif
  test_two_handles(true, false);
  test_two_handles(false, false);
  test_two_handles(true, true);
  test_two_handles(false, true);
  test_callbacks(true);
  test_callbacks(false);
  test_vl_blocks(false, NULL);
  test_vl_blocks(true, NULL);
  test_vl_blocks(true, PATH);
  test_vl_blocks(false, PATH);
#ifdef HAVE_PTHREADS
  test_own_streams();
  for (i = 0; i < 60; i++) {
    test_growing_while_opening();
  }
  test_pipes();
  test_messages();
  test_readers(false, NULL);
  test_readers(true, NULL);
  test_readers(true, PATH);
  test_readers(false, PATH);
#endif
  blosc2_destroy();
  return test_end();
}
