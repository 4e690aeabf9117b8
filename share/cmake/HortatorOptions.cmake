# Options for users, and settings of all targets.
set(HORTATOR_WITH_CUDA AUTO CACHE STRING "CUDA devices and NCCL: AUTO (on if all parts are found), ON (an error if one is missing), OFF")
set_property(CACHE HORTATOR_WITH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(HORTATOR_MPI "" CACHE STRING "The distribution's MPI to use: openmpi, mpich, or empty for its default")
set_property(CACHE HORTATOR_MPI PROPERTY STRINGS "" openmpi mpich)
set(HORTATOR_MPI_ALSO "" CACHE STRING "Further MPIs, as a list: their programs run with this build, too. NAME needs mpicc.NAME, h5pcc.NAME and mpiexec.NAME")
option(HORTATOR_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(HORTATOR_BUILD_EXAMPLES "Build the example programs" ${PROJECT_IS_TOP_LEVEL})
option(HORTATOR_WARNINGS_AS_ERRORS "Treat compiler warnings as errors" OFF)
set(HORTATOR_SANITIZER "" CACHE STRING "Sanitizer to build with: empty, address or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# -O3, CMake's default, takes a fifth longer to compile than -O2 and gains nothing: time is spent in LibTorch and in the loops of
# comm/kernels, which ask for -O3 themselves.
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()
# For code that runs a few times in a run, such as that of tests and of the command. Clang spends a third of the time on what it inlines.
string(REGEX REPLACE "-O[23]" "-O1" HORTATOR_CXX_FLAGS_QUICK "${CMAKE_CXX_FLAGS_RELEASE}")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  string(REPLACE "-O1" "-O1 --start-no-unused-arguments -mllvm -inline-threshold=15 --end-no-unused-arguments" HORTATOR_CXX_FLAGS_QUICK "${HORTATOR_CXX_FLAGS_QUICK}")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# ccache caches compilations with a precompiled header only if it may ignore the header's time stamps and macros.
find_program(HORTATOR_CCACHE ccache)
mark_as_advanced(HORTATOR_CCACHE)
if(HORTATOR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${HORTATOR_CCACHE})
  # Clang's precompiled header holds the times of the headers, unless it may not: every new one would be another one for ccache.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
add_feature_info(ccache HORTATOR_CCACHE "compiler cache: ${HORTATOR_CCACHE}")

# Flags of Hortator's own targets; not exported to consumers.
add_library(hortator_flags INTERFACE)
target_compile_options(hortator_flags INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A function that only newer releases of LibTorch declare cannot be marked as an override.
  target_compile_options(hortator_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-inconsistent-missing-override>)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns of overlapping copies in std::string that do not exist (GCC bug 105329).
  target_compile_options(hortator_flags INTERFACE -fpch-preprocess -Wno-restrict)
  if(CMAKE_UNITY_BUILD)
    # In a unity build GCC treats names of unnamed namespaces as defined in a header, and gives false warnings about strings and optionals.
    # The dev preset, which has no unity build, is the one that checks for warnings.
    target_compile_options(hortator_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage -Wno-stringop-overflow
                                                    -Wno-array-bounds -Wno-maybe-uninitialized>)
  endif()
endif()
if(HORTATOR_WARNINGS_AS_ERRORS)
  target_compile_options(hortator_flags INTERFACE -Werror)
endif()
if(HORTATOR_SANITIZER)
  target_compile_options(hortator_flags INTERFACE -fsanitize=${HORTATOR_SANITIZER} -fno-omit-frame-pointer -g1)
  target_link_options(hortator_flags INTERFACE -fsanitize=${HORTATOR_SANITIZER})
endif()
