/* Processes that have little of something, or that are disturbed: threads, open files, memory, signals, the standard
   streams, the current directory. */

#ifndef _WIN32
#define _GNU_SOURCE
#endif

#include <blosc2.h>

#include "test.h"

#ifdef __linux__
#include "child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { SIZE = 100000, NCHUNKS = 20, NTHREADS = 3 };

#define FRAME "test_process.b2frame"
#define OTHER "test_process_other.b2frame"

/* A super-chunk with `nchunks` chunks, each of which begins with its number. */
static blosc2_schunk *make(const char *urlpath, bool contiguous, int nchunks) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  int32_t *data = (int32_t *)test_make_data(TEST_RAMP, SIZE);
  blosc2_schunk *schunk;
  int n;
  cparams.typesize = sizeof *data;
  cparams.nthreads = dparams.nthreads = NTHREADS;
  storage.cparams = &cparams;
  storage.dparams = &dparams;
  storage.contiguous = contiguous;
  storage.urlpath = (char *)urlpath;
  blosc2_remove_urlpath(urlpath);
  schunk = blosc2_schunk_new(&storage);
  for (n = 0; n < nchunks && schunk != NULL; n++) {
    data[0] = n;
    if (blosc2_schunk_append_buffer(schunk, data, SIZE) != n + 1) {
      blosc2_schunk_free(schunk);
      schunk = NULL;
    }
  }
  free(data);
  return schunk;
}

/* Whether the chunks are there. */
static bool is_whole(blosc2_schunk *schunk, int nchunks) {
  int32_t *data = (int32_t *)test_alloc(SIZE);
  bool whole = schunk != NULL && schunk->nchunks == nchunks;
  int n;
  for (n = 0; n < nchunks && whole; n++) {
    whole = blosc2_schunk_decompress_chunk(schunk, n, data, SIZE) == SIZE && data[0] == n && data[100] == 700;
  }
  free(data);
  return whole;
}

/* Ends the process if it hangs: the signals take the place of `alarm`. */
static void count_signal(int number) {
  static volatile sig_atomic_t signals;
  (void)number;
  signals = signals + 1;
  if (signals > 300000) {
    _exit(EXIT_FAILURE);
  }
}

/* Signals interrupt system calls, which are not restarted. */
static int many_signals(void) {
  struct sigaction action;
  struct itimerval often = {{0, 200}, {0, 200}};
  int contiguous;
  memset(&action, 0, sizeof action);
  action.sa_handler = count_signal;
  if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &often, NULL) != 0) {
    return TEST_IMPOSSIBLE;
  }
  for (contiguous = 0; contiguous < 2; contiguous++) {
    blosc2_schunk *schunk = make(FRAME, contiguous != 0, NCHUNKS), *opened = blosc2_schunk_open(FRAME);
    if (!is_whole(schunk, NCHUNKS) || !is_whole(opened, NCHUNKS)) {
      return 1;
    }
    blosc2_schunk_free(schunk);
    blosc2_schunk_free(opened);
  }
  return blosc2_remove_urlpath(FRAME) == 0 ? 0 : 2;
}

/* No more files can be opened for a while. */
static int no_more_files(void) {
  struct rlimit limit;
  int opened[64];
  int contiguous, count;
  for (contiguous = 0; contiguous < 2; contiguous++) {
    blosc2_schunk *schunk = make(FRAME, contiguous != 0, 3);
    if (schunk == NULL || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
      return 1;
    }
    limit.rlim_cur = 64;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      return TEST_IMPOSSIBLE;
    }
    for (count = 0; count < 64 && (opened[count] = open("/dev/null", O_RDONLY)) >= 0; count++) {
    }
    if (errno != EMFILE || blosc2_schunk_open(FRAME) != NULL || make(OTHER, true, 1) != NULL) {
      return 2;
    }
    while (count > 0) {
      close(opened[--count]);
    }
    if (make(OTHER, true, 0) == NULL || blosc2_remove_urlpath(OTHER) != 0) {
      return 3;
    }
    blosc2_schunk_free(schunk);
    if (blosc2_remove_urlpath(FRAME) != 0) {
      return 4;
    }
  }
  return 0;
}

/* The threads that a prefilter was called in. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t first;
static int blocks;
static bool has_second;

/* Waits until there is another thread, but not for ever. */
static int note_thread(blosc2_prefilter_params *params) {
  int patience = *(int *)params->user_data;
  bool wait = true;
  while (wait) {
    pthread_mutex_lock(&lock);
    if (blocks == 0) {
      first = pthread_self();
    }
    blocks++;
    has_second = has_second || !pthread_equal(first, pthread_self());
    wait = !has_second && patience-- > 0;
    pthread_mutex_unlock(&lock);
    if (wait) {
      usleep(1000);
    }
  }
  memset(params->output, 7, (size_t)params->output_size);
  return 0;
}

static void *do_nothing(void *argument) {
  return argument;
}

static int compress_noting(blosc2_context *cctx) {
  static uint8_t data[SIZE], chunk[SIZE + BLOSC2_MAX_OVERHEAD];
  blocks = 0;
  has_second = false;
  return blosc2_compress_ctx(cctx, data, SIZE, chunk, sizeof chunk) > 0;
}

/* The system has no more threads for a while: then one does all the work. */
static int no_more_threads(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_prefilter_params params;
  blosc2_context *cctx;
  struct rlimit limit;
  pthread_t thread;
  int patience = 0;
  if (getuid() == 0 && (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)) {
    return TEST_IMPOSSIBLE;
  }
  getrlimit(RLIMIT_NPROC, &limit);
  limit.rlim_cur = 0;
  if (setrlimit(RLIMIT_NPROC, &limit) != 0 ||
      pthread_create(&thread, NULL, do_nothing, NULL) != EAGAIN) {
    return TEST_IMPOSSIBLE;
  }
  memset(&params, 0, sizeof params);
  params.user_data = &patience;
  cparams.nthreads = NTHREADS;
  cparams.blocksize = SIZE / 20;
  cparams.prefilter = note_thread;
  cparams.preparams = &params;
  cctx = blosc2_create_cctx(cparams);
  if (cctx == NULL || !compress_noting(cctx) || has_second) {
    return 1;
  }
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NPROC, &limit) != 0 || pthread_create(&thread, NULL, do_nothing, NULL) != 0) {
    return TEST_IMPOSSIBLE;
  }
  patience = 20000;
  if (!compress_noting(cctx) || !has_second) {
    return 2;
  }
  blosc2_free_ctx(cctx);
  return 0;
}

enum { BLOCK = 8 << 20, USERS = 14 };

static pthread_barrier_t all_worked, all_measured;

/* Works on a large block, and lives on. */
static void *work_and_wait(void *data) {
  uint8_t *chunk = (uint8_t *)test_alloc(BLOCK + BLOSC2_MAX_OVERHEAD);
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_context *cctx;
  bool good;
  cparams.compcode = BLOSC_LZ4;
  cparams.typesize = 4;
  cparams.blocksize = BLOCK;
  cctx = blosc2_create_cctx(cparams);
  pthread_mutex_lock(&lock);
  good = blosc2_compress_ctx(cctx, data, BLOCK, chunk, BLOCK + BLOSC2_MAX_OVERHEAD) > 0;
  pthread_mutex_unlock(&lock);
  blosc2_free_ctx(cctx);
  free(chunk);
  pthread_barrier_wait(&all_worked);
  pthread_barrier_wait(&all_measured);
  return good ? data : NULL;
}

/* Bytes of memory that the process has. */
static long memory_of_process(void) {
  long pages = -1;
  FILE *sizes = fopen("/proc/self/statm", "r");
  if (sizes != NULL) {
    if (fscanf(sizes, "%*s %ld", &pages) != 1) {
      pages = -1;
    }
    fclose(sizes);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

/* Threads that once had much to do do not keep memory for ever. */
static int memory_of_many_threads(void) {
  uint8_t *data = test_make_data(TEST_RAMP, BLOCK);
  pthread_t threads[USERS];
  void *result;
  long before, after;
  cpu_set_t one;
  int n, code = 0;
  /* What may be kept depends on the number of processors. */
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) {
    return TEST_IMPOSSIBLE;
  }
  before = memory_of_process();
  pthread_barrier_init(&all_worked, NULL, USERS + 1);
  pthread_barrier_init(&all_measured, NULL, USERS + 1);
  for (n = 0; n < USERS; n++) {
    if (pthread_create(&threads[n], NULL, work_and_wait, data) != 0) {
      return TEST_IMPOSSIBLE;
    }
  }
  pthread_barrier_wait(&all_worked);
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  after = memory_of_process();
  if (before <= 0 || after - before > 90l << 20) {
    printf("%ld MiB are kept\n", (after - before) >> 20);
    fflush(stdout);
    code = 1;
  }
  pthread_barrier_wait(&all_measured);
  for (n = 0; n < USERS; n++) {
    if (pthread_join(threads[n], &result) != 0 || result == NULL) {
      code = 2;
    }
  }
  return code;
}

/* blosc2_destroy() releases what is kept of work and of chunks also if nobody called blosc2_init(). */
static int nothing_is_kept_without_init(void) {
  uint8_t *data = test_make_data(TEST_NOISE, BLOCK);
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *schunk;
  long before, after;
  int n;
  blosc2_destroy();
  before = memory_of_process();
  schunk = blosc2_schunk_new(&storage);
  for (n = 0; n < 30 << 20; n += BLOCK) {
    if (blosc2_schunk_append_buffer(schunk, data, BLOCK) < 0) {
      return 2;
    }
  }
  blosc2_schunk_free(schunk);
  blosc2_destroy();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  after = memory_of_process();
  free(data);
  if (before <= 0 || after - before > 10l << 20) {
    printf("%ld MiB are kept\n", (after - before) >> 20);
    fflush(stdout);
    return 1;
  }
  return 0;
}

/* Files get the numbers of the standard streams, to which nothing must be written then. */
static int no_standard_streams(void) {
  blosc2_schunk *schunk, *opened;
  close(0);
  close(1);
  close(2);
  setenv("BLOSC_TRACE", "1", 1);
  schunk = make(FRAME, true, NCHUNKS);
  opened = blosc2_schunk_open(FRAME);
  if (blosc2_schunk_open("missing.b2frame") != NULL || blosc2_schunk_decompress_chunk(opened, 99, &opened, 1) >= 0) {
    return 1;
  }
  if (!is_whole(schunk, NCHUNKS) || !is_whole(opened, NCHUNKS)) {
    return 2;
  }
  blosc2_schunk_free(schunk);
  blosc2_schunk_free(opened);
  return blosc2_remove_urlpath(FRAME) == 0 ? 0 : 3;
}

/* Takes its time, at a point where threads are cancelled. */
static int wait_in_block(blosc2_postfilter_params *params) {
  usleep(300);
  memcpy(params->output, params->input, (size_t)params->size);
  return 0;
}

static void *read_for_ever(void *schunk) {
  int32_t *data = (int32_t *)test_alloc(SIZE);
  pthread_cleanup_push(free, data);
  for (;;) {
    blosc2_schunk_decompress_chunk(schunk, 0, data, SIZE);
    pthread_testcancel();
  }
  pthread_cleanup_pop(1);
  return NULL;
}

static void *write_for_ever(void *opened) {
  blosc2_schunk *schunk = (blosc2_schunk *)opened;
  int32_t *data = (int32_t *)test_make_data(TEST_RAMP, SIZE);
  pthread_cleanup_push(free, data);
  for (;;) {
    data[0] = (int32_t)schunk->nchunks;
    blosc2_schunk_append_buffer(schunk, data, SIZE);
    pthread_testcancel();
  }
  pthread_cleanup_pop(1);
  return NULL;
}

/* Starts a thread and cancels it after a while. */
static bool cancel_soon(void *(*work)(void *), blosc2_schunk *schunk, int round) {
  pthread_t thread;
  void *result = NULL;
  if (pthread_create(&thread, NULL, work, schunk) != 0) {
    return false;
  }
  usleep(200 + 137 * (unsigned)round);
  return pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED;
}

/* Threads that are cancelled in the middle of a call take nothing with them. */
static int cancelled_threads(void) {
  int contiguous, round;
  for (contiguous = 0; contiguous < 2; contiguous++) {
    blosc2_schunk *schunk = make(FRAME, contiguous != 0, 3);
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_postfilter_params params;
    for (round = 0; round < 20; round++) {
      if (!cancel_soon(read_for_ever, schunk, round) || !is_whole(schunk, 3)) {
        return 1;
      }
    }
    memset(&params, 0, sizeof params);
    dparams.postfilter = wait_in_block;
    dparams.postparams = &params;
    dparams.schunk = schunk;
    blosc2_free_ctx(schunk->dctx);
    schunk->dctx = blosc2_create_dctx(dparams);
    for (round = 0; round < 10; round++) {
      if (!cancel_soon(read_for_ever, schunk, round) || !is_whole(schunk, 3)) {
        return 2;
      }
    }
    for (round = 0; round < 20; round++) {
      blosc2_schunk *opened;
      if (!cancel_soon(write_for_ever, schunk, round)) {
        return 3;
      }
      opened = blosc2_schunk_open(FRAME);
      if (opened == NULL || !is_whole(opened, (int)schunk->nchunks)) {
        return 4;
      }
      blosc2_schunk_free(opened);
    }
    blosc2_schunk_free(schunk);
    blosc2_remove_urlpath(FRAME);
  }
  return 0;
}

static pthread_t caller;

static void *cancel_caller(void *argument) {
  pthread_cancel(caller);
  return argument;
}

/* Has the calling thread cancelled, once, and is at a point where threads end then. */
static int start_canceller(blosc2_prefilter_params *params) {
  static bool is_started;
  pthread_t thread;
  if (!is_started) {
    is_started = true;
    if (pthread_create(&thread, NULL, cancel_caller, NULL) != 0) {
      return 1;
    }
    pthread_join(thread, NULL);
    pthread_testcancel();
  }
  memcpy(params->output, params->input, (size_t)params->output_size);
  return 0;
}

/* The only thread is cancelled by one that a function of the application starts. */
static int cancelled_in_callback(void) {
  uint8_t *data = test_make_data(TEST_RAMP, SIZE), *chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_prefilter_params params;
  blosc2_context *cctx;
  int size;
  memset(&params, 0, sizeof params);
  cparams.typesize = 4;
  cparams.prefilter = start_canceller;
  cparams.preparams = &params;
  caller = pthread_self();
  cctx = blosc2_create_cctx(cparams);
  size = blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  blosc2_free_ctx(cctx);
  free(data);
  free(chunk);
  return size > 0 ? 0 : 1;
}

/* The only thread has cancelled itself, and writes to a file before it ends. */
static int cancelled_by_itself(void) {
  blosc2_schunk *schunk = make(FRAME, true, 3);
  uint8_t *data = test_make_data(TEST_RAMP, SIZE);
  int64_t nchunks;
  int old;
  pthread_cancel(pthread_self());
  nchunks = blosc2_schunk_append_buffer(schunk, data, SIZE);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  free(data);
  blosc2_schunk_free(schunk);
  blosc2_remove_urlpath(FRAME);
  return nchunks == 4 && old == PTHREAD_CANCEL_ENABLE ? 0 : 1;
}

/* How many threads the process has; 0 if that is not known. A thread that has ended may be seen for a little longer. */
static int count_threads(int expected) {
  int nthreads = 0, tries;
  for (tries = 0; tries < 1000; tries++) {
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    nthreads = 0;
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
      nthreads += entry->d_name[0] != '.';
    }
    if (tasks != NULL) {
      closedir(tasks);
    }
    if (nthreads == expected || nthreads == 0) {
      break;
    }
    usleep(1000);
  }
  return nthreads;
}

/* Contexts that a thread keeps for itself. */
struct kept {
  blosc2_context *cctx, *dctx;
  int round; /* in which their destructor uses and frees them */
  bool early; /* whether the thread uses them before it ends */
};

static pthread_key_t kept_key;
static int32_t kept_data[SIZE / 4], kept_back[SIZE / 4];
static uint8_t kept_chunk[SIZE + BLOSC2_MAX_OVERHEAD];
static int kept_uses, kept_failures;

static void use_kept(const struct kept *kept) {
  int cbytes = blosc2_compress_ctx(kept->cctx, kept_data, SIZE, kept_chunk, sizeof kept_chunk);
  memset(kept_back, 0, SIZE);
  kept_uses++;
  kept_failures += cbytes <= 0 || blosc2_decompress_ctx(kept->dctx, kept_chunk, cbytes, kept_back, SIZE) != SIZE ||
                   memcmp(kept_data, kept_back, SIZE) != 0;
}

static void end_kept(void *argument) {
  struct kept *kept = (struct kept *)argument;
  if (kept->round-- > 0) {
    pthread_setspecific(kept_key, kept);
    return;
  }
  use_kept(kept);
  blosc2_free_ctx(kept->cctx);
  blosc2_free_ctx(kept->dctx);
}

static void *keep(void *argument) {
  struct kept *kept = (struct kept *)argument;
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  cparams.typesize = 4;
  cparams.blocksize = SIZE / 20;
  cparams.nthreads = dparams.nthreads = NTHREADS;
  kept->cctx = blosc2_create_cctx(cparams);
  kept->dctx = blosc2_create_dctx(dparams);
  if (kept->early) {
    use_kept(kept);
  }
  pthread_setspecific(kept_key, kept);
  return NULL;
}

/* Threads use and free their contexts in the destructors of thread-specific data: also in those rounds of them that come after
   the end of whatever else a thread has. */
static int contexts_of_ending_threads(void) {
  const int nthreads = count_threads(1); /* emulators have some of their own */
  int n;
  char errors[200];
  FILE *output;
  for (n = 0; n < SIZE / 4; n++) {
    kept_data[n] = n;
  }
  if (freopen(FRAME, "w+", stderr) == NULL || pthread_key_create(&kept_key, end_kept) != 0) {
    return TEST_IMPOSSIBLE;
  }
  for (n = 0; n < 8; n++) {
    struct kept kept = {NULL, NULL, n / 2, n % 2 != 0};
    pthread_t thread;
    if (pthread_create(&thread, NULL, keep, &kept) != 0 || pthread_join(thread, NULL) != 0) {
      return TEST_IMPOSSIBLE;
    }
  }
  if (kept_uses != 12 || kept_failures != 0) {
    return 1;
  }
  /* nobody has anything to complain of */
  fflush(stderr);
  output = fopen(FRAME, "r");
  if (output == NULL || fgets(errors, sizeof errors, output) != NULL) {
    return 2;
  }
  fclose(output);
  remove(FRAME);
  blosc2_destroy();
  return count_threads(nthreads) == nthreads ? 0 : 3;
}

/* A path is looked up at each use, and what is not found is not made. */
static int another_directory(void) {
  int32_t *data = (int32_t *)test_make_data(TEST_RAMP, SIZE);
  int contiguous;
  char *home = getcwd(NULL, 0);
  for (contiguous = 0; contiguous < 2 && home != NULL; contiguous++) {
    blosc2_schunk *schunk = make(FRAME, contiguous != 0, 3);
    if (schunk == NULL || chdir("/") != 0) {
      return 1;
    }
    data[0] = 3;
    if (blosc2_schunk_append_buffer(schunk, data, SIZE) >= 0 || schunk->nchunks != 3 || access(FRAME, F_OK) == 0) {
      return 2;
    }
    if (chdir(home) != 0 || blosc2_schunk_append_buffer(schunk, data, SIZE) != 4 || !is_whole(schunk, 4)) {
      return 3;
    }
    blosc2_schunk_free(schunk);
    schunk = blosc2_schunk_open(FRAME);
    if (!is_whole(schunk, 4)) {
      return 4;
    }
    blosc2_schunk_free(schunk);
  }
  free(data);
  free(home);
  return blosc2_remove_urlpath(FRAME) == 0 ? 0 : 5;
}
#endif

#ifdef __linux__
/* Contexts with threads initialise the library, so that blosc2_destroy() has something to end. */
static int contexts_without_init(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  uint8_t *data = test_make_data(TEST_RAMP, SIZE), *chunk = test_alloc(SIZE + BLOSC2_MAX_OVERHEAD);
  long failures = test_failures;
  int nthreads, round;
  blosc2_destroy();
  nthreads = count_threads(1); /* emulators have some of their own */
  if (nthreads == 0) {
    return TEST_IMPOSSIBLE;
  }
  for (round = 0; round < 2; round++) {
    blosc2_context *cctx;
    cparams.nthreads = (int16_t)(round == 0 ? 1 : NTHREADS);
    cparams.blocksize = 1000;
    cctx = blosc2_create_cctx(cparams);
    CHECK_INT(blosc2_free_resources(), BLOSC2_ERROR_FAILURE);
    CHECK(blosc2_compress_ctx(cctx, data, SIZE, chunk, SIZE + BLOSC2_MAX_OVERHEAD) > 0);
    CHECK_INT(blosc2_free_resources(), round == 0 ? BLOSC2_ERROR_FAILURE : 0);
    blosc2_destroy();
    CHECK_INT(count_threads(nthreads), nthreads);
    blosc2_free_ctx(cctx);
  }
  free(data);
  free(chunk);
  fflush(stdout);
  return test_failures > failures ? 1 : 0;
}
#endif

int main(void) {
  blosc2_init();
#ifdef __linux__
  IN_CHILD(many_signals);
  IN_CHILD(no_more_files);
  IN_CHILD(no_more_threads);
  if (!test_is_watched()) {
    IN_CHILD(memory_of_many_threads);
    IN_CHILD(nothing_is_kept_without_init);
  }
  IN_CHILD(no_standard_streams);
  IN_CHILD(contexts_without_init);
  IN_CHILD(contexts_of_ending_threads);
  IN_CHILD(another_directory);
  IN_CHILD(cancelled_threads);
  IN_CHILD(cancelled_in_callback);
  IN_CHILD(cancelled_by_itself);
#endif
  CHECK(1);
  blosc2_destroy();
  return test_end();
}
