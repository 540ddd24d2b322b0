# Runs cargo. It leaves an installation under ${_blosc2_stage}, and the objects of the two libraries beside it.

find_program(BLOSC2_CARGO cargo HINTS "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin" NO_CMAKE_FIND_ROOT_PATH
  DOC "Rust's build tool, which builds libblosc2-rs")
if(NOT BLOSC2_CARGO)
  message(FATAL_ERROR "libblosc2-rs is written in Rust: cargo (https://rustup.rs) is needed to build it")
endif()
set(BLOSC2_CARGO_TARGET_DIR "${CMAKE_CURRENT_BINARY_DIR}/cargo" CACHE PATH
  "Where cargo keeps what it builds; builds that share it do not repeat each other's work")

set(_blosc2_features "")
foreach(_blosc2_codec LZ4 ZLIB ZSTD)
  if(PREFER_EXTERNAL_${_blosc2_codec})
    string(TOLOWER "system-${_blosc2_codec}" _blosc2_feature)
    list(APPEND _blosc2_features ${_blosc2_feature})
  endif()
endforeach()
list(JOIN _blosc2_features "," _blosc2_feature_list)
set(_blosc2_install_args "")
if(_blosc2_features)
  list(APPEND _blosc2_install_args --features ${_blosc2_feature_list})
endif()
# Not the project's CMAKE_BUILD_TYPE: a debug build of a program is seldom meant to make compression many times slower.
option(BLOSC2_CARGO_DEBUG "Build libblosc2-rs without optimisation" OFF)
mark_as_advanced(BLOSC2_CARGO_DEBUG)
if(BLOSC2_CARGO_DEBUG)
  list(APPEND _blosc2_install_args --debug)
endif()

file(GLOB_RECURSE _blosc2_sources CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/src/*.rs" "${PROJECT_SOURCE_DIR}/xtask/src/*.rs" "${PROJECT_SOURCE_DIR}/include/*.h"
  "${PROJECT_SOURCE_DIR}/cmake/*.in" "${PROJECT_SOURCE_DIR}/cbindgen/*.in")

# The C parts are compiled by the compiler that cargo finds, unless the project uses another one.
set(_blosc2_environment "CARGO_TARGET_DIR=${BLOSC2_CARGO_TARGET_DIR}")
find_program(_blosc2_cc cc)
mark_as_advanced(_blosc2_cc)
if(NOT CMAKE_C_COMPILER STREQUAL _blosc2_cc)
  list(APPEND _blosc2_environment "CC=${CMAKE_C_COMPILER}")
endif()

# For another platform Cargo has to know it by Rust's name, and the tools are those that the toolchain file names. What it has
# the compiler told, CMake adds to each command; here a script does, which compiles and links.
set(BLOSC2_CARGO_TARGET "" CACHE STRING "Rust's name of the platform to build for, if it is not this one")
if(BLOSC2_CARGO_TARGET)
  list(APPEND _blosc2_install_args --target "${BLOSC2_CARGO_TARGET}")
  string(TOUPPER "CARGO_TARGET_${BLOSC2_CARGO_TARGET}_LINKER" _blosc2_linker)
  string(REPLACE "-" "_" _blosc2_linker "${_blosc2_linker}")
  set(_blosc2_compiler "${CMAKE_C_COMPILER}")
  set(_blosc2_flags "${CMAKE_C_FLAGS}")
  if(CMAKE_C_COMPILER_TARGET)
    string(APPEND _blosc2_flags " ${CMAKE_C_COMPILE_OPTIONS_TARGET}${CMAKE_C_COMPILER_TARGET}")
  endif()
  if(CMAKE_SYSROOT)
    string(APPEND _blosc2_flags " '--sysroot=${CMAKE_SYSROOT}'")
  endif()
  string(STRIP "${_blosc2_flags}" _blosc2_flags)
  if(_blosc2_flags)
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/script/blosc2-cc"
      "#!/bin/sh\nexec '${CMAKE_C_COMPILER}' ${_blosc2_flags} \"$@\"\n")
    file(COPY "${CMAKE_CURRENT_BINARY_DIR}/script/blosc2-cc" DESTINATION "${CMAKE_CURRENT_BINARY_DIR}"
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    set(_blosc2_compiler "${CMAKE_CURRENT_BINARY_DIR}/blosc2-cc")
  endif()
  list(APPEND _blosc2_environment "CC=${_blosc2_compiler}" "${_blosc2_linker}=${_blosc2_compiler}"
    "LD=${CMAKE_LINKER}" "AR=${CMAKE_AR}" "NM=${CMAKE_NM}" "OBJCOPY=${CMAKE_OBJCOPY}" "STRIP=${CMAKE_STRIP}")
elseif(CMAKE_CROSSCOMPILING)
  message(FATAL_ERROR "libblosc2-rs: to build for another platform, set BLOSC2_CARGO_TARGET to its name in Rust, "
    "as in -DBLOSC2_CARGO_TARGET=aarch64-unknown-linux-gnu")
endif()

set(_blosc2_stage "${CMAKE_CURRENT_BINARY_DIR}/stage")
set(_blosc2_objects "${CMAKE_CURRENT_BINARY_DIR}/objects")

add_custom_command(
  OUTPUT "${_blosc2_objects}/blosc2-shared.o" "${_blosc2_objects}/blosc2-static.o"
  COMMAND ${CMAKE_COMMAND} -E env ${_blosc2_environment}
    "${BLOSC2_CARGO}" run --quiet --package xtask -- install --destdir "${_blosc2_stage}"
    --prefix "${CMAKE_INSTALL_PREFIX}" --libdir "${CMAKE_INSTALL_FULL_LIBDIR}"
    --includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}" --objects "${_blosc2_objects}"
    ${_blosc2_install_args}
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  DEPENDS ${_blosc2_sources} "${PROJECT_SOURCE_DIR}/Cargo.toml" "${PROJECT_SOURCE_DIR}/Cargo.lock"
    "${PROJECT_SOURCE_DIR}/build.rs" "${PROJECT_SOURCE_DIR}/capi-tests/symbols.txt"
    "${PROJECT_SOURCE_DIR}/.cargo/config.toml"
  COMMENT "libblosc2-rs: cargo builds both libraries, with link-time optimisation"
  VERBATIM)
# One target runs the command: with make, two targets that need its outputs would each run it.
add_custom_target(blosc2_cargo DEPENDS "${_blosc2_objects}/blosc2-shared.o" "${_blosc2_objects}/blosc2-static.o")
