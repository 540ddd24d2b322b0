# The options of the C library's build. Those that choose what is built mean the same here; the others are accepted, so
# that projects which set them need no change.

get_directory_property(_blosc2_parent PARENT_DIRECTORY)
if(_blosc2_parent)
  set(_blosc2_top_level OFF)
else()
  set(_blosc2_top_level ON)
endif()

option(BUILD_SHARED "Build the shared library" ON)
option(BUILD_STATIC "Build the static library" ON)
option(BLOSC_INSTALL "Install libraries, headers, pkg-config and CMake files" ON)

# Off unless this is the project being built: C programs against both libraries, run by ctest.
option(BUILD_TESTS "Build the C tests" ${_blosc2_top_level})
option(BUILD_EXAMPLES "Build the demo program" ${_blosc2_top_level})

# The codecs of the system in place of the built-in ones.
option(PREFER_EXTERNAL_LZ4 "Use the system's LZ4" OFF)
option(PREFER_EXTERNAL_ZLIB "Use the system's zlib" OFF)
option(PREFER_EXTERNAL_ZSTD "Use the system's Zstandard" OFF)

# Accepted and without effect: fuzzers and benchmarks are cargo's, plugins are always there, and the instruction sets are
# chosen at run time.
foreach(_blosc2_option
    BUILD_BENCHMARKS BUILD_FUZZERS BUILD_PLUGINS BUILD_LITE DEACTIVATE_IPP DEACTIVATE_AVX2 DEACTIVATE_AVX512
    DEACTIVATE_OPENMP DEACTIVATE_SYMBOLS_CHECK PREFER_EXTERNAL_ZFP)
  option(${_blosc2_option} "Accepted for compatibility with the C library's build" OFF)
endforeach()

# The formats need their codecs: files written elsewhere could not be read.
foreach(_blosc2_codec ZLIB ZSTD ZFP)
  option(DEACTIVATE_${_blosc2_codec} "Accepted for compatibility; the codec is always built" OFF)
  if(DEACTIVATE_${_blosc2_codec})
    message(STATUS "libblosc2-rs: DEACTIVATE_${_blosc2_codec} is ignored, the codec is always built")
  endif()
endforeach()

if(NOT BUILD_SHARED AND NOT BUILD_STATIC)
  message(FATAL_ERROR "libblosc2-rs: BUILD_SHARED and BUILD_STATIC are both off: nothing to build")
endif()
