/* A library around ours. */

#include <blosc2.h>

int wrapper_version(void);
int wrapper_version(void) {
  return BLOSC2_VERSION_MAJOR;
}
