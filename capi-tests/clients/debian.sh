#!/bin/sh
# Programs of Debian's packages that are linked to libblosc2.so.9, as they are: PyTables with its tests, groonga and zmat with
# data that one library wrote and the other reads. They are installed in a directory of their own, for which it needs root.
. "$(dirname "$0")/common.sh"
[ "$(id -u)" = 0 ] || missing "not root"
command -v debootstrap > "$work/debootstrap.log" || missing "no debootstrap"
unset LD_LIBRARY_PATH
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root TMPDIR=/tmp
root="$work/root"
libs="$root/usr/lib/x86_64-linux-gnu"
if [ ! -e "$work/installed" ]; then
  say "Debian sid"
  rm -rf "${root:?}"
  debootstrap --variant=minbase sid "$root" "${CLIENT_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >> "$work/debootstrap.log"
  chroot "$root" apt-get install --yes --no-install-recommends groonga-bin octave-zmat python3-tables \
    >> "$work/debootstrap.log" 2>&1
  [ -e "$libs/libblosc2.so.9" ] || missing "Debian sid has another libblosc2"
  touch "$work/installed"
fi

# Runs a command there with the library under test (`ours`) or with the one of the distribution (`theirs`).
within() {
  case $1 in ours) where=/ours ;; theirs) where= ;; esac
  shift
  chroot "$root" env LD_LIBRARY_PATH="$where" "$@"
}

mkdir -p "$root/ours"
cp "$prefix/lib/libblosc2.so" "$root/ours/libblosc2.so.9"
cp "$here/debian_trips.py" "$root/tmp/trips.py"
within ours ldd /usr/lib/x86_64-linux-gnu/libgroonga.so.0 | grep -q "libblosc2.so.9 => /ours/" || exit 1
say "round trips"
rm -rf "$root/tmp/from-ours" "$root/tmp/from-theirs"
within ours python3 /tmp/trips.py write /tmp/from-ours
within theirs python3 /tmp/trips.py write /tmp/from-theirs
for writer in ours theirs; do
  for reader in ours theirs; do
    echo "written by $writer, read by $reader:"
    within $reader python3 /tmp/trips.py read /tmp/from-$writer
  done
done
say "PyTables' tests"
within ours python3 -m tables.tests.test_all > "$work/tables.log" 2>&1 || true
if ! grep -q '^OK' "$work/tables.log"; then
  grep -E '^(FAIL|ERROR)' "$work/tables.log"
  tail -1 "$work/tables.log" | tee "$work/summary"
  exit 1
fi
echo "round trips; PyTables: $(sed -n 's/^Ran \(.*\) in .*/\1/p' "$work/tables.log"), $(tail -1 "$work/tables.log")" > "$work/summary"
