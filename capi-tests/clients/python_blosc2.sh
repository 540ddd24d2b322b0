#!/bin/sh
# python-blosc2 3.12.2 built from source against the installation: its tests and doctests; readers in eight threads.
. "$(dirname "$0")/common.sh"
python_blosc2 3.12.2
cp "$here/test_readers.py" source/tests/
# Left out: a test that wants the network without its mark, and element-wise functions of operands that belong to another array
# library, the stand-in for which is NumPy; those of the library's own arrays are run.
elementwise=source/tests/ndarray/test_elementwise_funcs.py
# shellcheck disable=SC2046 # names without spaces
suite pytest --deselect source/tests/test_embed_store.py::test_with_remote \
  --deselect "$elementwise::test_unfuncs_proxy" --deselect "$elementwise::test_binfuncs_proxy" \
  $(find source/tests -name 'test_*.py' | sort) site/blosc2/core.py site/blosc2/ndarray.py site/blosc2/schunk.py
