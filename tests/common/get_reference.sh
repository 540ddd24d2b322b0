#!/bin/sh
# Fetches the C library that the differential tests and the bench tool compare with: the shared library inside the
# blosc2 wheel of PyPI (C-Blosc2 3.3.5), put into target/reference/libblosc2.so. Needs Python 3 with pip.
set -eu

cd "$(dirname "$0")/../.."
dir=target/reference
mkdir -p "$dir"
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$dir" blosc2==4.14.1
python3 - "$dir" <<'EOF'
import glob, os, sys, zipfile
wheel = max(glob.glob(sys.argv[1] + "/blosc2-4.14.1-*.whl"), key=os.path.getmtime)
with zipfile.ZipFile(wheel) as z:
    (name,) = [n for n in z.namelist() if n.endswith("/libblosc2.so.9")]
    open(sys.argv[1] + "/libblosc2.so", "wb").write(z.read(name))
EOF
echo "$dir/libblosc2.so"
