/* Written by `cargo xtask headers` from cbindgen/ and src/capi/; edit those. */
/* Codecs registered with the Blosc developers. */

#ifndef BLOSC_BLOSC2_CODECS_REGISTRY_H
#define BLOSC_BLOSC2_CODECS_REGISTRY_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
  /** Lempel-Ziv over cells of two-dimensional arrays of bytes; the meta byte is the cell's edge, 4 or 8. */
  BLOSC_CODEC_NDLZ = 32,
  /** ZFP with a bound on the error: 10 to the power of the (signed) meta byte. */
  BLOSC_CODEC_ZFP_FIXED_ACCURACY = 33,
  /** ZFP with the meta byte's number of bit planes. */
  BLOSC_CODEC_ZFP_FIXED_PRECISION = 34,
  /** ZFP with a fixed rate: the meta byte is the compressed size in percent. */
  BLOSC_CODEC_ZFP_FIXED_RATE = 35,
  /** JPEG 2000 HT by OpenHTJ2K (plugin `blosc2_openhtj2k`). */
  BLOSC_CODEC_OPENHTJ2K = 36,
  /** JPEG 2000 by Grok (plugin `blosc2_grok`). */
  BLOSC_CODEC_GROK = 37,
  /** OpenZL (plugin `blosc2_openzl`). */
  BLOSC_CODEC_OPENZL = 38,
  /** JPEG 2000 (plugin `blosc2_j2k`). */
  BLOSC_CODEC_J2K = 39,
  /** JPEG 2000 HT (plugin `blosc2_htj2k`). */
  BLOSC_CODEC_HTJ2K = 40
};

/** Registers these codecs. Only in the static library, and never needed: the library knows them from the start. */
void register_codecs(void);

/**
 * The functions of a codec that is loaded at run time: the names to look up in its library.
 */
typedef struct codec_info {
  /**
   * Name of the encoder.
   */
  char *encoder;
  /**
   * Name of the decoder.
   */
  char *decoder;
} codec_info;

#ifdef __cplusplus
}
#endif

#endif /* BLOSC_BLOSC2_CODECS_REGISTRY_H */
