# What the clients' scripts share; each begins by sourcing this file. Arguments of a script: PREFIX WORK.
#
# PREFIX: where the library is installed, libraries in lib. WORK: a directory for this client, which is kept.
# CLIENT_RECORD=1: write down what happens as what is to be expected. CLIENT_JOBS: processes at a time. CLIENT_ONLY: of a test
# suite, only the parts with this text in their names.
# A script ends with 0 if all went as recorded and with 77 if something that it needs is missing, and leaves in WORK/summary
# a line for the table.
# shellcheck shell=sh
set -eu
if [ $# -lt 2 ]; then
  echo "usage: $0 PREFIX WORK" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
name=$(basename "$0" .sh)
prefix=$(cd "$1" && pwd)
mkdir -p "$2"
work=$(cd "$2" && pwd)
shared=$(dirname "$work")
record="$here/$name.expected"
python="$shared/venv/bin/python"
export LD_LIBRARY_PATH="$prefix/lib"
unset PYTHONPATH
rm -f "$work/summary"

say() {
  echo "-- $*"
}

# Ends the script: something that it needs is not on this machine.
missing() {
  echo "$*" | tee "$work/summary"
  exit 77
}

# The interpreter $python with the packages of requirements.txt, made anew when they change.
python_with_requirements() {
  if ! cmp -s "$here/requirements.txt" "$shared/venv/requirements.txt"; then
    say "Python packages"
    rm -rf "$shared/venv"
    python3 -m venv "$shared/venv" || missing "no Python with venv"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$shared/venv/"
  fi
  # Build tools that come as packages are found by their names.
  PATH="$shared/venv/bin:$PATH"
}

# Downloads `package==version` as source (`source`) or as a wheel (`wheel`); prints its path.
fetch() {
  if [ "$1" = source ]; then only="--no-binary=:all:"; else only="--only-binary=:all:"; fi
  to="$shared/downloads/$1-$2"
  if [ ! -d "$to" ]; then
    rm -rf "$to.part" # of an interrupted run
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation "$only" \
      --dest "$to.part" "$2" >&2
    mv "$to.part" "$to"
  fi
  ls "$to"/*
}

# Unpacks the Python files of a source archive, tests and examples among them, to WORK/source.
unpack() {
  rm -rf "$work/source"
  mkdir -p "$work/source"
  tar xzf "$1" -C "$work/source" --strip-components 1 --exclude '*.c' --exclude '*.h' --exclude '*.pyx'
}

# Says which libblosc2 an extension module loads, and insists on the one under test.
insist_on_ours() {
  loaded=$(ldd "$1" | sed -n 's/.*libblosc2[^ ]* => \([^ ]*\).*/\1/p')
  if ! cmp -s "$loaded" "$prefix/lib/libblosc2.so"; then
    echo "$1 loads $loaded" >&2
    exit 1
  fi
}

# Builds python-blosc2 of version $1 against the installation, with the arguments $2 for CMake; its tests are in WORK/source.
python_blosc2() {
  python_with_requirements
  pkg-config --version > "$work/pkg-config.log" 2>&1 || missing "no pkg-config"
  sdist=$(fetch source "blosc2==$1")
  unpack "$sdist"
  say "build"
  rm -rf "$work/site"
  USE_SYSTEM_BLOSC2=1 PKG_CONFIG_PATH="$prefix/lib/pkgconfig" CMAKE_ARGS="${2:-}" "$python" -m pip install --quiet \
    --disable-pip-version-check --no-deps --no-build-isolation --no-cache-dir --target "$work/site" "$sdist"
  insist_on_ours "$work"/site/blosc2/blosc2_ext.*.so
  # It leaves members of blosc2_prefilter_params as malloc gives them, and C-Blosc2 3.3 has a new one: give it zeros. What is
  # freed becomes ones, so that use after it shows.
  export GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.perturb=255
  export PYTHONPATH="$here/stand_ins"
  cd "$work"
}

# Runs a test suite with WORK/site before all packages but those in PYTHONPATH; see suite.py.
suite() {
  say "tests"
  write=""
  if [ "${CLIENT_RECORD:-0}" = 1 ]; then write="--write"; fi
  # shellcheck disable=SC2086 # the option or nothing
  PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$work/site" "$python" "$here/suite.py" --root "$work" --record "$record" $write \
    ${CLIENT_ONLY:+--only "$CLIENT_ONLY"} --jobs "${CLIENT_JOBS:-1}" "$@"
}
