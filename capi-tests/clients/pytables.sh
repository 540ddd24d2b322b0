#!/bin/sh
# PyTables 3.11.1 built from source against the installation and the system's HDF5: its whole test suite.
. "$(dirname "$0")/common.sh"
python_with_requirements
pkg-config --exists hdf5 || [ -n "${HDF5_DIR:-}" ] || missing "no HDF5 with headers that pkg-config finds; or set HDF5_DIR"
# pip asks the archive for its metadata when it downloads it, and that looks for the library already.
export PYTABLES_NO_BLOSC2_WHEEL=1 BLOSC2_DIR="$prefix"
sdist=$(fetch source tables==3.11.1)
say "build"
rm -rf "$work/site"
flags=${CFLAGS:--O1}
# A name that PyTables uses and that is no longer in the C library's headers; ours keep it.
grep -q BLOSC2_MAX_DIM "$prefix/include/b2nd.h" || flags="$flags -DBLOSC2_MAX_DIM=B2ND_MAX_DIM"
CFLAGS="$flags" "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-cache-dir \
  --target "$work/site" "$sdist"
rm -f "$work"/site/tables/libblosc2.so
insist_on_ours "$work"/site/tables/utilsextension*.so
suite unittest tables.tests.test_suite
