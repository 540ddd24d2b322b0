/* Written by `cargo xtask headers` from cbindgen/ and src/capi/; edit those. */
/* Filters registered with the Blosc developers. */

#ifndef BLOSC_BLOSC2_FILTERS_REGISTRY_H
#define BLOSC_BLOSC2_FILTERS_REGISTRY_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
  /** Puts the items of each cell of an array side by side; the meta byte is the cell's edge. */
  BLOSC_FILTER_NDCELL = 32,
  /** Replaces the items of each cell of an array by their mean; the meta byte is the cell's edge. */
  BLOSC_FILTER_NDMEAN = 33,
  /** The first version of byte delta, wrong on some processors; for reading old data. */
  BLOSC_FILTER_BYTEDELTA_BUGGY = 34,
  /** Differences within each byte stream; use it after a shuffle. The meta byte is the number of streams,
      usually the typesize. */
  BLOSC_FILTER_BYTEDELTA = 35,
  /** Zeroes low bits of integers: the (signed) meta byte is the number of bits to keep or, if negative, to
      zero. */
  BLOSC_FILTER_INT_TRUNC = 36
};

/** Registers these filters. Only in the static library, and never needed: the library knows them from the start. */
void register_filters(void);

/**
 * The functions of a filter that is loaded at run time: the names to look up in its library.
 */
typedef struct filter_info {
  /**
   * Name of the filter.
   */
  char *forward;
  /**
   * Name of its inverse.
   */
  char *backward;
} filter_info;

#ifdef __cplusplus
}
#endif

#endif /* BLOSC_BLOSC2_FILTERS_REGISTRY_H */
