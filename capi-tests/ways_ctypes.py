"""Uses the library from Python, through ctypes alone. The arguments are the directory of the libraries and a scratch directory."""

import array
import ctypes
import os
import sys

libdir, scratch = sys.argv[1:]
library = ctypes.CDLL(os.path.join(libdir, "libblosc2.so.9"))


class Cparams(ctypes.Structure):
    """blosc2_cparams; passed by value, so that its layout matters."""

    _fields_ = [
        ("compcode", ctypes.c_uint8),
        ("compcode_meta", ctypes.c_uint8),
        ("clevel", ctypes.c_uint8),
        ("use_dict", ctypes.c_int),
        ("typesize", ctypes.c_int32),
        ("nthreads", ctypes.c_int16),
        ("blocksize", ctypes.c_int32),
        ("splitmode", ctypes.c_int32),
        ("schunk", ctypes.c_void_p),
        ("filters", ctypes.c_uint8 * 6),
        ("filters_meta", ctypes.c_uint8 * 6),
        ("prefilter", ctypes.c_void_p),
        ("preparams", ctypes.c_void_p),
        ("tuner_params", ctypes.c_void_p),
        ("tuner_id", ctypes.c_int),
        ("instr_codec", ctypes.c_bool),
        ("codec_params", ctypes.c_void_p),
        ("filter_params", ctypes.c_void_p * 6),
    ]


def check(what, got, wanted=True):
    """Not `assert`, which does nothing where Python is told to optimise."""
    if got != wanted:
        sys.exit(f"{what}: {got!r}, not {wanted!r}")


check("the size of Cparams", ctypes.sizeof(Cparams), 136)


class Storage(ctypes.Structure):
    """blosc2_storage."""

    _fields_ = [
        ("contiguous", ctypes.c_bool),
        ("urlpath", ctypes.c_char_p),
        ("cparams", ctypes.POINTER(Cparams)),
        ("dparams", ctypes.c_void_p),
        ("io", ctypes.c_void_p),
    ]


def declare(name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


pointer, int32, int64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
version = declare("blosc2_get_version_string", ctypes.c_char_p)
default_cparams = declare("blosc2_get_blosc2_cparams_defaults", Cparams)
create_cctx = declare("blosc2_create_cctx", pointer, Cparams)
compress_ctx = declare("blosc2_compress_ctx", ctypes.c_int, pointer, pointer, int32, pointer, int32)
free_ctx = declare("blosc2_free_ctx", None, pointer)
decompress = declare("blosc2_decompress", ctypes.c_int, pointer, int32, pointer, int32)
new_schunk = declare("blosc2_schunk_new", pointer, ctypes.POINTER(Storage))
open_schunk = declare("blosc2_schunk_open", pointer, ctypes.c_char_p)
append = declare("blosc2_schunk_append_buffer", int64, pointer, pointer, int32)
read_chunk = declare("blosc2_schunk_decompress_chunk", ctypes.c_int, pointer, int64, pointer, int32)
free_schunk = declare("blosc2_schunk_free", ctypes.c_int, pointer)

library.blosc2_init()
print("Blosc2", version().decode())

data = array.array("i", range(100_000)).tobytes()
cparams = default_cparams()
cparams.typesize = 4
cparams.compcode = 5  # Zstandard
context = create_cctx(cparams)
chunk = ctypes.create_string_buffer(len(data) + 32)
size = compress_ctx(context, data, len(data), chunk, len(chunk))
free_ctx(context)
check(f"{size} bytes are a tenth", 0 < size < len(data) // 10)
back = ctypes.create_string_buffer(len(data))
check("decompress", decompress(chunk, size, back, len(back)), len(data))
check("the data are equal", back.raw == data)

path = os.path.join(scratch, "ctypes.b2frame").encode()
if os.path.exists(path):
    os.remove(path)
schunk = new_schunk(Storage(contiguous=True, urlpath=path, cparams=ctypes.pointer(cparams)))
check("there is a super-chunk", bool(schunk))
for count in range(1, 4):
    check("append", append(schunk, data, len(data)), count)
check("free", free_schunk(schunk), 0)
schunk = open_schunk(path)
check("it opens", bool(schunk))
for nchunk in range(3):
    back = ctypes.create_string_buffer(len(data))
    check("a chunk", read_chunk(schunk, nchunk, back, len(back)), len(data))
    check("its data are equal", back.raw == data)
check("no chunk fails", read_chunk(schunk, 3, back, len(back)) < 0)
check("free", free_schunk(schunk), 0)
library.blosc2_destroy()
