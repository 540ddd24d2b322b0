#!/bin/sh
# python-blosc2 4.14.1 built from source against the installation: its tests of super-chunks, frames, arrays and stores.
. "$(dirname "$0")/common.sh"
python_with_requirements
pkg-config --version > "$work/pkg-config.log" 2>&1 || missing "no pkg-config"
sdist=$(fetch source blosc2==4.14.1)
unpack "$sdist"
say "build"
rm -rf "$work/site"
# Its build downloads a compiler of expressions; a stand-in takes its place.
USE_SYSTEM_BLOSC2=1 PKG_CONFIG_PATH="$prefix/lib/pkgconfig" \
  CMAKE_ARGS="-DFETCHCONTENT_SOURCE_DIR_MINIEXPR=$here/stand_ins/miniexpr" "$python" -m pip install --quiet \
  --disable-pip-version-check --no-deps --no-build-isolation --no-cache-dir --target "$work/site" "$sdist"
insist_on_ours "$work"/site/blosc2/blosc2_ext.*.so
export GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.perturb=255
export PYTHONPATH="$here/stand_ins"
cd "$work"
# Left out: what is about expressions, or takes its data from elsewhere.
# shellcheck disable=SC2046 # names without spaces
suite pytest $(find source/tests -name 'test_*.py' | grep -Ev 'expr|udf|dsl|jit|elementwise|linalg|reductions|evaluate|c2array|parquet|arrow|hdf5|zarr|pandas|fsspec|remote|b2view' | sort)
