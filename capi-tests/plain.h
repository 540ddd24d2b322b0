/* The simplest codec and filter: they copy their input, keep no state, and may run on any number of threads. */

#ifndef CAPI_TESTS_PLAIN_H
#define CAPI_TESTS_PLAIN_H

#include <blosc2.h>
#include <string.h>

static inline int plain_encoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len,
                                uint8_t meta, blosc2_cparams *cparams, const void *chunk) {
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(cparams);
  BLOSC_UNUSED_PARAM(chunk);
  if (output_len < input_len) {
    return 0;
  }
  memcpy(output, input, (size_t)input_len);
  return input_len;
}

static inline int plain_decoder(const uint8_t *input, int32_t input_len, uint8_t *output, int32_t output_len,
                                uint8_t meta, blosc2_dparams *dparams, const void *chunk) {
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(dparams);
  BLOSC_UNUSED_PARAM(chunk);
  if (output_len != input_len) {
    return -1;
  }
  memcpy(output, input, (size_t)input_len);
  return input_len;
}

static inline int plain_forward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta,
                                blosc2_cparams *cparams, uint8_t id) {
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(cparams);
  BLOSC_UNUSED_PARAM(id);
  memcpy(dest, src, (size_t)length);
  return 0;
}

static inline int plain_backward(const uint8_t *src, uint8_t *dest, int32_t length, uint8_t meta,
                                 blosc2_dparams *dparams, uint8_t id) {
  BLOSC_UNUSED_PARAM(meta);
  BLOSC_UNUSED_PARAM(dparams);
  BLOSC_UNUSED_PARAM(id);
  memcpy(dest, src, (size_t)length);
  return 0;
}

#endif /* CAPI_TESTS_PLAIN_H */
