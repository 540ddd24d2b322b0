#!/bin/sh
# The wheel of imagecodecs 2026.3.6, made for C-Blosc2 2.23, with the library in it replaced: round trips, also with its own.
. "$(dirname "$0")/common.sh"
python_with_requirements
wheel=$(fetch wheel imagecodecs==2026.3.6)
for site in theirs site; do
  rm -rf "${work:?}/$site"
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$work/$site" "$wheel"
done
cp "$prefix/lib/libblosc2.so" "$work"/site/imagecodecs.libs/libblosc2-*.so.*
insist_on_ours "$work"/site/imagecodecs/_blosc2.*.so
say "round trips"
PYTHONPATH="$work/theirs" "$python" "$here/imagecodecs_trips.py" write "$work/theirs.chunks" > "$work/theirs.log"
PYTHONPATH="$work/site" "$python" "$here/imagecodecs_trips.py" write "$work/ours.chunks" > "$work/ours.log"
PYTHONPATH="$work/site" "$python" "$here/imagecodecs_trips.py" read "$work/theirs.chunks" >> "$work/ours.log"
PYTHONPATH="$work/theirs" "$python" "$here/imagecodecs_trips.py" read "$work/ours.chunks" >> "$work/ours.log"
if [ "${CLIENT_RECORD:-0}" = 1 ]; then
  cp "$work/ours.log" "$record"
fi
cat "$work/ours.log"
if ! diff "$record" "$work/ours.log"; then
  echo "other than recorded" > "$work/summary"
  exit 1
fi
echo "passed=$(wc -l < "$record"): as recorded" > "$work/summary"
