# The targets. Each library is made of the object that cargo left, in which only the functions of the API are global.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# What Rust's standard library needs on Linux, as `rustc --print native-static-libs` tells, but for libgcc_s, which the C
# compiler adds under the name that fits the program; and the codecs.
set(_blosc2_libraries Threads::Threads util rt m dl)
foreach(_blosc2_codec LZ4:lz4 ZLIB:z ZSTD:zstd)
  string(REPLACE ":" ";" _blosc2_codec "${_blosc2_codec}")
  list(GET _blosc2_codec 0 _blosc2_name)
  list(GET _blosc2_codec 1 _blosc2_library)
  if(PREFER_EXTERNAL_${_blosc2_name})
    list(PREPEND _blosc2_libraries ${_blosc2_library})
  endif()
endforeach()

# _blosc2_library(KIND TYPE): the target blosc2_KIND.
function(_blosc2_library kind type)
  set(object "${_blosc2_objects}/blosc2-${kind}.o")
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_library(blosc2_${kind} ${type} "${object}")
  add_library(Blosc2::blosc2_${kind} ALIAS blosc2_${kind})
  add_dependencies(blosc2_${kind} blosc2_cargo)
  set_target_properties(blosc2_${kind} PROPERTIES OUTPUT_NAME blosc2 LINKER_LANGUAGE C)
  target_include_directories(blosc2_${kind} INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(blosc2_${kind} PRIVATE ${_blosc2_libraries})
endfunction()

if(BUILD_SHARED)
  _blosc2_library(shared SHARED)
  set_target_properties(blosc2_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 9)
endif()
if(BUILD_STATIC)
  _blosc2_library(static STATIC)
  add_library(blosc2 INTERFACE)
  add_library(Blosc2::blosc2 ALIAS blosc2)
  target_link_libraries(blosc2 INTERFACE blosc2_static)
endif()
