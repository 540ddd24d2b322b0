/* Threads callbacks as programs with a scheduler of their own have them: while something waits for its own jobs, it
 * sleeps, or whatever is queued runs on the same stack, jobs of an operation that is under way included. */

#include <blosc2.h>

#include "test.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <unistd.h>
#define HAVE_PTHREADS
#endif

enum { BYTES = 1000000, OTHER = 200000, JOBS = 4000, THREADS = 2 };

static uint8_t *data, *chunk, *back, *other, *scratch;
static int32_t other_cbytes;

/* What is queued; `*left` counts the jobs of one call that are not done. */
static struct {
  void (*job)(void *);
  void *item;
  int *left;
} queue[JOBS];
static int first_queued, end_queued, nested, most_nested;

static void run_one(void) {
  int at = first_queued++;
  nested++;
  most_nested = nested > most_nested ? nested : most_nested;
  queue[at].job(queue[at].item);
  nested--;
  --*queue[at].left;
}

static void run_jobs(void *callback_data, void (*job)(void *), int njobs, size_t size, void *items) {
  int left = njobs, i;
  BLOSC_UNUSED_PARAM(callback_data);
  REQUIRE(end_queued + njobs <= JOBS);
  for (i = 0; i < njobs; i++) {
    queue[end_queued].job = job;
    queue[end_queued].item = (char *)items + (size_t)i * size;
    queue[end_queued++].left = &left;
  }
  while (left > 0) {
    run_one();
  }
}

/* Reads the other chunk, with threads. */
static int read_other(void) {
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_context *dctx;
  int nbytes;
  dparams.nthreads = 2;
  dctx = blosc2_create_dctx(dparams);
  nbytes = blosc2_decompress_ctx(dctx, other, other_cbytes, scratch, OTHER);
  blosc2_free_ctx(dctx);
  return nbytes == OTHER ? 0 : 1;
}

/* A prefilter that reads the other chunk before it lets some of its blocks pass. */
static int look_up(blosc2_prefilter_params *params) {
  if (params->nblock % 7 == 0 && read_other() != 0) {
    return 1;
  }
  memcpy(params->output, params->input, (size_t)params->output_size);
  return 0;
}

/* The same bytes as with one thread, with blocks of this size. */
static void test_blocks(int32_t blocksize) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  blosc2_prefilter_params params;
  uint8_t *alone = test_alloc(BYTES + BLOSC2_MAX_OVERHEAD);
  blosc2_context *cctx, *dctx;
  int nthreads, cbytes = 0;
  memset(&params, 0, sizeof params);
  cparams.typesize = 4;
  cparams.blocksize = blocksize;
  cparams.prefilter = look_up;
  cparams.preparams = &params;
  for (nthreads = 1; nthreads <= 5; nthreads += 2) {
    int got;
    cparams.nthreads = (int16_t)nthreads;
    cctx = blosc2_create_cctx(cparams);
    first_queued = end_queued = 0;
    got = blosc2_compress_ctx(cctx, data, BYTES, nthreads == 1 ? alone : chunk, BYTES + BLOSC2_MAX_OVERHEAD);
    blosc2_free_ctx(cctx);
    if (nthreads == 1) {
      cbytes = got;
      CHECK(cbytes > 0);
    } else if (CHECK_INT(got, cbytes)) {
      CHECK_BYTES(chunk, alone, (size_t)cbytes);
    }
    CHECK_INT(first_queued, end_queued);
  }
  dparams.nthreads = 3;
  dctx = blosc2_create_dctx(dparams);
  first_queued = end_queued = 0;
  CHECK_INT(blosc2_decompress_ctx(dctx, chunk, cbytes, back, BYTES), BYTES);
  CHECK_BYTES(back, data, BYTES);
  blosc2_free_ctx(dctx);
  free(alone);
}

#ifdef HAVE_PTHREADS
/* A queue that threads of the application empty. */
struct task {
  void (*job)(void *);
  void *item;
  int *left;
};
static struct task tasks[JOBS];
static int first_task, end_tasks, done_with_tasks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Runs one task, without the lock; returns whether there was one. */
static bool run_task(void) {
  struct task task;
  if (first_task == end_tasks) {
    return false;
  }
  task = tasks[first_task++];
  pthread_mutex_unlock(&lock);
  task.job(task.item);
  pthread_mutex_lock(&lock);
  --*task.left;
  pthread_cond_broadcast(&changed);
  return true;
}

static void *run_tasks(void *unused) {
  BLOSC_UNUSED_PARAM(unused);
  pthread_mutex_lock(&lock);
  while (!done_with_tasks) {
    if (!run_task()) {
      pthread_cond_wait(&changed, &lock);
    }
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* Who has jobs sleeps until others have done them, or helps with all there is, as `*helps` tells. */
static void share_jobs(void *helps, void (*job)(void *), int njobs, size_t size, void *items) {
  int left = njobs, i;
  pthread_mutex_lock(&lock);
  REQUIRE(end_tasks + njobs <= JOBS);
  for (i = 0; i < njobs; i++) {
    tasks[end_tasks].job = job;
    tasks[end_tasks].item = (char *)items + (size_t)i * size;
    tasks[end_tasks++].left = &left;
  }
  pthread_cond_broadcast(&changed);
  while (left > 0) {
    if (!*(const bool *)helps || !run_task()) {
      pthread_cond_wait(&changed, &lock);
    }
  }
  pthread_mutex_unlock(&lock);
}

/* A prefilter whose first block reads the other chunk. */
static int look_up_once(blosc2_prefilter_params *params) {
  if (params->nblock == 0 && read_other() != 0) {
    return 1;
  }
  memcpy(params->output, params->input, (size_t)params->output_size);
  return 0;
}

/* What the first block waits for is computed by another thread. */
static int asked, answered;

static void *answer(void *unused) {
  int outcome;
  BLOSC_UNUSED_PARAM(unused);
  pthread_mutex_lock(&lock);
  while (!asked) {
    pthread_cond_wait(&changed, &lock);
  }
  pthread_mutex_unlock(&lock);
  outcome = read_other();
  pthread_mutex_lock(&lock);
  answered = outcome == 0 ? 1 : -1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static int ask(blosc2_prefilter_params *params) {
  int fine = 1;
  if (params->nblock == 0) {
    pthread_mutex_lock(&lock);
    asked = 1;
    pthread_cond_broadcast(&changed);
    while (!answered) {
      pthread_cond_wait(&changed, &lock);
    }
    fine = answered > 0;
    pthread_mutex_unlock(&lock);
  }
  memcpy(params->output, params->input, (size_t)params->output_size);
  return fine ? 0 : 1;
}

static void tell(int *flag) {
  pthread_mutex_lock(&lock);
  *flag = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* Jobs that wait for each other would leave nobody to do those of the first block. */
static void test_threads(bool helps, blosc2_prefilter_fn prefilter) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_prefilter_params params;
  pthread_t threads[THREADS], answering;
  blosc2_context *cctx;
  int nthreads, i, cbytes;
  first_task = end_tasks = done_with_tasks = asked = answered = 0;
  for (i = 0; i < THREADS; i++) {
    CHECK_INT(pthread_create(&threads[i], NULL, run_tasks, NULL), 0);
  }
  CHECK_INT(pthread_create(&answering, NULL, answer, NULL), 0);
  blosc2_set_threads_callback(share_jobs, &helps);
  memset(&params, 0, sizeof params);
  cparams.typesize = 4;
  cparams.blocksize = 4000;
  cparams.prefilter = prefilter;
  cparams.preparams = &params;
  for (nthreads = 2; nthreads <= 4; nthreads += 2) {
    cparams.nthreads = (int16_t)nthreads;
    cctx = blosc2_create_cctx(cparams);
    cbytes = blosc2_compress_ctx(cctx, data, BYTES, chunk, BYTES + BLOSC2_MAX_OVERHEAD);
    CHECK_INT(blosc2_decompress(chunk, cbytes, back, BYTES), BYTES);
    CHECK_BYTES(back, data, BYTES);
    blosc2_free_ctx(cctx);
  }
  /* The answer takes threads, too, if nobody has asked yet. */
  tell(&asked);
  CHECK_INT(pthread_join(answering, NULL), 0);
  tell(&done_with_tasks);
  for (i = 0; i < THREADS; i++) {
    CHECK_INT(pthread_join(threads[i], NULL), 0);
  }
}
#endif

int main(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_context *cctx;
  int i;
#ifdef HAVE_PTHREADS
  alarm(300); /* jobs that wait for each other would do so for ever */
#endif
  blosc2_init();
  data = test_make_data(TEST_RAMP, BYTES);
  chunk = test_alloc(BYTES + BLOSC2_MAX_OVERHEAD);
  back = test_alloc(BYTES);
  other = test_alloc(OTHER + BLOSC2_MAX_OVERHEAD);
  scratch = test_alloc(OTHER);
  cparams.typesize = 4;
  cparams.blocksize = 10000;
  cctx = blosc2_create_cctx(cparams);
  other_cbytes = blosc2_compress_ctx(cctx, data, OTHER, other, OTHER + BLOSC2_MAX_OVERHEAD);
  CHECK(other_cbytes > 0);
  blosc2_free_ctx(cctx);
  blosc2_set_threads_callback(run_jobs, NULL);
  for (i = 0; i < 3; i++) {
    test_blocks(4000 * (1 + 9 * i));
  }
  CHECK(most_nested > 1);
#ifdef HAVE_PTHREADS
  test_threads(false, look_up_once);
  test_threads(true, look_up_once);
  test_threads(true, ask);
#endif
  blosc2_set_threads_callback(NULL, NULL);
  free(data);
  free(chunk);
  free(back);
  free(other);
  free(scratch);
  blosc2_destroy();
  return test_end();
}
