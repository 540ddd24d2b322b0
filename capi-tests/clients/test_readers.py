"""Eight threads that read and compress at the same time, through python-blosc2."""

import concurrent.futures
import random

import blosc2
import numpy as np
import pytest

READERS = 8
ROUNDS = 60


def in_threads(work):
    """Runs `work(number)` in eight threads; the first failure is raised."""
    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        for done in [pool.submit(work, number) for number in range(READERS)]:
            done.result()


def read_slices(array, expected, seed):
    """Reads boxes anywhere in the array."""
    chance = random.Random(seed)
    for _ in range(ROUNDS):
        box = []
        for size in expected.shape:
            start = chance.randrange(size)
            box.append(slice(start, chance.randint(start + 1, size)))
        np.testing.assert_array_equal(array[tuple(box)], expected[tuple(box)])


@pytest.fixture
def expected():
    return np.arange(70 * 80 * 90, dtype="i4").reshape(70, 80, 90) // 7


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("nthreads", [1, 4])
def test_each_reader_opens_the_file(tmp_path, expected, contiguous, nthreads):
    path = str(tmp_path / "array.b2nd")
    blosc2.asarray(
        expected, chunks=(30, 40, 50), blocks=(10, 10, 20), urlpath=path, contiguous=contiguous, mode="w"
    )
    in_threads(lambda seed: read_slices(blosc2.open(path, dparams={"nthreads": nthreads}), expected, seed))


@pytest.mark.parametrize("where", ["memory", "file", "directory", "map"])
def test_readers_share_an_array(tmp_path, expected, where):
    path = None if where == "memory" else str(tmp_path / "array.b2nd")
    array = blosc2.asarray(
        expected, chunks=(30, 40, 50), blocks=(10, 10, 20), urlpath=path, contiguous=where != "directory"
    )
    if where == "map":
        array = blosc2.open(path, mmap_mode="r")
    in_threads(lambda seed: read_slices(array, expected, seed))


def test_readers_share_a_super_chunk(expected):
    data = expected.tobytes()
    schunk = blosc2.SChunk(chunksize=100_000, data=data, cparams={"typesize": 4, "nthreads": 2})

    def work(seed):
        chance = random.Random(seed)
        for _ in range(ROUNDS):
            start = chance.randrange(len(data) // 4)
            stop = chance.randint(start, len(data) // 4)
            assert schunk[start:stop] == data[4 * start : 4 * stop]
            number = chance.randrange(schunk.nchunks)
            assert schunk.decompress_chunk(number) == data[100_000 * number : 100_000 * (number + 1)]

    in_threads(work)


@pytest.mark.parametrize("codec", [blosc2.Codec.BLOSCLZ, blosc2.Codec.LZ4, blosc2.Codec.ZLIB, blosc2.Codec.ZSTD])
def test_compressors_side_by_side(expected, codec):
    def work(seed):
        for number in range(20):
            data = expected[(seed + number) % 60 :].tobytes()
            chunk = blosc2.compress2(data, codec=codec, typesize=4, nthreads=1 + number % 3)
            assert blosc2.decompress2(chunk) == data

    in_threads(work)
