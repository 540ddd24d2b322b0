/* fork() while other threads are in the middle of calls: the child has copies of whatever locks they held, and has to
   be able to use everything all the same. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CLONE_NEWPID */
#endif

#include "plain.h"
#include "test.h"

#include <blosc2.h>
#include <pthread.h>
#include <signal.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 40000, LARGE = 400000, THREADS = 6, PATIENCE = 60 };

static uint8_t *data, *large_data;
static int ended; /* written by the main thread only, as a request */

static int start(void *config, blosc2_context *cctx, blosc2_context *dctx) {
  BLOSC_UNUSED_PARAM(config);
  BLOSC_UNUSED_PARAM(dctx);
  return cctx != NULL ? 0 : -1;
}

static int next_blocksize(blosc2_context *context) {
  return context != NULL ? 0 : -1;
}

/* Each part returns whether all went well, and works in `path`, a file of its own. */

/* The functions without context, their settings and threads. */
static int use_settings(const char *path) {
  uint8_t chunk[SIZE + BLOSC2_MAX_OVERHEAD], *back = test_alloc(SIZE);
  int fine = blosc2_set_nthreads(3) > 0, cbytes;
  BLOSC_UNUSED_PARAM(path);
  blosc2_set_delta(0);
  blosc1_set_splitmode(BLOSC_FORWARD_COMPAT_SPLIT);
  blosc1_set_blocksize(4096);
  fine = fine && blosc1_set_compressor("lz4") == BLOSC_LZ4 && blosc1_get_compressor() != NULL;
  cbytes = blosc2_compress(5, BLOSC_SHUFFLE, 4, data, SIZE, chunk, sizeof chunk);
  fine = fine && cbytes > 0 && blosc2_decompress(chunk, cbytes, back, SIZE) == SIZE;
  fine = fine && memcmp(data, back, SIZE) == 0;
  fine = fine && blosc2_set_nthreads(1) > 0 && blosc2_get_nthreads() > 0 && blosc1_get_blocksize() == 4096;
  cbytes = blosc2_compress(5, BLOSC_SHUFFLE, 4, data, SIZE, chunk, sizeof chunk);
  fine = fine && cbytes > 0 && blosc2_getitem(chunk, cbytes, 3, 5, back, SIZE) == 20;
  blosc2_set_threads_callback(NULL, NULL);
  free(back);
  return fine;
}

/* Contexts with pools of several sizes. */
static int use_contexts(const char *path) {
  uint8_t *chunk = test_alloc(LARGE + BLOSC2_MAX_OVERHEAD), *back = test_alloc(LARGE);
  int fine = 1, cbytes;
  int16_t nthreads;
  BLOSC_UNUSED_PARAM(path);
  for (nthreads = 1; nthreads <= 4; nthreads++) {
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_context *cctx, *dctx;
    cparams.nthreads = dparams.nthreads = nthreads;
    cparams.blocksize = 8192;
    cctx = blosc2_create_cctx(cparams);
    dctx = blosc2_create_dctx(dparams);
    cbytes = blosc2_compress_ctx(cctx, large_data, LARGE, chunk, LARGE + BLOSC2_MAX_OVERHEAD);
    fine = fine && cbytes > 0 && blosc2_decompress_ctx(dctx, chunk, cbytes, back, LARGE) == LARGE;
    fine = fine && memcmp(large_data, back, LARGE) == 0;
    blosc2_free_ctx(cctx);
    blosc2_free_ctx(dctx);
  }
  free(chunk);
  free(back);
  return fine;
}

/* Registrations, and what was registered. */
static int use_registries(const char *path) {
  static char name[] = "forked", missing[] = "no_such_plugin";
  blosc2_codec codec = {200, name, 200, 1, plain_encoder, plain_decoder};
  blosc2_codec plugin = {201, missing, 201, 1, NULL, NULL};
  blosc2_filter filter = {201, name, 1, plain_forward, plain_backward};
  blosc2_tuner tuner = {start, next_blocksize, NULL, NULL, NULL, 202, name};
  blosc2_io_cb io = *blosc2_get_io_cb(BLOSC2_IO_FILESYSTEM);
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  uint8_t chunk[SIZE + BLOSC2_MAX_OVERHEAD];
  const char *found = NULL;
  int fine, i;
  BLOSC_UNUSED_PARAM(path);
  io.id = 203;
  io.name = name;
  fine = blosc2_register_codec(&codec) == 0 && blosc2_register_filter(&filter) == 0;
  fine = fine && blosc2_register_codec(&plugin) == 0;
  fine = fine && blosc2_register_tuner(&tuner) == 0 && blosc2_register_io_cb(&io) == 0;
  fine = fine && blosc2_compcode_to_compname(200, &found) == 200 && blosc2_get_io_cb(203) != NULL;
  fine = fine && blosc2_list_compressors() != NULL && blosc2_compname_to_compcode("forked") == 200;
  for (i = 0; i < 2; i++) {
    blosc2_context *context;
    cparams.compcode = i == 0 ? 200 : 201;
    cparams.filters[5] = 201;
    cparams.tuner_id = 202;
    context = blosc2_create_cctx(cparams);
    fine = fine && context != NULL;
    if (context != NULL) {
      int code = blosc2_compress_ctx(context, data, SIZE, chunk, sizeof chunk);
      fine = fine && (i == 0 ? code > 0 : code == BLOSC2_ERROR_CODEC_SUPPORT);
      blosc2_free_ctx(context);
    }
  }
  return fine;
}

/* Super-chunks in memory, in a file, and in a mapped one. */
static int use_schunks(const char *path) {
  blosc2_stdio_mmap mapping = BLOSC2_STDIO_MMAP_DEFAULTS;
  blosc2_io mapped = {BLOSC2_IO_FILESYSTEM_MMAP, NULL, NULL};
  uint8_t *back = test_alloc(LARGE);
  int fine = 1, i;
  for (i = 0; i < 2; i++) {
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
    blosc2_schunk *schunk;
    cparams.clevel = 0; /* chunks so large that their memory is kept for others */
    storage.cparams = &cparams;
    storage.contiguous = i == 1;
    storage.urlpath = i == 1 ? (char *)(uintptr_t)path : NULL;
    blosc2_remove_urlpath(path);
    schunk = blosc2_schunk_new(&storage);
    fine = fine && schunk != NULL && blosc2_schunk_append_buffer(schunk, large_data, LARGE) == 1;
    fine = fine && blosc2_vlmeta_add(schunk, "name", data, 100, NULL) >= 0;
    fine = fine && blosc2_schunk_decompress_chunk(schunk, 0, back, LARGE) == LARGE;
    fine = fine && memcmp(large_data, back, LARGE) == 0;
    blosc2_schunk_free(schunk);
  }
  for (i = 0; i < 2; i++) {
    blosc2_schunk *schunk;
    mapping.mode = "r";
    mapped.params = &mapping;
    schunk = i == 0 ? blosc2_schunk_open(path) : blosc2_schunk_open_udio(path, &mapped);
    fine = fine && schunk != NULL && blosc2_schunk_decompress_chunk(schunk, 0, back, LARGE) == LARGE;
    fine = fine && memcmp(large_data, back, LARGE) == 0;
    if (schunk != NULL) {
      blosc2_schunk_free(schunk);
    }
  }
  free(back);
  return fine;
}

/* Initialisation and its end, which other threads do not mind, except for what they have registered. */
static int use_init(const char *path) {
  BLOSC_UNUSED_PARAM(path);
  blosc2_destroy();
  blosc2_init();
  blosc2_free_resources();
  return 1;
}

typedef int (*part)(const char *path);
static const part parts[] = {use_settings, use_contexts, use_registries, use_schunks, use_init};
enum { PARTS = sizeof parts / sizeof *parts };

static void *work(void *number) {
  int first = *(int *)number, i;
  char path[64];
  snprintf(path, sizeof path, "test_fork_%d_%d.b2frame", (int)getpid(), first);
  while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
    /* each mostly with one part, so that the others are in the middle of different ones */
    for (i = 0; i < 10 && !__atomic_load_n(&ended, __ATOMIC_RELAXED); i++) {
      parts[first % PARTS](path);
    }
    parts[(first + 1) % PARTS](path);
  }
  blosc2_remove_urlpath(path);
  return NULL;
}

/* Everything once more, in a child. A child in which all goes well kills itself: an orderly end is the time for a memory
   checker to complain about what threads held that do not exist in the child. */
static void use_all(void) {
  char path[64];
  int i;
  alarm(PATIENCE); /* a child that hangs fails the test */
  snprintf(path, sizeof path, "test_fork_%d.b2frame", (int)getpid());
  for (i = PARTS - 1; i >= 0; i--) {
    if (!parts[i](path)) {
      _exit(i + 1);
    }
  }
  blosc2_remove_urlpath(path);
  blosc2_destroy();
  kill(getpid(), SIGKILL);
}

/* Compresses with a pool of `nthreads` threads that nobody else keeps alive, so that they start and end. */
static int start_and_end_threads(int16_t nthreads) {
  uint8_t chunk[SIZE + BLOSC2_MAX_OVERHEAD];
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_context *context;
  int cbytes;
  cparams.nthreads = nthreads;
  cparams.blocksize = 8192;
  context = blosc2_create_cctx(cparams);
  cbytes = blosc2_compress_ctx(context, data, SIZE, chunk, sizeof chunk);
  blosc2_free_ctx(context);
  return cbytes > 0;
}

static void *keep_starting(void *nthreads) {
  while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
    start_and_end_threads(*(int16_t *)nthreads);
  }
  return NULL;
}

/* Threads of a child start and end, although others were starting and ending at the fork. */
static void threads_of_a_child(void) {
  enum { STARTERS = 4 };
  static int16_t nthreads[STARTERS] = {2, 3, 4, 5};
  int nforks = test_is_watched() ? 10 : 1000, fine = 1, i;
  pthread_t threads[STARTERS];
  __atomic_store_n(&ended, 0, __ATOMIC_RELAXED);
  for (i = 0; i < STARTERS; i++) {
    CHECK_INT(pthread_create(&threads[i], NULL, keep_starting, &nthreads[i]), 0);
  }
  fflush(stdout);
  for (i = 0; i < nforks && fine; i++) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
      alarm(PATIENCE);
      kill(getpid(), start_and_end_threads(2) ? SIGKILL : SIGABRT);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    fine = CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
  __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
  for (i = 0; i < STARTERS; i++) {
    CHECK_INT(pthread_join(threads[i], NULL), 0);
  }
}

static pthread_t main_thread;
static pid_t child_of_prefilter = -1;

/* Copies its input, and forks once. The other threads wait for that in the middle of blocks, or else they might do all the
   work before it comes to the main thread. */
static int forking_prefilter(blosc2_prefilter_params *params) {
  if (!pthread_equal(pthread_self(), main_thread)) {
    int left = 10000;
    while (left-- > 0 && __atomic_load_n(&child_of_prefilter, __ATOMIC_RELAXED) < 0) {
      usleep(1000);
    }
  } else if (params->nblock >= 4 && child_of_prefilter < 0) {
    pid_t child = fork();
    __atomic_store_n(&child_of_prefilter, child, __ATOMIC_RELAXED);
    alarm(child == 0 ? PATIENCE : 0);
  }
  memcpy(params->output, params->input, (size_t)params->output_size);
  return 0;
}

/* A fork in the middle of an operation of several threads: the blocks that others have begun never come to an end in the
   child, which gets an error instead of waiting for them. */
static void fork_inside_operation(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_prefilter_params params = {0};
  uint8_t *chunk = test_alloc(LARGE + BLOSC2_MAX_OVERHEAD);
  blosc2_context *context;
  int code, status = -1;
  main_thread = pthread_self();
  cparams.nthreads = 4;
  cparams.blocksize = 1024;
  cparams.prefilter = forking_prefilter;
  cparams.preparams = &params;
  context = blosc2_create_cctx(cparams);
  fflush(stdout);
  code = blosc2_compress_ctx(context, large_data, LARGE, chunk, LARGE + BLOSC2_MAX_OVERHEAD);
  if (child_of_prefilter == 0) {
    kill(getpid(), code == BLOSC2_ERROR_FAILURE ? SIGKILL : SIGABRT);
  }
  CHECK(code > 0);
  if (CHECK(child_of_prefilter > 0)) {
    CHECK(waitpid(child_of_prefilter, &status, 0) == child_of_prefilter);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
  blosc2_free_ctx(context);
  free(chunk);
}

/* A super-chunk on disk whose handle locks. */
static blosc2_schunk *make_locked(char *path, bool contiguous) {
  static blosc2_stdio_params locking = {.locking = true};
  static char name[] = "stdio";
  blosc2_io io = {BLOSC2_IO_FILESYSTEM, name, &locking};
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  blosc2_remove_urlpath(path);
  storage.contiguous = contiguous;
  storage.urlpath = path;
  storage.io = &io;
  schunk = blosc2_schunk_new(&storage);
  REQUIRE(schunk != NULL);
  return schunk;
}

static blosc2_schunk *shared;

/* Reads over and over: a chunk, then single items, which take hardly more than what surrounds the reading. */
static void *read_shared(void *arg) {
  uint8_t *dest = malloc(SIZE);
  int at = 0, item;
  REQUIRE(dest != NULL);
  while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
    CHECK_INT(blosc2_schunk_decompress_chunk(shared, at++ % 4, dest, SIZE), SIZE);
    for (item = 0; item < 300; item++) {
      CHECK_INT(blosc2_schunk_get_slice_buffer(shared, item, item + 1, dest), 0);
    }
  }
  free(dest);
  return arg;
}

/* Children read through a handle through which other threads of the parent were reading. */
static void inherited_while_reading(bool contiguous, int16_t nthreads) {
  static char path[] = "test_fork_read.b2frame";
  int nforks = test_is_watched() ? 5 : 60, i;
  uint8_t *dest = malloc(SIZE);
  pthread_t threads[2];
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_remove_urlpath(path);
  dparams.nthreads = nthreads;
  storage.dparams = &dparams;
  storage.contiguous = contiguous;
  storage.urlpath = path;
  shared = blosc2_schunk_new(&storage);
  REQUIRE(shared != NULL && dest != NULL);
  for (i = 0; i < 4; i++) {
    CHECK_INT(blosc2_schunk_append_buffer(shared, data, SIZE), i + 1);
  }
  __atomic_store_n(&ended, 0, __ATOMIC_RELAXED);
  for (i = 0; i < 2; i++) {
    CHECK_INT(pthread_create(&threads[i], NULL, read_shared, NULL), 0);
  }
  for (i = 0; i < nforks; i++) {
    int status = -1, nchunk;
    pid_t child = fork();
    if (child == 0) {
      alarm(PATIENCE);
      for (nchunk = 0; nchunk < 4; nchunk++) {
        if (blosc2_schunk_decompress_chunk(shared, nchunk, dest, SIZE) != SIZE || memcmp(dest, data, SIZE) != 0) {
          _exit(1);
        }
      }
      kill(getpid(), SIGKILL);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (!CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
      break;
    }
  }
  __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
  for (i = 0; i < 2; i++) {
    CHECK_INT(pthread_join(threads[i], NULL), 0);
  }
  free(dest);
  CHECK_INT(blosc2_schunk_free(shared), 0);
  CHECK_INT(blosc2_remove_urlpath(path), 0);
}

/* Processes that have a handle from their parent exclude each other. */
static void inherited_locks(bool contiguous) {
  static char path[] = "test_fork_lock.b2frame";
  enum { CHILDREN = 3, APPENDS = 40 };
  blosc2_schunk *schunk = make_locked(path, contiguous);
  pid_t children[CHILDREN];
  int i, status;
  CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 4000), 1); /* the lock file is open now */
  fflush(stdout);
  for (i = 0; i < CHILDREN; i++) {
    children[i] = fork();
    if (children[i] == 0) {
      int done = 0;
      alarm(PATIENCE);
      while (done < APPENDS && blosc2_schunk_append_buffer(schunk, data, 4000) > 0) {
        done++;
      }
      kill(getpid(), done == APPENDS ? SIGKILL : SIGABRT);
    }
  }
  for (i = 0; i < CHILDREN; i++) {
    CHECK(waitpid(children[i], &status, 0) == children[i]);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
  CHECK_INT(blosc2_schunk_refresh(schunk), 1);
  CHECK_INT(schunk->nchunks, 1 + CHILDREN * APPENDS);
  blosc2_schunk_free(schunk);
  blosc2_remove_urlpath(path);
}

/* What was locked before is the parent's: the child waits, and cannot unlock it. */
static void lock_at_the_fork(bool contiguous) {
  static char path[] = "test_fork_lock.b2frame";
  blosc2_schunk *schunk = make_locked(path, contiguous);
  pid_t child;
  int status = -1;
  CHECK_INT(blosc2_schunk_lock(schunk), 0);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 4000), 1);
  fflush(stdout);
  child = fork();
  if (child == 0) {
    alarm(PATIENCE);
    blosc2_schunk_unlock(schunk);
    status = blosc2_schunk_append_buffer(schunk, data, 4000) == 3 ? SIGKILL : SIGABRT;
    if (getpid() != 1) {
      kill(getpid(), status);
    }
    _exit(status == SIGKILL ? 0 : 1); /* the first process of a namespace cannot kill itself */
  }
  usleep(100000);
  CHECK_INT(waitpid(child, &status, WNOHANG), 0);
  CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 4000), 2);
  CHECK_INT(blosc2_schunk_unlock(schunk), 0);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == SIGKILL || (status == 0 && getpid() == 1));
  CHECK_INT(blosc2_schunk_refresh(schunk), 1);
  CHECK_INT(schunk->nchunks, 3);
  blosc2_schunk_free(schunk);
  blosc2_remove_urlpath(path);
}

static void *read_one(void *schunk) {
  uint8_t dest[4000];
  return blosc2_schunk_decompress_chunk(schunk, 0, dest, sizeof dest) == (int)sizeof dest ? schunk : NULL;
}

/* A child reads through a handle through which a thread of the parent waits for the lock, which a third process has. */
static void waiting_at_the_fork(void) {
  static char path[] = "test_fork_lock.b2frame";
  blosc2_schunk *schunk = make_locked(path, true);
  pthread_t thread;
  pid_t other, child;
  int status = -1, ends[2];
  void *outcome;
  char locked = 0;
  CHECK_INT(blosc2_schunk_append_buffer(schunk, data, 4000), 1);
  CHECK_INT(pipe(ends), 0);
  fflush(stdout);
  other = fork();
  if (other == 0) {
    int code = blosc2_schunk_lock(schunk);
    if (write(ends[1], &locked, 1) == 1) {
      usleep(400000);
    }
    kill(getpid(), code == 0 && blosc2_schunk_unlock(schunk) == 0 ? SIGKILL : SIGABRT);
  }
  CHECK(read(ends[0], &locked, 1) == 1);
  CHECK_INT(pthread_create(&thread, NULL, read_one, schunk), 0);
  usleep(100000);
  child = fork();
  if (child == 0) {
    alarm(PATIENCE);
    kill(getpid(), read_one(schunk) != NULL ? SIGKILL : SIGABRT);
  }
  CHECK(waitpid(other, &status, 0) == other && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  CHECK_INT(pthread_join(thread, &outcome), 0);
  CHECK(outcome == schunk);
  CHECK_INT(close(ends[0]), 0);
  CHECK_INT(close(ends[1]), 0);
  blosc2_schunk_free(schunk);
  blosc2_remove_urlpath(path);
}

#ifdef __linux__
/* A child whose number is that of its parent, in a namespace of its own, is no less a child. */
static void child_of_the_same_number(void) {
  int status = -1;
  pid_t child;
  fflush(stdout);
  child = test_is_watched() || unshare(CLONE_NEWPID) != 0 ? -1 : fork();
  if (child == 0) {
    long failures = test_failures;
    alarm(PATIENCE);
    if (getpid() != 1 || unshare(CLONE_NEWPID) != 0) {
      _exit(2);
    }
    lock_at_the_fork(true);
    fflush(stdout);
    _exit(test_failures == failures ? 0 : 1);
  }
  if (child < 0) {
    test_skip("a child of the same number, which takes a namespace of its own");
    return;
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_INT(status, 0);
}
#endif

int main(void) {
  pthread_t threads[THREADS];
  int nforks = test_is_watched() ? 10 : 200; /* valgrind runs one thread at a time, and forks slowly */
  int numbers[THREADS], i, fine = 1;
  setenv("PATH", "", 1); /* the plugin that does not exist is not asked for in Python */
  data = test_make_data(TEST_RAMP, SIZE);
  large_data = test_make_data(TEST_RAMP, LARGE);
  for (i = 0; i < THREADS; i++) {
    numbers[i] = i;
    CHECK_INT(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
  }
  fflush(stdout);
  for (i = 0; i < nforks && fine; i++) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
      use_all();
    }
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    fine = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!CHECK(fine)) {
      printf("child %d: %s %d\n", i, WIFEXITED(status) ? "part" : "signal",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
  }
  __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
  for (i = 0; i < THREADS; i++) {
    CHECK_INT(pthread_join(threads[i], NULL), 0);
  }
  threads_of_a_child();
  fork_inside_operation();
  inherited_while_reading(true, 1);
  inherited_while_reading(false, 1);
  inherited_while_reading(true, 3);
  inherited_locks(true);
  inherited_locks(false);
  lock_at_the_fork(true);
  lock_at_the_fork(false);
  waiting_at_the_fork();
#ifdef __linux__
  child_of_the_same_number();
#endif
  free(data);
  free(large_data);
  return test_end();
}
