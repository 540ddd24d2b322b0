/* Written by `cargo xtask headers` from cbindgen/ and src/capi/; edit those. */
/* Tuners registered with the Blosc developers. */

#ifndef BLOSC_BLOSC2_TUNERS_REGISTRY_H
#define BLOSC_BLOSC2_TUNERS_REGISTRY_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
  /** Btune (plugin `blosc2_btune`). */
  BLOSC_BTUNE = 32
};

/** Registers these tuners. Only in the static library, and never needed: the library knows them from the start. */
void register_tuners(void);

/**
 * The functions of a tuner that is loaded at run time: the names to look up in its library.
 */
typedef struct tuner_info {
  /**
   * Name of `init`.
   */
  char *init;
  /**
   * Name of `next_blocksize`.
   */
  char *next_blocksize;
  /**
   * Name of `next_cparams`.
   */
  char *next_cparams;
  /**
   * Name of `update`.
   */
  char *update;
  /**
   * Name of `free`.
   */
  char *free;
} tuner_info;

#ifdef __cplusplus
}
#endif

#endif /* BLOSC_BLOSC2_TUNERS_REGISTRY_H */
