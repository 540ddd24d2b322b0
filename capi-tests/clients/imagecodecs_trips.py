"""Chunks of many kinds through imagecodecs' Blosc2 codec.

    imagecodecs_trips.py write FILE     compresses, reads back, keeps the chunks; says what they are
    imagecodecs_trips.py read FILE      decompresses chunks that another library wrote

The bytes of LZ4, LZ4HC and Zstandard chunks are settled, so a digest of them is printed; of the others only that they came back.
With several threads the C library lets chance decide on the order of the blocks: those chunks are not in the digest.
"""

import hashlib
import itertools
import pickle
import sys

import imagecodecs
import numpy

CODECS = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
SHUFFLES = ["noshuffle", "shuffle", "bitshuffle"]
SETTLED = {"lz4", "lz4hc", "zstd"}


def samples():
    """Data by name."""
    numbers = numpy.arange(300 * 333)
    random = numpy.random.RandomState(7)
    return {
        "image": ((numbers % 333) // 3 + (numbers // 333) * 2).astype("u1"),
        "counts": numbers.astype("u4"),
        "floats": numpy.sin(numbers / 1000).astype("f8"),
        "noise": random.bytes(65_537),
        "zeros": numpy.zeros(100_000, "u2"),
        "small": b"ab",
        "empty": b"",
    }


def write(path):
    """Compresses every sample in every way."""
    chunks = []
    for (name, data), codec, shuffle in itertools.product(samples().items(), CODECS, SHUFFLES):
        plain = bytes(data)
        typesize = getattr(data, "itemsize", 1)
        digest = hashlib.sha256()
        for level, threads in itertools.product([0, 1, 5, 9], [1, 4]):
            chunk = imagecodecs.blosc2_encode(
                data, level=level, compressor=codec, shuffle=shuffle, typesize=typesize, numthreads=threads
            )
            assert imagecodecs.blosc2_decode(chunk, numthreads=threads) == plain, (name, codec, shuffle, level)
            out = bytearray(len(plain))
            imagecodecs.blosc2_decode(chunk, out=out)
            assert out == plain
            chunks.append((plain, chunk))
            if threads == 1:
                digest.update(chunk)
        print(name, codec, shuffle, digest.hexdigest()[:16] if codec in SETTLED else "came back")
    with open(path, "wb") as file:
        pickle.dump(chunks, file)


def read(path):
    """Decompresses the chunks of a file; cut chunks give errors."""
    with open(path, "rb") as file:
        chunks = pickle.load(file)
    for plain, chunk in chunks:
        assert imagecodecs.blosc2_decode(chunk) == plain
        for length in (0, 3, 15, 16, len(chunk) // 2, len(chunk) - 1):
            try:
                imagecodecs.blosc2_decode(chunk[:length])
            except imagecodecs.Blosc2Error:
                continue
            except ValueError:
                continue
            raise AssertionError(f"{length} of {len(chunk)} bytes were enough")
    print(len(chunks), "chunks of the other library came back, and none of them cut")


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
