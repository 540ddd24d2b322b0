/* Threads callbacks as programs with a scheduler of their own have them: while something waits for its own jobs, whatever is
 * queued runs on the same stack, jobs of an operation that is under way included. */

#include <blosc2.h>

#include "test.h"

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

enum { BYTES = 1000000, OTHER = 200000, JOBS = 4000 };

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

/* A prefilter that reads another chunk, with threads, before it lets some of its blocks pass. */
static int look_up(blosc2_prefilter_params *params) {
  if (params->nblock % 7 == 0) {
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_context *dctx;
    int nbytes;
    dparams.nthreads = 2;
    dctx = blosc2_create_dctx(dparams);
    nbytes = blosc2_decompress_ctx(dctx, other, other_cbytes, scratch, OTHER);
    blosc2_free_ctx(dctx);
    if (nbytes != OTHER) {
      return 1;
    }
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

int main(void) {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_context *cctx;
  int i;
#if defined(__unix__) || defined(__APPLE__)
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
  blosc2_set_threads_callback(NULL, NULL);
  free(data);
  free(chunk);
  free(back);
  free(other);
  free(scratch);
  blosc2_destroy();
  return test_end();
}
