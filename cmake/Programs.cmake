# The C tests and the demo program, against each library that is built; ctest runs them.

set(_blosc2_programs "")
if(BUILD_TESTS)
  enable_testing()
  file(GLOB _blosc2_programs CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/capi-tests/test_*.c")
endif()
if(BUILD_EXAMPLES)
  list(APPEND _blosc2_programs "${PROJECT_SOURCE_DIR}/capi-tests/demo.c")
endif()

# These limit or use up what programs share, or wait for a time: no other test runs beside them.
set(_blosc2_alone test_fork test_large test_limits test_memory test_process test_stacks)

foreach(_blosc2_source IN LISTS _blosc2_programs)
  get_filename_component(_blosc2_name "${_blosc2_source}" NAME_WE)
  foreach(_blosc2_kind shared static)
    if(TARGET blosc2_${_blosc2_kind})
      set(_blosc2_program blosc2_${_blosc2_name}_${_blosc2_kind})
      add_executable(${_blosc2_program} "${_blosc2_source}")
      target_link_libraries(${_blosc2_program} PRIVATE blosc2_${_blosc2_kind} Threads::Threads m)
      if(BUILD_TESTS)
        # The demo takes a file: its own source will do.
        add_test(NAME ${_blosc2_program} COMMAND ${_blosc2_program} "${_blosc2_source}")
        # The names of the files that it makes are those of the other variant.
        set(_blosc2_place "${CMAKE_CURRENT_BINARY_DIR}/run/${_blosc2_program}")
        file(MAKE_DIRECTORY "${_blosc2_place}")
        set_tests_properties(${_blosc2_program} PROPERTIES WORKING_DIRECTORY "${_blosc2_place}")
        if(_blosc2_name IN_LIST _blosc2_alone)
          set_tests_properties(${_blosc2_program} PROPERTIES RUN_SERIAL TRUE)
        endif()
      endif()
    endif()
  endforeach()
endforeach()
