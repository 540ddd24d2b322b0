/* The source of the plugins that ways_plugins.c loads; PLUGIN chooses one of them. */

#include <blosc2.h>
#include <blosc2/codecs-registry.h>
#include <blosc2/filters-registry.h>
#include <blosc2/tuners-registry.h>
#include <string.h>

#define CODEC 1      /* stores a block that repeats two bytes as these */
#define FILTER 2     /* inverts all bits */
#define TUNER 3      /* asks for blocks of 4096 bytes */
#define NO_INFO 4    /* lacks `info` */
#define HALF 5       /* names a function that does not exist */
#define UNRESOLVED 6 /* needs a function that nobody has */
#define NO_NAME 7    /* has no name for a function */

/* Uses the library that loads the plugin: without its symbols, this cannot run. */
static int library_answers(void) {
  return strcmp(blosc2_error_string(BLOSC2_ERROR_FAILURE), "Generic failure") == 0;
}

int plugin_encoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                   blosc2_cparams *cparams, const void *chunk);
int plugin_decoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                   blosc2_dparams *dparams, const void *chunk);
int plugin_forward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_cparams *cparams,
                   uint8_t id);
int plugin_backward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_dparams *dparams,
                    uint8_t id);
int plugin_tuner_init(void *config, blosc2_context *cctx, blosc2_context *dctx);
int plugin_tuner_next(blosc2_context *cctx);
int plugin_tuner_update(blosc2_context *cctx, double seconds);
int plugin_tuner_free(blosc2_context *cctx);
void function_that_nobody_has(void);

int plugin_encoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                   blosc2_cparams *cparams, const void *chunk) {
  int32_t i;
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(chunk);
  if (cparams == NULL || output_len < 2 || input_len < 2 || !library_answers()) {
    return -1;
  }
  for (i = 2; i < input_len; i++) {
    if (input[i] != input[i % 2]) {
      return 0;
    }
  }
  memcpy(output, input, 2);
  return 2;
}

int plugin_decoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len, uint8_t meta,
                   blosc2_dparams *dparams, const void *chunk) {
  int32_t i;
  BLOSC_UNUSED_PARAM(meta);
  if (dparams == NULL || chunk == NULL || input_len != 2 || !library_answers()) {
    return -1;
  }
  for (i = 0; i < output_len; i++) {
    output[i] = input[i % 2];
  }
  return output_len;
}

int plugin_forward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_cparams *cparams,
                   uint8_t id) {
  int32_t i;
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(id);
  for (i = 0; i < length; i++) {
    dest[i] = (uint8_t)~src[i];
  }
  return cparams != NULL ? 0 : -1;
}

int plugin_backward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta, blosc2_dparams *dparams,
                    uint8_t id) {
  int32_t i;
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(id);
  for (i = 0; i < length; i++) {
    dest[i] = (uint8_t)~src[i];
  }
  return dparams != NULL ? 0 : -1;
}

int plugin_tuner_init(void *config, blosc2_context *cctx, blosc2_context *dctx) {
  BLOSC_UNUSED_PARAM(cctx);
  BLOSC_UNUSED_PARAM(dctx);
  return config != NULL ? 0 : -1;
}

int plugin_tuner_next(blosc2_context *cctx) {
  const int32_t blocksize = 4096;
  memcpy((char *)cctx + 36, &blocksize, sizeof blocksize); /* the member `blocksize` */
  return 0;
}

int plugin_tuner_update(blosc2_context *cctx, double seconds) {
  BLOSC_UNUSED_PARAM(cctx);
  return seconds >= 0 ? 0 : -1;
}

int plugin_tuner_free(blosc2_context *cctx) {
  BLOSC_UNUSED_PARAM(cctx);
  return 0;
}

#if PLUGIN == CODEC || PLUGIN == UNRESOLVED
codec_info info = {"plugin_encoder", "plugin_decoder"};
#elif PLUGIN == FILTER
filter_info info = {"plugin_forward", "plugin_backward"};
#elif PLUGIN == TUNER
tuner_info info = {"plugin_tuner_init", "plugin_tuner_next", "plugin_tuner_next", "plugin_tuner_update",
                   "plugin_tuner_free"};
#elif PLUGIN == HALF
codec_info info = {"plugin_encoder", "plugin_decoder_that_is_missing"};
#elif PLUGIN == NO_NAME
codec_info info = {"plugin_encoder", NULL};
#endif

#if PLUGIN == UNRESOLVED
int plugin_unresolved(void);
int plugin_unresolved(void) {
  function_that_nobody_has();
  return 0;
}
#endif
