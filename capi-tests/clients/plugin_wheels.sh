#!/bin/sh
# Published plugins with this library: found through BLOSC2_PLUGIN_PATH, through the loader and through Python.
#
# Usage: plugin_wheels.sh PREFIX [PLUGIN...]
#
# PREFIX is where the library is installed. Needs pip and the network; nothing is installed. By default openzl and btune:
# blosc2-openhtj2k 0.1.2 and blosc2-grok 0.3.5 do not find the metalayers in the blosc2_schunk of C-Blosc2 3.3.5, whose
# layout is newer than theirs; with it, as with this library, they are loaded and called, and give BLOSC2_ERROR_DATA.
set -eu
prefix=$1
shift
[ $# -gt 0 ] || set -- openzl btune
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in "$@"; do
  python3 -m pip download --quiet --no-deps --dest "$work/wheels" "blosc2-$name"
done
for wheel in "$work"/wheels/*.whl; do
  python3 -m zipfile -e "$wheel" "$work/site"
done
${CC:-cc} -I "$prefix/include" -o "$work/client" "$here/plugin_wheels.c" -L "$prefix/lib" -lblosc2
export LD_LIBRARY_PATH="$prefix/lib"
for name in "$@"; do
  echo "BLOSC2_PLUGIN_PATH:"
  BLOSC2_PLUGIN_PATH="$work/site" "$work/client" "$name"
  echo "the loader:"
  LD_LIBRARY_PATH="$prefix/lib:$work/site/blosc2_$name" "$work/client" "$name"
  if PYTHONPATH="$work/site" python3 -c "import blosc2_$name" 2> /dev/null; then
    echo "Python:"
    PYTHONPATH="$work/site" "$work/client" "$name"
  else
    echo "Python: what blosc2_$name imports is not installed"
  fi
done
