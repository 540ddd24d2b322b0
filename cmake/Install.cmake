# Installs what `cargo xtask install` would; the CMake targets are written by CMake.

set(_blosc2_cmakedir "${CMAKE_INSTALL_LIBDIR}/cmake/blosc2")
set(_blosc2_targets "")
if(BUILD_SHARED)
  list(APPEND _blosc2_targets blosc2_shared)
endif()
if(BUILD_STATIC)
  list(APPEND _blosc2_targets blosc2_static blosc2)
endif()

install(TARGETS ${_blosc2_targets} EXPORT Blosc2Targets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT Blosc2Targets NAMESPACE Blosc2:: DESTINATION "${_blosc2_cmakedir}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h")
install(FILES "${_blosc2_stage}${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig/blosc2.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(FILES
  "${_blosc2_stage}${CMAKE_INSTALL_FULL_LIBDIR}/cmake/blosc2/Blosc2Config.cmake"
  "${_blosc2_stage}${CMAKE_INSTALL_FULL_LIBDIR}/cmake/blosc2/Blosc2ConfigVersion.cmake"
  DESTINATION "${_blosc2_cmakedir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/THIRD-PARTY-NOTICES.md"
  DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/libblosc2-rs" OPTIONAL)
