/* What becomes of calls to which the system refuses memory, or room on disk. */

#ifndef _WIN32
#define _GNU_SOURCE
#endif

#include <b2nd.h>
#include <blosc2.h>

#include "test.h"

#ifdef __linux__
#include "child.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* From now on, the process gets `bytes` bytes of address space more, and that is all. Ends it where no heed is paid to
   that, as in some emulators. */
static int limit_memory(size_t bytes) {
  struct rlimit limit;
  unsigned long pages;
  FILE *sizes = fopen("/proc/self/statm", "r");
  if (sizes == NULL || fscanf(sizes, "%lu", &pages) != 1) {
    return -1;
  }
  fclose(sizes);
  limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
  if (setrlimit(RLIMIT_AS, &limit) != 0) {
    return -1;
  }
  if (mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
    _exit(TEST_IMPOSSIBLE);
  }
  return 0;
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

/* Stores a number in little-endian order. */
static void put(uint8_t *place, uint64_t value) {
  int i;
  for (i = 0; i < 8; i++) {
    place[i] = (uint8_t)(value >> (8 * i));
  }
}

/* Opens a packed super-chunk of very many empty chunks, each of which takes more room when opened. */
static int no_room_for_chunks(void) {
  enum { HEADER = 96, CHUNK = 16, COUNT = 1 << 20, LEN = HEADER + COUNT * (CHUNK + 8) };
  uint8_t *packed = (uint8_t *)test_alloc(LEN), *table = packed + HEADER + COUNT * CHUNK;
  const uint8_t chunk[CHUNK] = {2, 1, 2, 1, 0, 0, 0, 0, 1, 0, 0, 0, CHUNK, 0, 0, 0};
  blosc2_schunk *schunk;
  int i;
  memset(packed, 0, HEADER);
  put(packed + 16, COUNT);
  put(packed + 24, HEADER + 8 * COUNT);
  put(packed + 32, LEN);
  put(packed + 72, HEADER + COUNT * CHUNK);
  for (i = 0; i < COUNT; i++) {
    memcpy(packed + HEADER + i * CHUNK, chunk, CHUNK);
    put(table + 8 * i, HEADER + (uint64_t)i * CHUNK);
  }
  if (limit_memory(8 << 20) != 0) {
    return 1;
  }
  if (blosc2_schunk_from_buffer(packed, LEN, true) != NULL) {
    return 2;
  }
  /* Two of the chunks are few enough. */
  put(packed + 16, 2);
  put(packed + 24, HEADER + 16);
  put(packed + 32, HEADER + 2 * CHUNK + 16);
  put(packed + 72, HEADER + 2 * CHUNK);
  put(packed + HEADER + 2 * CHUNK, HEADER);
  put(packed + HEADER + 2 * CHUNK + 8, HEADER + CHUNK);
  schunk = blosc2_schunk_from_buffer(packed, HEADER + 2 * CHUNK + 16, true);
  return schunk != NULL && schunk->nchunks == 2 ? 0 : 3;
}

/* Writes and reads the metalayer of an array with a very long dtype. */
static int no_room_for_a_dtype(void) {
  const int64_t shape = 10;
  const int32_t chunkshape = 5, blockshape = 2;
  char *dtype = (char *)test_alloc(LARGE), *back = NULL;
  int8_t ndim, format;
  int64_t shape_back;
  int32_t chunkshape_back, blockshape_back;
  uint8_t *meta, *again = NULL;
  int len;
  memset(dtype, 'x', LARGE - 1);
  dtype[LARGE - 1] = 0;
  len = b2nd_serialize_meta(1, &shape, &chunkshape, &blockshape, dtype, 0, &meta);
  if (len < LARGE || limit_memory(8 << 20) != 0) {
    return 1;
  }
  if (b2nd_serialize_meta(1, &shape, &chunkshape, &blockshape, dtype, 0, &again) >= 0) {
    return 2;
  }
  if (b2nd_deserialize_meta(meta, len, &ndim, &shape_back, &chunkshape_back, &blockshape_back, &back, &format) >= 0) {
    return 3;
  }
  /* Without the dtype, there is room. */
  len = b2nd_deserialize_meta(meta, len, &ndim, &shape_back, &chunkshape_back, &blockshape_back, NULL, &format);
  return len > 0 ? 0 : 4;
}

/* A few bytes say that there are very many chunks; what needs memory for each of them fails. */
static int no_room_for_an_index(void) {
  enum { CHUNKS = 1 << 25 };
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  const int64_t shape[2] = {CHUNKS, 2}, narrow[2] = {CHUNKS, 1};
  const int32_t one[2] = {1, 1};
  blosc2_schunk *schunk;
  b2nd_context_t *ctx;
  b2nd_array_t *array;
  cparams.typesize = 1;
  storage.cparams = &cparams;
  storage.contiguous = true;
  schunk = blosc2_schunk_new(&storage);
  ctx = b2nd_create_ctx(&storage, 2, shape, one, one, NULL, 0, NULL, 0);
  if (blosc2_schunk_fill_special(schunk, CHUNKS, BLOSC2_SPECIAL_ZERO, 1) != CHUNKS || b2nd_zeros(ctx, &array) != 0 ||
      limit_memory(64 << 20) != 0) {
    return 1;
  }
  if (blosc2_frame_get_offsets(schunk) != NULL || blosc2_schunk_delete_chunk(schunk, 0) >= 0) {
    return 2;
  }
  if (b2nd_resize(array, narrow, NULL) >= 0 || array->shape[1] != 2) {
    return 3;
  }
  return 0;
}

#define FRAME "test_limits.b2frame"

static bool limit_files(rlim_t bytes) {
  struct rlimit limit;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

/* The number of entries of a directory. */
static int entries_of(const char *path) {
  int count = 0;
  DIR *dir = opendir(path);
  while (dir != NULL && readdir(dir) != NULL) {
    count++;
  }
  if (dir != NULL) {
    closedir(dir);
  }
  return count;
}

/* A frame that cannot be written is not made, and a chunk that cannot be added leaves no file. */
static int no_leftovers(void) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  uint8_t data[100] = {1, 2, 3};
  struct stat index;
  int contiguous, entries;
  storage.urlpath = (char *)FRAME;
  blosc2_remove_urlpath(FRAME);
  for (contiguous = 0; contiguous < 2; contiguous++) {
    storage.contiguous = contiguous != 0;
    if (!limit_files(10) || blosc2_schunk_new(&storage) != NULL || access(FRAME, F_OK) == 0) {
      return 1;
    }
  }
  limit_files(RLIM_INFINITY);
  storage.contiguous = false;
  schunk = blosc2_schunk_new(&storage);
  if (schunk == NULL || blosc2_schunk_append_buffer(schunk, data, sizeof data) != 1) {
    return 2;
  }
  entries = entries_of(FRAME);
  if (stat(FRAME "/chunks.b2frame", &index) != 0 || !limit_files((rlim_t)index.st_size)) {
    return 3;
  }
  if (blosc2_schunk_append_buffer(schunk, data, sizeof data) >= 0 || entries_of(FRAME) != entries) {
    return 4;
  }
  limit_files(RLIM_INFINITY);
  if (blosc2_schunk_append_buffer(schunk, data, sizeof data) != 2 || entries_of(FRAME) != entries + 1) {
    return 5;
  }
  blosc2_schunk_free(schunk);
  return blosc2_remove_urlpath(FRAME) == 0 ? 0 : 6;
}

/* What a change of a mapped frame could write before it failed is not left behind it. */
static int no_leftovers_of_a_mapping(void) {
  blosc2_stdio_mmap mapping = BLOSC2_STDIO_MMAP_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_io io = BLOSC2_IO_DEFAULTS;
  blosc2_schunk *schunk;
  uint8_t data[100] = {1, 2, 3};
  struct stat before, after;
  mapping.mode = "w+";
  io.id = BLOSC2_IO_FILESYSTEM_MMAP;
  io.params = &mapping;
  storage.contiguous = true;
  storage.urlpath = (char *)FRAME;
  storage.io = &io;
  blosc2_remove_urlpath(FRAME);
  schunk = blosc2_schunk_new(&storage);
  if (schunk == NULL || blosc2_meta_add(schunk, "layer", data, 3) != 0 || stat(FRAME, &before) != 0) {
    return 1;
  }
  if (!limit_files((rlim_t)before.st_size + 50) || blosc2_schunk_append_buffer(schunk, data, 100) >= 0) {
    return 2;
  }
  if (stat(FRAME, &after) != 0 || after.st_size != before.st_size) {
    return 3;
  }
  /* What changes nothing but the header needs no room. */
  if (blosc2_meta_update(schunk, "layer", data + 1, 2) != 0) {
    return 4;
  }
  limit_files(RLIM_INFINITY);
  if (blosc2_meta_update(schunk, "layer", data, 2) != 0 || blosc2_schunk_append_buffer(schunk, data, 100) != 1) {
    return 5;
  }
  blosc2_schunk_free(schunk);
  return blosc2_remove_urlpath(FRAME) == 0 ? 0 : 6;
}

#define DISK "test_limits_disk"
#define DISK_FILE DISK "/file.b2frame"

static bool write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  bool fine = file != NULL && fputs(text, file) >= 0;
  return file != NULL && fclose(file) == 0 && fine;
}

/* Puts a disk of 1 MiB in the directory DISK; only this process sees it. */
static bool make_disk(void) {
  char map[40];
  uid_t uid = getuid();
  gid_t gid = getgid();
  if (unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0) {
    return false;
  }
  sprintf(map, "0 %lu 1", (unsigned long)uid);
  if (!write_text("/proc/self/uid_map", map) || !write_text("/proc/self/setgroups", "deny")) {
    return false;
  }
  sprintf(map, "0 %lu 1", (unsigned long)gid);
  return write_text("/proc/self/gid_map", map) && mount("none", DISK, "tmpfs", 0, "size=1m") == 0;
}

enum { PIECE = 100000, MOST = 10 };

/* Fills a disk through a back-end; what did not fit leaves no trace. */
static int fill_disk(blosc2_io *io) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  uint8_t *data = test_make_data(TEST_NOISE, PIECE), *back = (uint8_t *)test_alloc(PIECE);
  blosc2_schunk *schunk;
  struct stat before, after;
  int64_t n, nchunks;
  if (!make_disk()) {
    return TEST_IMPOSSIBLE;
  }
  cparams.typesize = 1;
  storage.cparams = &cparams;
  storage.contiguous = true;
  storage.urlpath = (char *)DISK_FILE;
  storage.io = io;
  schunk = blosc2_schunk_new(&storage);
  if (schunk == NULL) {
    return 1;
  }
  for (nchunks = 0; blosc2_schunk_append_buffer(schunk, data, PIECE) == nchunks + 1; nchunks++) {
    if (nchunks > MOST || stat(DISK_FILE, &before) != 0) {
      return 2;
    }
  }
  if (nchunks != MOST || schunk->nchunks != MOST || stat(DISK_FILE, &after) != 0) {
    return 3;
  }
  if (after.st_size != before.st_size || blosc2_schunk_append_buffer(schunk, data, PIECE) >= 0) {
    return 4;
  }
  /* What is small fits. */
  if (blosc2_vlmeta_add(schunk, "name", data, 10, NULL) != 0) {
    return 5;
  }
  blosc2_schunk_free(schunk);
  schunk = blosc2_schunk_open(DISK_FILE);
  if (schunk == NULL || schunk->nchunks != MOST || schunk->nvlmetalayers != 1) {
    return 6;
  }
  for (n = 0; n < MOST; n++) {
    if (blosc2_schunk_decompress_chunk(schunk, n, back, PIECE) != PIECE || memcmp(back, data, PIECE) != 0) {
      return 7;
    }
  }
  return 0;
}

static int fill_disk_with_files(void) {
  blosc2_io io = BLOSC2_IO_DEFAULTS;
  return fill_disk(&io);
}

static int fill_disk_with_mapping(void) {
  blosc2_stdio_mmap mapping = BLOSC2_STDIO_MMAP_DEFAULTS;
  blosc2_io io = BLOSC2_IO_DEFAULTS;
  mapping.mode = "w+";
  io.id = BLOSC2_IO_FILESYSTEM_MMAP;
  io.params = &mapping;
  return fill_disk(&io);
}
#endif

int main(void) {
  blosc2_init();
#ifdef __linux__
  if (!test_is_watched()) {
    IN_CHILD(no_room_for_a_block);
    IN_CHILD(no_room_for_chunks);
    IN_CHILD(no_room_for_a_dtype);
    IN_CHILD(no_room_for_an_index);
  }
  IN_CHILD(no_leftovers);
  IN_CHILD(no_leftovers_of_a_mapping);
  CHECK(mkdir(DISK, 0755) == 0);
  IN_CHILD(fill_disk_with_files);
  IN_CHILD(fill_disk_with_mapping);
  CHECK(rmdir(DISK) == 0);
#endif
  CHECK(1);
  blosc2_destroy();
  return test_end();
}
