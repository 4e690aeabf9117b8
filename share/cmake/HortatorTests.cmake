# Tests are Catch2 programs. hortator_add_test describes one part of a room's tests; the parts of a room are linked into one program, which runs
# all their cases for a number of ranks in one start of MPI: the test batch.<room>.np<n>. See share/doc/testing.md.
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
# see devices, and they run one at a time: all other tests behave as on a machine without GPUs. None reads this machine's energy, or waits long
# for a file that is missing on purpose.
set(HORTATOR_TEST_ENVIRONMENT
    OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=slot:oversubscribe
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
    OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_reachable=weighted
    CMAKE_GENERATOR=${CMAKE_GENERATOR} CUDA_VISIBLE_DEVICES= HORTATOR_ENERGY_ROOT=off HORTATOR_FILE_PATIENCE=300ms)
if(HORTATOR_MPI STREQUAL "mpich")
  add_library(yield_when_idle MODULE "${PROJECT_SOURCE_DIR}/tests/support/mpich/yield_when_idle.cpp")
  target_link_libraries(yield_when_idle PRIVATE hortator_flags)
  set_target_properties(yield_when_idle PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  list(APPEND HORTATOR_TEST_ENVIRONMENT "PATH=${PROJECT_SOURCE_DIR}/tests/support/mpich:$ENV{PATH}"
       "LD_PRELOAD=${PROJECT_BINARY_DIR}/tests/libyield_when_idle.so")
endif()

# PROCESSORS tells ctest how many tests fit beside each other: the ranks of programs of tests, which wait for each other in each collective, and take
# more than twice as long where another process keeps one of them waiting; one for scripts that mostly start programs, wait or compile. No test runs
# beside one that compares times (TIMED).

set(HORTATOR_TEST_TIMEOUT 120)  # seconds, unless a test sets its own

function(hortator_mpi_test name ranks)
  cmake_parse_arguments(PARSE_ARGV 2 test "TIMED" "TIMEOUT;WORKING_DIRECTORY" "COMMAND;LABELS;ENVIRONMENT;CONFIGURATIONS")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT ${HORTATOR_TEST_TIMEOUT})
  endif()
  if(test_CONFIGURATIONS)
    set(test_CONFIGURATIONS CONFIGURATIONS ${test_CONFIGURATIONS})
  endif()
  add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS} ${test_COMMAND} ${test_CONFIGURATIONS})
  set_tests_properties(${name} PROPERTIES
    LABELS "np${ranks};${test_LABELS}" PROCESSORS ${ranks} RUN_SERIAL ${test_TIMED} TIMEOUT ${test_TIMEOUT} ENVIRONMENT "${HORTATOR_TEST_ENVIRONMENT};${test_ENVIRONMENT}")
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

# hortator_add_test(name SOURCES file... RANKS n... [LINKS target...] [LABELS label...] [TIMEOUT seconds] [DEFINITIONS definition...]
#                   [ALONE | PROGRAM] [NODES] [OPTIMIZED] [TIMED])
# The test name.np<n> for each number of ranks, with the label np<n> and the given ones. LINKS: in place of hortator_static. TIMEOUT: of one case.
# ALONE: a program of its own, because it replaces functions, measures memory or time, or starts in a way of its own; so are all tests with a label
# other than serial. Otherwise it is part of a batch, and name.np<n> exists for `ctest -C single` only. PROGRAM: also linked on its own, as
# test_<name>_program, for tests that call it. NODES: nodes can be simulated, and MPI's calls counted (tests/support/nodes_by_variable.cpp).
# OPTIMIZED: compiled as the library is, because its cases compute much in code of their own. TIMED, with ALONE: its cases compare times, so that
# no other test runs beside it.
function(hortator_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "ALONE;PROGRAM;NODES;OPTIMIZED;TIMED" "TIMEOUT" "SOURCES;RANKS;LINKS;LABELS;DEFINITIONS")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT ${HORTATOR_TEST_TIMEOUT})
  endif()
  if(NOT test_LINKS)
    set(test_LINKS hortator_static)
  endif()
  set(other_labels ${test_LABELS})
  list(REMOVE_ITEM other_labels serial)
  if(test_NODES)
    list(APPEND test_LINKS hortator_test_nodes)
  endif()
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/tests/unit" "${CMAKE_CURRENT_SOURCE_DIR}")
  set(alone OFF)
  if(test_ALONE OR other_labels OR folder MATCHES "^[.][.]" OR NOT test_RANKS)
    set(alone ON)
  endif()

  if(alone)
    add_executable(test_${name} ${test_SOURCES})
    set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    set(group ${name})
    set(program test_${name})
  else()
    add_library(test_${name} OBJECT ${test_SOURCES})
    string(REGEX REPLACE "/.*" "" group "${folder}")
    if("serial" IN_LIST test_LABELS)
      string(APPEND group _serial)
    endif()
    set(program tests_${group})
    set_property(GLOBAL APPEND PROPERTY HORTATOR_BATCHES ${group})
    if(test_TIMED)
      message(FATAL_ERROR "${name}: a test that compares times has the machine to itself, and needs ALONE")
    endif()
    if(test_OPTIMIZED)  # the linker takes the first of equal inline functions
      get_property(parts GLOBAL PROPERTY HORTATOR_BATCH_${group})
      set_property(GLOBAL PROPERTY HORTATOR_BATCH_${group} ${name} ${parts})
    else()
      set_property(GLOBAL APPEND PROPERTY HORTATOR_BATCH_${group} ${name})
    endif()
    set_property(GLOBAL APPEND PROPERTY HORTATOR_BATCH_${group}_LINKS ${test_LINKS})
    foreach(source IN LISTS test_SOURCES)
      get_filename_component(file "${source}" NAME_WE)
      list(APPEND files ${file})
    endforeach()
    list(TRANSFORM files REPLACE "(.+)" "[#\\1]~[.]")
    list(JOIN files "," filter)
    foreach(ranks IN LISTS test_RANKS)
      set_property(GLOBAL APPEND PROPERTY HORTATOR_BATCH_${group}_RANKS ${ranks})
      set_property(GLOBAL APPEND PROPERTY HORTATOR_BATCH_${group}_${ranks} ${filter})
      set_property(GLOBAL APPEND PROPERTY HORTATOR_BATCH_${group}_${ranks}_TIMEOUTS ${test_TIMEOUT})
    endforeach()
    if(test_PROGRAM)
      hortator_link_test(test_${name}_program PARTS ${name} LINKS ${test_LINKS})
      set_target_properties(test_${name}_program PROPERTIES OUTPUT_NAME test_${name})
    endif()
  endif()
  target_link_libraries(test_${name} PRIVATE hortator_flags hortator_test_main ${test_LINKS})
  target_compile_definitions(test_${name} PRIVATE ${test_DEFINITIONS})
  if(test_OPTIMIZED)
    target_compile_options(test_${name} PRIVATE -O1)
    hortator_use_precompiled_header(test_${name})
  else()
    hortator_use_precompiled_header(test_${name} ${HORTATOR_TEST_HEADER})
  endif()
  if("serial" IN_LIST test_LABELS)
    add_dependencies(serial_tests ${program})
  endif()
  foreach(ranks IN LISTS test_RANKS)
    set(work "${PROJECT_BINARY_DIR}/tests/work/${name}.np${ranks}")
    file(MAKE_DIRECTORY "${work}")
    set(options LABELS ${test_LABELS} TIMEOUT ${test_TIMEOUT} WORKING_DIRECTORY "${work}")
    if(test_TIMED)
      list(APPEND options TIMED)
    endif()
    if(alone)
      hortator_mpi_test(${name}.np${ranks} ${ranks} COMMAND $<TARGET_FILE:${program}> ${options})
    else()
      hortator_mpi_test(${name}.np${ranks} ${ranks} CONFIGURATIONS single COMMAND $<TARGET_FILE:${program}> "-#" "${filter}" ${options})
    endif()
  endforeach()
endfunction()

# hortator_link_test(target PARTS name... LINKS target...): one program of several parts.
function(hortator_link_test target)
  cmake_parse_arguments(PARSE_ARGV 1 program "" "" "PARTS;LINKS")
  list(TRANSFORM program_PARTS REPLACE "(.+)" "$<TARGET_OBJECTS:test_\\1>" OUTPUT_VARIABLE objects)
  add_executable(${target} ${objects})
  list(REMOVE_DUPLICATES program_LINKS)
  target_link_libraries(${target} PRIVATE hortator_flags hortator_test_main ${program_LINKS})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
endfunction()

# The batches themselves: that no failure is lost, that those of one room agree with their parts, and that the files of a room can be one program.
function(hortator_add_tests_of_batches)
  set(folder "${PROJECT_SOURCE_DIR}/tests/support/batch")
  set(launch ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2 ${MPIEXEC_PREFLAGS})
  add_executable(test_batch_faults "${folder}/faults.cpp")
  target_link_libraries(test_batch_faults PRIVATE hortator_flags hortator_test_main)
  set_target_properties(test_batch_faults PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  add_test(NAME support.batch COMMAND "${folder}/check.sh" "${folder}/batch.sh" $<TARGET_FILE:test_batch_faults> ${launch})
  get_property(filters GLOBAL PROPERTY HORTATOR_BATCH_step_2)
  list(JOIN filters "," filter)
  add_test(NAME support.batch_agrees COMMAND "${folder}/agrees.sh" "${folder}/batch.sh" "${PROJECT_BINARY_DIR}/tests/work/batch_agrees.log"
                                             $<TARGET_FILE:tests_step> "${filter}" ${filters} -- ${launch})
  set_tests_properties(support.batch support.batch_agrees PROPERTIES LABELS np2 TIMEOUT 120 ENVIRONMENT "${HORTATOR_TEST_ENVIRONMENT}")
  add_test(NAME support.types COMMAND python3 "${PROJECT_SOURCE_DIR}/tests/tools/test-types.py" "${PROJECT_SOURCE_DIR}/tests")
  set_tests_properties(support.types PROPERTIES LABELS np1)
endfunction()

# Links the parts of each room, and adds the tests batch.<room>.np<n>. Call it once, after all parts.
function(hortator_add_batches)
  get_property(groups GLOBAL PROPERTY HORTATOR_BATCHES)
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    get_property(parts GLOBAL PROPERTY HORTATOR_BATCH_${group})
    get_property(links GLOBAL PROPERTY HORTATOR_BATCH_${group}_LINKS)
    hortator_link_test(tests_${group} PARTS ${parts} LINKS ${links})
    get_property(all_ranks GLOBAL PROPERTY HORTATOR_BATCH_${group}_RANKS)
    list(REMOVE_DUPLICATES all_ranks)
    foreach(ranks IN LISTS all_ranks)
      get_property(filters GLOBAL PROPERTY HORTATOR_BATCH_${group}_${ranks})
      get_property(timeouts GLOBAL PROPERTY HORTATOR_BATCH_${group}_${ranks}_TIMEOUTS)
      list(LENGTH filters count)
      list(JOIN filters "," filter)
      list(SORT timeouts COMPARE NATURAL ORDER DESCENDING)
      list(GET timeouts 0 limit)
      set(name batch.${group}.np${ranks})
      set(work "${PROJECT_BINARY_DIR}/tests/work/${name}")
      file(MAKE_DIRECTORY "${work}")
      set(label "")
      if(group MATCHES "_serial$")
        set(label serial)
      endif()
      add_test(NAME ${name} COMMAND "${PROJECT_SOURCE_DIR}/tests/support/batch/batch.sh" "${work}/batch.log" $<TARGET_FILE:tests_${group}> "${filter}"
                                    ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS})
      math(EXPR cost "${count} * ${ranks} * 2")
          set_tests_properties(${name} PROPERTIES LABELS "np${ranks};batch;${label}" PROCESSORS ${ranks} TIMEOUT 1800 COST ${cost} WORKING_DIRECTORY "${work}"
                           ENVIRONMENT "${HORTATOR_TEST_ENVIRONMENT};HORTATOR_TEST_CASE_LIMIT=${limit}")
    endforeach()
  endforeach()
endfunction()
