# hortator_add_test(name SOURCES file... RANKS n... [LINKS target...] [LABELS label...] [TIMEOUT seconds])
# Builds one Catch2 program and adds a test name.np<n> for each number of ranks, with the label np<n> and the given ones.
find_package(Catch2 REQUIRED)
add_library(hortator_test_main STATIC "${PROJECT_SOURCE_DIR}/tests/support/mpi_main.cpp")
target_include_directories(hortator_test_main PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(hortator_test_main PRIVATE hortator_flags PUBLIC Catch2::Catch2 hortator_mpi_c)
if(Catch2_VERSION VERSION_LESS 3)
  target_compile_definitions(hortator_test_main PUBLIC HORTATOR_CATCH2_V2)
endif()

# After a change every test program is linked again, which takes mostly the time to read LibTorch's hundred thousand symbols. mold is faster.
# Programs for users are linked by the compiler's default linker.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=mold HORTATOR_MOLD)
add_feature_info(mold HORTATOR_MOLD "links the test programs faster")
if(HORTATOR_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# On small machines there are more ranks than cores: ranks must yield while they wait, and each has one thread. Simulated nodes may share one
# address: Open MPI 5 then finds no route between them with the kernel's routing table (netlink), but does with reachable=weighted. Tests that
# configure user projects use the generator of this build, because CMake's default one may not be installed. Only the tests with the label gpu
# see devices, and they run one at a time: all other tests behave as on a machine without GPUs.
set(HORTATOR_TEST_ENVIRONMENT
    OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=slot:oversubscribe
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
    OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_reachable=weighted
    CMAKE_GENERATOR=${CMAKE_GENERATOR} CUDA_VISIBLE_DEVICES=)
if(HORTATOR_MPI STREQUAL "mpich")
  add_library(yield_when_idle MODULE "${PROJECT_SOURCE_DIR}/tests/support/mpich/yield_when_idle.cpp")
  target_link_libraries(yield_when_idle PRIVATE hortator_flags)
  set_target_properties(yield_when_idle PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  list(APPEND HORTATOR_TEST_ENVIRONMENT "PATH=${PROJECT_SOURCE_DIR}/tests/support/mpich:$ENV{PATH}"
       "LD_PRELOAD=${PROJECT_BINARY_DIR}/tests/libyield_when_idle.so")
endif()

# PROCESSORS tells ctest how many tests fit beside each other: a test's ranks, but nothing (one) for scripts that mostly wait or compile.
set(HORTATOR_TEST_TIMEOUT 120)  # seconds, unless a test sets its own

function(hortator_mpi_test name ranks)
  cmake_parse_arguments(PARSE_ARGV 2 test "" "TIMEOUT;WORKING_DIRECTORY" "COMMAND;LABELS;ENVIRONMENT")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT ${HORTATOR_TEST_TIMEOUT})
  endif()
  add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS} ${test_COMMAND})
  set_tests_properties(${name} PROPERTIES
    LABELS "np${ranks};${test_LABELS}" PROCESSORS ${ranks} TIMEOUT ${test_TIMEOUT} ENVIRONMENT "${HORTATOR_TEST_ENVIRONMENT};${test_ENVIRONMENT}")
  if("gpu" IN_LIST test_LABELS)
    set(environment "${HORTATOR_TEST_ENVIRONMENT}" "${test_ENVIRONMENT}")
    list(REMOVE_ITEM environment CUDA_VISIBLE_DEVICES=)
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: no CUDA device" RESOURCE_LOCK gpu ENVIRONMENT "${environment}")
  endif()
  if(test_WORKING_DIRECTORY)
    set_tests_properties(${name} PROPERTIES WORKING_DIRECTORY "${test_WORKING_DIRECTORY}")
  endif()
endfunction()

add_custom_target(serial_tests COMMENT "Building the tests that need no MPI")

function(hortator_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "TIMEOUT" "SOURCES;RANKS;LINKS;LABELS")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT ${HORTATOR_TEST_TIMEOUT})
  endif()
  add_executable(test_${name} ${test_SOURCES})
  target_link_libraries(test_${name} PRIVATE hortator_flags hortator_test_main ${test_LINKS})
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  if("serial" IN_LIST test_LABELS)
    add_dependencies(serial_tests test_${name})
  endif()
  foreach(ranks IN LISTS test_RANKS)
    set(work "${PROJECT_BINARY_DIR}/tests/work/${name}.np${ranks}")
    file(MAKE_DIRECTORY "${work}")
    hortator_mpi_test(${name}.np${ranks} ${ranks} COMMAND $<TARGET_FILE:test_${name}>
                      LABELS ${test_LABELS} TIMEOUT ${test_TIMEOUT} WORKING_DIRECTORY "${work}")
  endforeach()
endfunction()
