#!/usr/bin/env python3
"""Makes the golden chunks: chunks/*.bin and chunks/manifest.txt.

    python3 tests/golden/make_chunks.py [--wheels DIR]

Downloads released wheels that contain the C libraries (C-Blosc 1.11 of 2017 up to today's C-Blosc2) with pip, loads
each library in a process of its own, lets it compress data made by formula, and checks that both the library itself
and the newest one read the chunk back. Needs Linux on x86-64, pip, and a C compiler (for libraries that only come
inside a Python extension module). The files are checked in; run this only to add chunks.

One file per release holds its chunks one after another. A line of the manifest describes one chunk:

    file name offset cbytes nbytes content code

`content` is a formula (see `content` below, and the reader in tests/golden_chunks.rs); `vl:` before it marks a chunk of
variable-length blocks. `code` is `ok`, or the error that reading gives.
"""

import argparse
import ctypes as c
import glob
import os
import struct
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "chunks")

# Release, requirement for pip, Python version and ABI of the wheel, library inside it.
RELEASES = [
    ("blosc-1.11.3", "tables==3.4.2", "3.6", "cp36m", "tables/.libs/libblosc-*.so*"),
    ("blosc-1.14.3", "tables==3.4.4", "3.6", "cp36m", "tables/utilsextension*.so"),
    ("blosc-1.16.3", "tables==3.6.1", "3.8", "cp38", "tables/utilsextension*.so"),
    ("blosc-1.18.1", "numcodecs==0.7.3", "3.8", "cp38", "numcodecs/blosc.*.so"),
    ("blosc-1.20.1", "blosc==1.9.3.dev0", "3.8", "cp38", "*/data/lib/libblosc.so"),
    ("blosc-1.21.3", "blosc==1.11.1", "3.11", "cp311", "*/data/lib64/libblosc.so"),
    ("blosc-1.21.7", "blosc==1.11.4", "3.11", "cp311", "*/data/lib64/libblosc.so"),
    ("blosc2-2.0.4", "blosc2==0.2.0", "3.9", "cp39", "*/data/lib64/libblosc2.so"),
    ("blosc2-2.6.1", "blosc2==2.0.0", "3.11", "cp311", "*/data/lib64/libblosc2.so"),
    ("blosc2-2.10.5", "blosc2==2.2.9", "3.11", "cp311", "*/data/lib64/libblosc2.so"),
    ("blosc2-2.15.2", "blosc2==2.7.1", "3.11", "cp311", "*/data/lib64/libblosc2.so"),
    ("blosc2-2.23.1", "blosc2==4.0.0", "3.11", "cp311", "blosc2/lib/libblosc2.so"),
    ("blosc2-3.3.5", "blosc2==4.14.1", "3.11", "abi3", "blosc2/lib/libblosc2.so"),
]
NEWEST = RELEASES[-1]
# These releases make every case; the others only those that differ most between releases, to keep the files small.
FULL = {"blosc-1.11.3", "blosc-1.14.3", "blosc-1.21.7", "blosc2-2.0.4", "blosc2-2.15.2", "blosc2-3.3.5"}
SHORT_CASES = ("shuffle", "split", "leftover", "none", "zeros", "delta", "compat", "snappy", "value")
PLATFORMS = ["manylinux1", "manylinux2010", "manylinux2014", "manylinux_2_17", "manylinux_2_28"]

CODECS = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
CODES = {"blosclz": 0, "lz4": 1, "lz4hc": 2, "zlib": 4, "zstd": 5}
FILTERS = ["none", "shuffle", "bitshuffle"]
DELTA, TRUNC_PREC = 3, 4


# ---------------------------------------------------------------- contents

def lcg():
    state = 12345
    while True:
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        yield state >> 16


WORDS = ["shuffle", "block", "chunk", "frame", "the", "of", "a", "codec", "filter", "and", "delta", "stream"]


def content(formula, nbytes):
    """`nbytes` bytes by formula; a last partial item is cut.

    ramp:W        item i is 7*i, little-endian in W bytes
    mixed:W       item i is 260*i plus noise below 16
    noise         bytes of the generator below
    text          words of a fixed list, chosen by the generator, each followed by a space
    zeros         zero bytes
    value:HEX     the bytes HEX, again and again
    nan:HEX       the same: a not-a-number of little-endian machines, which readers make
    mantissa4:K   f32 with bits 0x3f800000 + i*0x1235, all but the first K mantissa bits zeroed (mantissa8: f64)
    any           whatever (uninitialised chunks)
    """
    name, _, arg = formula.partition(":")
    rand = lcg()
    if name in ("zeros", "any"):
        return bytes(nbytes)
    if name == "noise":
        return bytes(next(rand) & 0xFF for _ in range(nbytes))
    if name in ("value", "nan"):
        value = bytes.fromhex(arg)
        return (value * (nbytes // len(value) + 1))[:nbytes]
    out = bytearray()
    i = 0
    while len(out) < nbytes:
        if name == "ramp":
            out += (7 * i).to_bytes(int(arg) + 8, "little")[: int(arg)]
        elif name == "mixed":
            out += (260 * i + next(rand) % 16).to_bytes(int(arg) + 8, "little")[: int(arg)]
        elif name == "text":
            out += WORDS[next(rand) % len(WORDS)].encode() + b" "
        elif name == "mantissa4":
            out += struct.pack("<I", (0x3F800000 + i * 0x1235) & ~((1 << (23 - int(arg))) - 1))
        elif name == "mantissa8":
            out += struct.pack("<Q", (0x3FF0000000000000 + i * 0x123456789AB) & ~((1 << (52 - int(arg))) - 1))
        else:
            raise ValueError(formula)
        i += 1
    return bytes(out[:nbytes])


def vl_sizes(nbytes):
    """The block lengths of a VL chunk: 1, 41, 81, ... and the rest."""
    sizes, left, size = [], nbytes, 1
    while left > 0:
        sizes.append(min(size, left))
        left -= sizes[-1]
        size += 40
    return sizes


# ---------------------------------------------------------------- wheels and libraries

def fetch(release, wheels):
    """Downloads the wheel of a release and unpacks its shared libraries; returns the library's path."""
    name, requirement, python, abi, pattern = release
    where = os.path.join(wheels, name)
    if not os.path.isdir(where):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--python-version", python, "--implementation", "cp", "--abi", abi]
        for platform in PLATFORMS:
            command += ["--platform", platform + "_x86_64"]
        subprocess.run(command + ["--dest", where, requirement], check=True)
        for wheel in glob.glob(os.path.join(where, "*.whl")):
            with zipfile.ZipFile(wheel) as z:
                z.extractall(where, [n for n in z.namelist() if ".so" in n])
    return sorted(glob.glob(os.path.join(where, pattern)))[0]


def load(path):
    """Loads a library, also one inside an extension module of another Python."""
    try:
        return c.CDLL(path)
    except OSError:
        stub = os.path.join(os.path.dirname(path), "stub.so")
        source = "int _Py_CheckRecursionLimit = 1000;\n"
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", stub]
        subprocess.run(command, input=source.encode(), check=True)
        c.CDLL(stub, mode=c.RTLD_GLOBAL)
        dlopen = c.CDLL(None).dlopen
        dlopen.restype, dlopen.argtypes = c.c_void_p, [c.c_char_p, c.c_int]
        return c.CDLL(path, handle=dlopen(path.encode(), os.RTLD_LAZY))


class CParams(c.Structure):
    """blosc2_cparams. Older structs are shorter; being passed on the stack, the excess does no harm."""
    _fields_ = [
        ("compcode", c.c_uint8), ("compcode_meta", c.c_uint8), ("clevel", c.c_uint8), ("use_dict", c.c_int),
        ("typesize", c.c_int32), ("nthreads", c.c_int16), ("blocksize", c.c_int32), ("splitmode", c.c_int32),
        ("schunk", c.c_void_p), ("filters", c.c_uint8 * 6), ("filters_meta", c.c_uint8 * 6),
        ("prefilter", c.c_void_p), ("preparams", c.c_void_p), ("tuner_params", c.c_void_p), ("tuner_id", c.c_int),
        ("instr_codec", c.c_bool), ("codec_params", c.c_void_p), ("filter_params", c.c_void_p * 6),
    ]


# ---------------------------------------------------------------- C-Blosc 1

def blosc1_cases(version):
    """(name, formula, nbytes, parameters) of all chunks of a C-Blosc 1 release."""
    # From 1.14 on a forced block size counts for each stream of a split block.
    blocksize = 512 if version < (1, 14) else 128
    base = dict(codec="blosclz", filter=1, typesize=4, clevel=5, blocksize=blocksize)
    for codec in CODECS:
        for i, filt in enumerate(FILTERS):
            # Without a filter only text compresses.
            yield f"{codec}-{filt}", "ramp:4" if i else "text", 902, dict(base, codec=codec, filter=i, blocksize=256)
        yield f"{codec}-level9-mixed", "mixed:8", 600, dict(base, codec=codec, typesize=8, clevel=9)
    for typesize in (1, 2, 3, 16, 17, 255):
        nbytes = 140 * typesize + 1 if typesize < 255 else 1300
        for i, filt in enumerate(FILTERS[1:], 1):
            params = dict(base, codec="lz4", filter=i, typesize=typesize, blocksize=0)
            yield f"typesize{typesize}-{filt}", f"ramp:{typesize}", nbytes, params
    # Blocks whose number of items is not a multiple of 8: not bitshuffled at all by version 2.
    for typesize, nbytes, blocksize in ((4, 604, 0), (8, 1032, 520), (3, 601, 198), (2, 303, 0)):
        params = dict(base, codec="zlib", filter=2, typesize=typesize, blocksize=blocksize)
        yield f"bitshuffle-leftover{typesize}", f"ramp:{typesize}", nbytes, params
    # A number of items that is, but bytes beyond them: 1.11 loses those, C-Blosc2 does not read them back.
    for typesize, nbytes in ((4, 514), (8, 515), (3, 602)):
        params = dict(base, codec="zstd", filter=2, typesize=typesize, blocksize=0)
        yield f"bitshuffle-leftover-bytes{typesize}", f"ramp:{typesize}", nbytes, params
    yield "stored-level0", "noise", 150, dict(base, clevel=0)
    yield "stored-level0-blocks", "ramp:4", 600, dict(base, clevel=0, blocksize=256)
    yield "stored-noise", "noise", 150, dict(base, codec="lz4")
    yield "stored-tiny", "ramp:4", 20, base
    yield "one-byte", "noise", 1, dict(base, typesize=1)
    yield "empty", "zeros", 0, base
    yield "zeros", "zeros", 1500, base
    yield "value", "value:07000000", 1300, base
    yield "text", "text", 1500, dict(base, codec="zstd", typesize=1, filter=0)
    yield "many-blocks", "ramp:4", 2001, dict(base, blocksize=128)
    yield "threads", "ramp:4", 2060, dict(base, blocksize=256, threads=3, codec="lz4")
    if version >= (1, 14):
        for mode, split in ((1, "always"), (2, "never"), (3, "auto")):
            for codec in ("blosclz", "lz4hc", "zstd"):
                yield f"split-{split}-{codec}", "ramp:4", 902, dict(base, codec=codec, split=mode)
    if version < (1, 19):
        yield "snappy", "ramp:4", 600, dict(base, codec="snappy")


class Blosc1:
    """A C-Blosc 1 library."""

    def __init__(self, path):
        self.lib = load(path)
        self.lib.blosc_init()

    def compress(self, data, p):
        lib = self.lib
        if lib.blosc_set_compressor(p["codec"].encode()) < 0:
            raise RuntimeError(p["codec"])
        lib.blosc_set_blocksize(c.c_size_t(p["blocksize"]))
        lib.blosc_set_nthreads(p.get("threads", 1))
        if hasattr(lib, "blosc_set_splitmode"):
            lib.blosc_set_splitmode(p.get("split", 4))
        dest = c.create_string_buffer(len(data) + 16)
        n = lib.blosc_compress(p["clevel"], p["filter"], c.c_size_t(p["typesize"]), c.c_size_t(len(data)), data, dest,
                               c.c_size_t(len(dest)))
        return dest.raw[:n] if n > 0 else None

    def decompress(self, chunk, nbytes):
        dest = c.create_string_buffer(nbytes + 1)
        n = self.lib.blosc_decompress(chunk, dest, c.c_size_t(nbytes))
        return dest.raw[:n] if n >= 0 else n


# ---------------------------------------------------------------- C-Blosc2

def blosc2_cases(version):
    """(name, formula, nbytes, parameters) of all chunks of a C-Blosc2 release."""
    base = dict(codec="blosclz", filters=[0, 0, 0, 0, 0, 1], typesize=4, clevel=5, blocksize=512)
    for codec in CODECS:
        for i, filt in enumerate(FILTERS):
            # Without a filter only text compresses.
            yield f"{codec}-{filt}", "ramp:4" if i else "text", 900 + i, dict(base, codec=codec, filters=[0] * 5 + [i])
    for i, codec in enumerate(CODECS):
        yield f"{codec}-delta", "ramp:8", 800, dict(base, codec=codec, typesize=8, filters=[0, 0, 0, 0, 0, DELTA])
        yield f"{codec}-level9", "mixed:4", 600, dict(base, codec=codec, clevel=9, filters=[0, 0, 0, 0, 0, i % 3])
    yield "delta-shuffle", "ramp:4", 800, dict(base, filters=[0, 0, 0, 0, DELTA, 1], codec="lz4")
    yield "delta-bitshuffle", "ramp:2", 800, dict(base, filters=[0, 0, 0, DELTA, 0, 2], typesize=2, codec="zstd")
    trunc = [0, 0, 0, 0, TRUNC_PREC, 1]
    yield "trunc4-shuffle", "mantissa4:10", 800, dict(base, filters=trunc, metas=[0, 0, 0, 0, 10, 0], noisy=True)
    yield "trunc8-shuffle", "mantissa8:20", 800, dict(base, filters=trunc, metas=[0, 0, 0, 0, 20, 0], typesize=8,
                                                       noisy=True)
    if version >= (3,):  # older releases ignore the meta byte
        yield "shuffle-meta2", "ramp:2", 800, dict(base, filters=[1, 0, 0, 0, 0, 0], metas=[2, 0, 0, 0, 0, 0])
    for mode, split in ((1, "always"), (2, "never"), (3, "auto")):
        for codec in ("blosclz", "zlib", "zstd"):
            yield f"split-{split}-{codec}", "ramp:4", 902, dict(base, codec=codec, splitmode=mode)
    for typesize in (1, 2, 3, 16, 17, 255, 300):
        nbytes = 140 * typesize + 5 if typesize < 17 else 1600
        params = dict(base, codec="lz4", typesize=typesize, blocksize=0, filters=[0, 0, 0, 0, 0, 1 + typesize % 2])
        yield f"typesize{typesize}", f"ramp:{typesize}", nbytes // typesize * typesize, params
    for typesize, nbytes, blocksize in ((4, 604, 0), (8, 1032, 520), (3, 600, 198)):
        params = dict(base, codec="zlib", filters=[0, 0, 0, 0, 0, 2], typesize=typesize, blocksize=blocksize)
        yield f"bitshuffle-leftover{typesize}", f"ramp:{typesize}", nbytes, params
    yield "stored-level0", "ramp:4", 300, dict(base, clevel=0)
    yield "stored-noise", "noise", 150, dict(base, codec="lz4")
    yield "stored-tiny", "ramp:4", 20, base
    yield "one-byte", "noise", 1, dict(base, typesize=1)
    yield "empty", "zeros", 0, dict(base, blocksize=0)
    yield "zeros", "zeros", 1500, base
    yield "runs", "value:07000000", 3000, dict(base, codec="zstd")
    yield "run-stream", "value:11", 1000, dict(base, typesize=1, filters=[0] * 6)
    yield "text", "text", 1500, dict(base, codec="zstd", typesize=1, filters=[0] * 6)
    yield "threads", "ramp:4", 2060, dict(base, blocksize=256, threads=3, codec="lz4")
    yield "blosc1-compat", "ramp:4", 902, dict(compat=True, codec="lz4", filter=1)
    yield "blosc1-compat-bitshuffle", "ramp:4", 912, dict(compat=True, codec="zstd", filter=2)
    yield "zeros-made", "zeros", 4000, dict(base, special="zeros")
    yield "nans4-made", "nan:0000c07f", 4000, dict(base, special="nans")
    yield "nans8-made", "nan:000000000000f87f", 4000, dict(base, special="nans", typesize=8)
    yield "uninit-made", "any", 4000, dict(base, special="uninit")
    yield "value-made", "value:01020304", 4000, dict(base, special="repeatval")
    yield "value-made-wide", "value:" + content("noise", 300).hex(), 3000, dict(base, special="repeatval", typesize=300)
    yield "dict-zstd", "text", 5500, dict(base, codec="zstd", typesize=1, filters=[0] * 6, dict=1, blocksize=1000)
    if version >= (3,):
        for codec in ("lz4", "lz4hc"):
            yield f"dict-{codec}", "text", 5300, dict(base, codec=codec, typesize=1, filters=[0] * 6, dict=1,
                                                      blocksize=1000)
        yield "dict-zstd-shuffle", "mixed:4", 5600, dict(base, codec="zstd", dict=1, blocksize=1000)
        for codec in CODECS:
            yield f"vl-{codec}", "vl:text", 1400, dict(base, codec=codec, typesize=1, filters=[0] * 6, vl=True)
        yield "vl-shuffle", "vl:ramp:4", 1400, dict(base, codec="lz4", vl=True)
        yield "vl-dict", "vl:text", 5500, dict(base, codec="zstd", typesize=1, filters=[0] * 6, vl=True, dict=1)


class Blosc2:
    """A C-Blosc2 library."""

    def __init__(self, path):
        self.lib = load(path)
        # The names of many functions changed in 2.1.
        (getattr(self.lib, "blosc2_init", None) or self.lib.blosc_init)()
        self.lib.blosc2_create_cctx.restype = c.c_void_p

    def compress(self, data, p):
        lib = self.lib
        dest = c.create_string_buffer(2 * len(data) + 40000)
        if p.get("compat"):
            setter = getattr(lib, "blosc1_set_compressor", None) or lib.blosc_set_compressor
            setter(p["codec"].encode())
            size = len(data) + 32
            n = lib.blosc2_compress(5, p["filter"], 4, data, len(data), dest, size)
            return dest.raw[:n] if n > 0 else None
        params = CParams(compcode=CODES[p["codec"]], clevel=p["clevel"], typesize=p["typesize"], splitmode=p.get("splitmode", 4),
                         nthreads=p.get("threads", 1), blocksize=p["blocksize"], use_dict=p.get("dict", 0),
                         filters=(c.c_uint8 * 6)(*p["filters"]), filters_meta=(c.c_uint8 * 6)(*p.get("metas", [0] * 6)))
        room = c.c_int64(len(dest))
        if "special" in p:
            make = getattr(lib, "blosc2_chunk_" + p["special"])
            extra = [data[: p["typesize"]]] if p["special"] == "repeatval" else []
            n = make(params, c.c_int64(len(data)), dest, room, *extra)
            return dest.raw[:n] if n > 0 else None
        ctx = c.c_void_p(lib.blosc2_create_cctx(params))
        if p.get("vl"):
            sizes = vl_sizes(len(data))
            starts = [sum(sizes[:i]) for i in range(len(sizes))]
            blocks = (c.c_char_p * len(sizes))(*[data[s:s + n] for s, n in zip(starts, sizes)])
            n = lib.blosc2_vlcompress_ctx(ctx, blocks, (c.c_int32 * len(sizes))(*sizes), len(sizes), dest, room)
        else:
            n = lib.blosc2_compress_ctx(ctx, data, c.c_int64(len(data)), dest, c.c_int64(len(data) + 32))
        lib.blosc2_free_ctx(ctx)
        return dest.raw[:n] if n > 0 else None

    def decompress(self, chunk, nbytes):
        dest = c.create_string_buffer(nbytes + 1)
        n = self.lib.blosc2_decompress(chunk, len(chunk), dest, nbytes)
        return dest.raw[:n] if n >= 0 else n


# ---------------------------------------------------------------- the two kinds of processes

def worker(name, path, newest):
    """Makes the chunks of one release; prints its lines of the manifest."""
    version = tuple(int(x) for x in name.split("-")[1].split("."))
    one = name.startswith("blosc-")
    lib = Blosc1(path) if one else Blosc2(path)
    reader = Blosc2(newest)
    out, lines = bytearray(), []
    for case, formula, nbytes, params in (blosc1_cases if one else blosc2_cases)(version):
        if name not in FULL and ("typesize" in case or not any(word in case for word in SHORT_CASES)):
            continue
        plain = formula[3:] if formula.startswith("vl:") else formula
        data = expected = content(plain, nbytes)
        if params.get("noisy"):
            # The filter must remove bits, so the source has them all.
            data = content(plain.split(":")[0] + (":23" if "4" in plain.split(":")[0] else ":52"), nbytes)
        if params.get("compat"):
            os.environ["BLOSC_BLOSC1_COMPAT"] = "1"
        chunk = lib.compress(data, params)
        os.environ.pop("BLOSC_BLOSC1_COMPAT", None)
        if chunk is None:
            print(f"# {name} {case}: not made by this release", file=sys.stderr)
            continue
        # What its own release reads back is a good chunk, even if the newest release does not; a codec that the newest
        # lacks is an error.
        code = "ok"
        for which, by in (("itself", lib), ("the newest", reader)):
            got = by.decompress(chunk, nbytes)
            if got == expected or formula == "any" and not isinstance(got, int):
                continue
            said = got if isinstance(got, int) else "other data"
            print(f"# {name} {case}: {which} reads {said}", file=sys.stderr)
            code = None if which == "itself" else str(got) if isinstance(got, int) else code
            if code is None:
                break
        if code is None:
            continue
        lines.append(f"{name}.bin {case} {len(out)} {len(chunk)} {nbytes} {formula} {code}")
        out += chunk
    with open(os.path.join(OUT, name + ".bin"), "wb") as f:
        f.write(out)
    print("\n".join(lines))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wheels", default=os.path.join(HERE, "..", "..", "target", "reference", "wheels"))
    parser.add_argument("--worker", nargs=3)
    args = parser.parse_args()
    if args.worker:
        return worker(*args.worker)
    os.makedirs(OUT, exist_ok=True)
    newest = os.path.abspath(fetch(NEWEST, args.wheels))
    lines = ["# Made by make_chunks.py; see there.", "# file name offset cbytes nbytes content code"]
    for release in RELEASES:
        path = os.path.abspath(fetch(release, args.wheels))
        command = [sys.executable, os.path.abspath(__file__), "--worker", release[0], path, newest]
        lines.append(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.rstrip())
    with open(os.path.join(OUT, "manifest.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
