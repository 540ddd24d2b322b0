#!/bin/sh
# The wheel of python-blosc2 4.14.1 with the library in it replaced: its tests and doctests; readers in eight threads.
. "$(dirname "$0")/common.sh"
python_with_requirements
wheel=$(fetch wheel blosc2==4.14.1)
unpack "$(fetch source blosc2==4.14.1)"
rm -rf "$work/site"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$work/site" "$wheel"
for library in "$work"/site/blosc2/lib/libblosc2.so*; do
  cp "$prefix/lib/libblosc2.so" "$library"
done
insist_on_ours "$work"/site/blosc2/blosc2_ext.*.so
cp "$here/test_readers.py" "$work/source/tests/"
cd "$work"
# shellcheck disable=SC2046 # names without spaces
suite pytest $(find source/tests -name 'test_*.py' | sort) site/blosc2/core.py site/blosc2/ndarray.py site/blosc2/schunk.py
