#!/usr/bin/env python3
"""Makes the golden frames: frames/<release>/*.

    python3 tests/golden/make_frames.py [--wheels DIR] [release ...]

Downloads released wheels that contain the C library with pip, compiles make_frames.c with the headers of each release
and runs it with the library of that release. Needs Linux on x86-64, pip, and a C compiler. The files are checked in; run
this only to add frames. What is in them is said by tests/golden_frames.rs, which reads them.
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "frames")
PLATFORMS = ["manylinux1", "manylinux2010", "manylinux2014", "manylinux_2_17", "manylinux_2_28"]

# Release: requirement for pip, Python version and ABI of the wheel, what the release can do.
RELEASES = {
    "2.0.4": ("blosc2==0.2.0", "3.9", "cp39", ["OLD_INIT"]),
    "2.4.3": ("blosc2==0.4.1", "3.10", "cp310", ["WITH_FILL"]),
    "2.6.1": ("blosc2==2.0.0", "3.11", "cp311", ["WITH_FILL"]),
    "2.10.5": ("blosc2==2.2.9", "3.11", "cp311", ["WITH_FILL", "WITH_B2ND"]),
    "2.15.2": ("blosc2==2.7.1", "3.11", "cp311", ["WITH_FILL", "WITH_B2ND"]),
    "2.19.1": ("blosc2==3.6.1", "3.11", "cp311", ["WITH_FILL", "WITH_B2ND"]),
    "2.23.1": ("blosc2==4.0.0", "3.11", "cp311", ["WITH_FILL", "WITH_B2ND"]),
    "3.3.5": ("blosc2==4.14.1", "3.11", "abi3", ["WITH_FILL", "WITH_B2ND", "WITH_VL"]),
    "caterva-0.7.3": ("caterva==0.7.3", "3.10", "cp310", []),
}
# The release of the C library whose header caterva's header needs. Caterva's library has one of its own inside.
CATERVA_RELEASES = {"caterva-0.7.3": "2.4.3"}


def unpacked(release, wheels):
    """The directory with the content of the wheel of a release."""
    requirement, python, abi, _ = RELEASES[release]
    folder = os.path.join(wheels, release)
    if not os.path.isdir(folder):
        tags = [part for name in PLATFORMS for part in ("--platform", name + "_x86_64")]
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
        command += ["--python-version", python, "--implementation", "cp", "--abi", abi, *tags, "-d", folder, requirement]
        subprocess.run(command, check=True)
        (wheel,) = glob.glob(os.path.join(folder, "*.whl"))
        zipfile.ZipFile(wheel).extractall(folder)
    return folder


def find(folder, name):
    """The directory below `folder` that holds the file `name`."""
    found = glob.glob(os.path.join(folder, "**", name), recursive=True)
    return os.path.dirname(found[0])


def make(release, wheels):
    folder = unpacked(release, wheels)
    is_caterva = release in CATERVA_RELEASES
    headers = [find(folder, "caterva.h" if is_caterva else "blosc2.h")]
    if is_caterva:
        blosc2 = unpacked(CATERVA_RELEASES[release], wheels)
        headers.append(find(blosc2, "blosc2.h"))
    libraries = [find(folder, "libcaterva.so" if is_caterva else "libblosc2.so")]
    if is_caterva:
        libraries.append(find(blosc2, "libblosc2.so"))
    program = os.path.join(wheels, "make-" + release)
    source = os.path.join(HERE, "make_caterva.c" if is_caterva else "make_frames.c")
    command = [os.environ.get("CC", "cc"), "-std=c99", "-D_GNU_SOURCE", "-w", "-o", program, source]
    command += ["-D" + ability for ability in RELEASES[release][3]]
    command += ["-I" + header for header in headers]
    for library in libraries:
        command += ["-L" + library, "-Wl,-rpath," + library]
    command += (["-lcaterva"] if is_caterva else []) + ["-lblosc2", "-lm"]
    subprocess.run(command, check=True)
    out = os.path.join(OUT, release)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    subprocess.run([program, out], check=True, env={**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheels", default=os.path.join(HERE, "wheels"), help="where wheels are kept")
    parser.add_argument("release", nargs="*", default=list(RELEASES))
    args = parser.parse_args()
    wheels = os.path.abspath(args.wheels)
    os.makedirs(wheels, exist_ok=True)
    for release in args.release:
        make(release, wheels)
        print(release, *sorted(os.listdir(os.path.join(OUT, release))))


if __name__ == "__main__":
    main()
