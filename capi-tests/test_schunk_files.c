/* Super-chunks written over files that exist, with a full disk; callbacks that use the super-chunk they work for. */

#include <blosc2.h>

#include "test.h"

#if defined(__unix__) || defined(__APPLE__)
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#define HAVE_PROCESSES
#endif

#define ITEMS 4000
#define BYTES (ITEMS * 4)
#define NCHUNKS 4
#define PATH "test_schunk_files.b2frame"

/* Item `i` of chunk `nchunk`. */
static int32_t item(int nchunk, int i) { return nchunk * 1000000 + i * 3; }

static void fill(int32_t *items, int nchunk) {
  int i;
  for (i = 0; i < ITEMS; i++) {
    items[i] = item(nchunk, i);
  }
}

static blosc2_schunk *make(bool contiguous, const char *urlpath, int16_t nthreads) {
  static int32_t items[ITEMS];
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  int i;
  cparams.typesize = 4;
  cparams.blocksize = 4000;
  cparams.nthreads = nthreads;
  dparams.nthreads = nthreads;
  storage.cparams = &cparams;
  storage.dparams = &dparams;
  storage.contiguous = contiguous;
  storage.urlpath = (char *)urlpath;
  blosc2_remove_urlpath(urlpath);
  schunk = blosc2_schunk_new(&storage);
  if (!CHECK(schunk != NULL)) {
    exit(test_end());
  }
  for (i = 0; i < NCHUNKS; i++) {
    fill(items, i);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), i + 1);
  }
  return schunk;
}

#ifdef HAVE_PROCESSES

/* ---- Writers that lock ---- */

/* Opens PATH for changes, with locking. */
static blosc2_schunk *open_locking(void) {
  blosc2_stdio_params params = BLOSC2_STDIO_PARAMS_DEFAULTS;
  blosc2_io io = BLOSC2_IO_DEFAULTS;
  params.locking = true;
  io.params = &params;
  return blosc2_schunk_open_udio(PATH, &io);
}

/* Changes every second item of the first block, `first` and so on, one by one. */
static int change_every_second(int first) {
  blosc2_schunk *schunk = open_locking();
  int32_t new_item;
  int i, failures = schunk == NULL;
  for (i = first; i < 1000 && failures == 0; i += 2) {
    new_item = -i;
    failures += blosc2_schunk_set_slice_buffer(schunk, i, i + 1, &new_item) != 0;
  }
  return failures + (blosc2_schunk_free(schunk) != 0);
}

/* Gives the input, after it has read another chunk through a handle of its own that locks. */
static int prefilter_with_handle(blosc2_prefilter_params *params) {
  static int32_t items[ITEMS];
  blosc2_schunk *schunk = open_locking();
  int n = schunk == NULL ? -1 : blosc2_schunk_decompress_chunk(schunk, 1, items, BYTES);
  blosc2_schunk_free(schunk);
  memcpy(params->output, params->input, (size_t)params->output_size);
  return n != BYTES || items[77] != item(1, 77);
}

/* A slice is written while nobody is kept from reading. */
static void filters_read_through_other_handles(bool contiguous) {
  static int32_t items[2 * ITEMS];
  blosc2_prefilter_params preparams;
  blosc2_schunk *schunk = make(contiguous, PATH, 1);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  schunk = open_locking();
  if (!CHECK(schunk != NULL)) {
    return;
  }
  memset(&preparams, 0, sizeof preparams);
  schunk->storage->cparams->prefilter = prefilter_with_handle;
  schunk->storage->cparams->preparams = &preparams;
  blosc2_free_ctx(schunk->cctx);
  schunk->cctx = blosc2_create_cctx(*schunk->storage->cparams);
  fill(items, 5);
  fill(items + ITEMS, 6);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, 2 * ITEMS + 7, 4 * ITEMS, items), 0);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 2 * ITEMS, 4 * ITEMS, items), 0);
  CHECK_INT(items[6], item(2, 6));
  CHECK_INT(items[7], item(5, 0));
  CHECK_INT(items[2 * ITEMS - 1], item(6, ITEMS - 8));
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  blosc2_remove_urlpath(PATH);
}

static void writers_that_lock_lose_nothing(bool contiguous) {
  static int32_t items[ITEMS];
  blosc2_schunk *schunk = make(contiguous, PATH, 1);
  int i, status = -1;
  pid_t child;
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  child = fork();
  if (child == 0) {
    alarm(60);
    _exit(change_every_second(1));
  }
  CHECK_INT(change_every_second(0), 0);
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_INT(status, 0);
  schunk = open_locking();
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 0, items, BYTES), BYTES);
  for (i = 0; i < ITEMS; i++) {
    if (!CHECK_INT(items[i], i < 1000 ? -i : item(0, i))) {
      break;
    }
  }
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  blosc2_remove_urlpath(PATH);
}

#endif

/* ---- Filters that read the super-chunk they work for ---- */

static struct {
  blosc2_schunk *schunk;
  int reading; /* readers inside of readers stop at the second */
  int calls, failures, changes;
} probe;

static void reset_probe(blosc2_schunk *schunk) {
  memset(&probe, 0, sizeof probe);
  probe.schunk = schunk;
}

/* Reads an item of another chunk than the one that is worked on. */
static void look_around(int64_t nchunk) {
  int64_t at = ((nchunk + 1) % NCHUNKS) * ITEMS + 17;
  int32_t got = -1;
  uint8_t *chunk;
  bool needs_free;
  if (__atomic_fetch_add(&probe.reading, 1, __ATOMIC_SEQ_CST) == 0) {
    __atomic_fetch_add(&probe.calls, 1, __ATOMIC_SEQ_CST);
    if (blosc2_schunk_get_slice_buffer(probe.schunk, at, at + 1, &got) != 0 ||
        got != item((int)((nchunk + 1) % NCHUNKS), 17)) {
      __atomic_fetch_add(&probe.failures, 1, __ATOMIC_SEQ_CST);
    }
    if (blosc2_schunk_get_chunk(probe.schunk, 0, &chunk, &needs_free) <= 0) {
      __atomic_fetch_add(&probe.failures, 1, __ATOMIC_SEQ_CST);
    } else if (needs_free) {
      free(chunk);
    }
    if (blosc2_vlmeta_exists(probe.schunk, "no such layer") != BLOSC2_ERROR_NOT_FOUND) {
      __atomic_fetch_add(&probe.failures, 1, __ATOMIC_SEQ_CST);
    }
  }
  __atomic_fetch_sub(&probe.reading, 1, __ATOMIC_SEQ_CST);
}

static int reading_prefilter(blosc2_prefilter_params *params) {
  memcpy(params->output, params->input, (size_t)params->output_size);
  look_around(params->nchunk);
  return 0;
}

static int reading_postfilter(blosc2_postfilter_params *params) {
  memcpy(params->output, params->input, (size_t)params->size);
  look_around(params->nchunk);
  return 0;
}

/* Gives the super-chunk contexts with these filters. */
static void set_filters(blosc2_schunk *schunk, blosc2_prefilter_fn prefilter, void *input,
                        blosc2_postfilter_fn postfilter) {
  static blosc2_prefilter_params preparams;
  static blosc2_postfilter_params postparams;
  memset(&preparams, 0, sizeof preparams);
  memset(&postparams, 0, sizeof postparams);
  preparams.user_data = input;
  schunk->storage->cparams->prefilter = prefilter;
  schunk->storage->cparams->preparams = prefilter != NULL ? &preparams : NULL;
  schunk->storage->dparams->postfilter = postfilter;
  schunk->storage->dparams->postparams = postfilter != NULL ? &postparams : NULL;
  blosc2_free_ctx(schunk->cctx);
  blosc2_free_ctx(schunk->dctx);
  schunk->cctx = blosc2_create_cctx(*schunk->storage->cparams);
  schunk->dctx = blosc2_create_dctx(*schunk->storage->dparams);
}

static void callbacks_read_the_super_chunk(bool contiguous, const char *urlpath, int16_t nthreads) {
  static int32_t items[2 * ITEMS];
  blosc2_schunk *schunk = make(contiguous, urlpath, nthreads);

  set_filters(schunk, reading_prefilter, NULL, NULL);
  fill(items, NCHUNKS);
  reset_probe(schunk);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), NCHUNKS + 1);
  CHECK(probe.calls > 0);
  CHECK_INT(probe.failures, 0);

  /* A whole chunk, and parts of two. */
  fill(items, 1);
  reset_probe(schunk);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, ITEMS, 2 * ITEMS, items), 0);
  CHECK(probe.calls > 0);
  CHECK_INT(probe.failures, 0);
  fill(items, 1);
  fill(items + ITEMS, 2);
  reset_probe(schunk);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, ITEMS + 5, 2 * ITEMS + 5, items + 5), 0);
  CHECK(probe.calls > 0);
  CHECK_INT(probe.failures, 0);

  set_filters(schunk, NULL, NULL, reading_postfilter);
  reset_probe(schunk);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, items, BYTES), BYTES);
  CHECK_INT(items[77], item(1, 77));
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, ITEMS - 5, ITEMS + 5, items), 0);
  CHECK_INT(items[4], item(0, ITEMS - 1));
  CHECK(probe.calls > 0);
  CHECK_INT(probe.failures, 0);

  /* Both at once: the postfilter sees the old data. */
  set_filters(schunk, reading_prefilter, NULL, reading_postfilter);
  fill(items, 3);
  reset_probe(schunk);
  CHECK_INT(blosc2_schunk_set_slice_buffer(schunk, 3 * ITEMS + 9, 3 * ITEMS + 99, items + 9), 0);
  CHECK(probe.calls > 0);
  CHECK_INT(probe.failures, 0);
  set_filters(schunk, NULL, NULL, NULL);
  CHECK_INT(blosc2_schunk_get_slice_buffer(schunk, 3 * ITEMS, 4 * ITEMS, items), 0);
  CHECK_INT(items[9], item(3, 9));
  CHECK_INT(blosc2_schunk_free(schunk), 0);
  blosc2_remove_urlpath(urlpath);
}

/* Changes the super-chunk from inside of an operation on it, for each block: whatever comes of it, it comes. */
static int changing_postfilter(blosc2_postfilter_params *params) {
  int32_t zero = 0;
  int code = blosc2_vlmeta_add(probe.schunk, "inside", (uint8_t *)&zero, 4, NULL);
  memcpy(params->output, params->input, (size_t)params->size);
  CHECK(code >= 0 || code == BLOSC2_ERROR_FAILURE);
  probe.changes++;
  return 0;
}

static void callbacks_that_change_the_super_chunk_come_back(void) {
  static int32_t items[ITEMS];
  blosc2_schunk *schunk = make(true, NULL, 1);
  set_filters(schunk, NULL, NULL, changing_postfilter);
  reset_probe(schunk);
  CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, items, BYTES), BYTES);
  CHECK(probe.changes > 1);
  CHECK_INT(items[77], item(1, 77));
  CHECK_INT(schunk->nchunks, NCHUNKS);
  CHECK_INT(blosc2_schunk_free(schunk), 0);
}

/* ---- Writing over a file ---- */

#ifdef HAVE_PROCESSES
/* The number of entries of the working directory whose names start like that of the file. */
static int files_beside(void) {
  DIR *dir = opendir(".");
  struct dirent *entry;
  int count = 0;
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    count += strncmp(entry->d_name, PATH, strlen(PATH)) == 0;
  }
  closedir(dir);
  return count;
}

static void an_old_file_survives_a_full_disk(void) {
  static int32_t items[ITEMS];
  static blosc2_schunk *old, *new; /* static: the child exits with them alive, which is no leak */
  int64_t len;
  int status = -1;
  pid_t child;
  old = make(true, NULL, 1);
  new = make(true, NULL, 1);
  fill(items, 7);
  CHECK_INT(blosc2_schunk_append_buffer(new, items, BYTES), NCHUNKS + 1);
  len = blosc2_schunk_to_file(old, PATH);
  CHECK(len > 0);
  child = fork();
  if (child == 0) {
    struct rlimit limit;
    limit.rlim_cur = limit.rlim_max = (rlim_t)len / 2;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(blosc2_schunk_to_file(new, PATH) == BLOSC2_ERROR_FILE_WRITE ? 0 : 1);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_INT(status, 0);
  CHECK_INT(files_beside(), 1);
  blosc2_schunk_free(old);
  old = blosc2_schunk_open(PATH);
  if (CHECK(old != NULL)) {
    CHECK_INT(old->nchunks, NCHUNKS);
    CHECK_INT(blosc2_schunk_decompress_chunk(old, NCHUNKS - 1, items, BYTES), BYTES);
    CHECK_INT(items[5], item(NCHUNKS - 1, 5));
  }
  /* A handle that is open sees the file that takes the place. */
  CHECK(blosc2_schunk_to_file(new, PATH) > len);
  CHECK_INT(files_beside(), 1);
  if (old != NULL) {
    CHECK_INT(blosc2_schunk_refresh(old), 1);
    CHECK_INT(old->nchunks, NCHUNKS + 1);
    blosc2_schunk_free(old);
  }
  blosc2_schunk_free(new);
  CHECK_INT(blosc2_remove_urlpath(PATH), 0);
}
#endif

int main(void) {
  blosc2_init();
#ifdef HAVE_PROCESSES
  alarm(300); /* what hangs fails */
  an_old_file_survives_a_full_disk();
  writers_that_lock_lose_nothing(true);
  writers_that_lock_lose_nothing(false);
  filters_read_through_other_handles(true);
  filters_read_through_other_handles(false);
#endif
  callbacks_read_the_super_chunk(false, NULL, 1);
  callbacks_read_the_super_chunk(true, NULL, 1);
  callbacks_read_the_super_chunk(true, PATH, 1);
  callbacks_read_the_super_chunk(false, PATH, 1);
  callbacks_read_the_super_chunk(false, NULL, 4);
  callbacks_read_the_super_chunk(true, PATH, 4);
  callbacks_that_change_the_super_chunk_come_back();
  blosc2_destroy();
  return test_end();
}
