# Finds everything that the build depends on. What is missing is an error that says how to get it.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

find_package(LibTorch 2.9)
if(NOT LibTorch_FOUND)
  message(FATAL_ERROR "LibTorch 2.9 or newer was not found (needed for tensors and autograd). Set LIBTORCH to an unpacked LibTorch, "
                      "activate a Python that has torch, or run ./jobs/quickstart.sh, which downloads it into .deps/.")
endif()
if(LibTorch_VERSION VERSION_GREATER_EQUAL 2.16)
  message(WARNING "LibTorch ${LibTorch_VERSION} is newer than the tested releases (2.9 to 2.15): it may not compile, or behave differently. "
                  "If tests fail, set LIBTORCH to one of these.")
endif()
add_feature_info(LibTorch LibTorch_FOUND "${LibTorch_VERSION} by ${LibTorch_SOURCE}: ${LibTorch_ROOT_DIR}")

# In a distribution with several MPIs, the name of each wrapper ends with the MPI's name (Debian: mpicc.mpich).
if(HORTATOR_MPI)
  foreach(pair MPI_C_COMPILER|mpicc MPIEXEC_EXECUTABLE|mpiexec HDF5_C_COMPILER_EXECUTABLE|h5pcc)
    string(REPLACE "|" ";" pair "${pair}")
    list(GET pair 0 variable)
    list(GET pair 1 program)
    find_program(${variable} NAMES ${program}.${HORTATOR_MPI})
    if(NOT ${variable})
      message(FATAL_ERROR "HORTATOR_MPI: '${HORTATOR_MPI}' has no ${program}.${HORTATOR_MPI} on PATH. Install that MPI and the "
                          "HDF5 that belongs to it (Debian: libmpich-dev libhdf5-mpich-dev), or unset HORTATOR_MPI.")
    endif()
  endforeach()
endif()
find_package(MPI COMPONENTS C)
if(NOT MPI_C_FOUND)
  message(FATAL_ERROR "MPI was not found (it starts the ranks and carries CPU tensors). Load the MPI module of your site, or install "
                      "libopenmpi-dev (Debian, Ubuntu) or openmpi-devel (Rocky), then configure again.")
endif()
if(MPI_C_VERSION AND MPI_C_VERSION VERSION_LESS 3.1)
  message(FATAL_ERROR "The MPI found (${MPI_C_LIBRARIES}) implements version ${MPI_C_VERSION} of the standard; Hortator needs 3.1 or "
                      "newer. Load a newer MPI module of your site, or set MPI_HOME to one.")
endif()
# Omits the C++ bindings of old MPIs, which are not needed.
add_library(hortator_mpi_c INTERFACE)
target_link_libraries(hortator_mpi_c INTERFACE MPI::MPI_C)
target_compile_definitions(hortator_mpi_c INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
include(hortator_compatibility)
hortator_mpi_identity("${MPI_C_HEADER_DIR};${MPI_C_INCLUDE_DIRS};${CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES}" HORTATOR_MPI)
hortator_cxx_library(HORTATOR_CXX_LIBRARY)
add_feature_info(MPI MPI_C_FOUND "${HORTATOR_MPI_NAME} ${HORTATOR_MPI_VERSION}, standard ${MPI_C_VERSION}: ${MPIEXEC_EXECUTABLE}")

include(HortatorHdf5)
include(HortatorMpiFamilies)

find_package(Boost 1.66 COMPONENTS program_options)
if(NOT Boost_PROGRAM_OPTIONS_FOUND)
  message(FATAL_ERROR "Boost.Program_options was not found (the hortator command reads its options with it). Load your site's Boost "
                      "module, or install libboost-program-options-dev (Debian, Ubuntu) or boost-devel (Rocky).")
endif()
# The name of the target changed with release 0.8.
find_package(yaml-cpp 0.6 QUIET)
if(NOT yaml-cpp_FOUND)
  message(FATAL_ERROR "yaml-cpp was not found (the hortator command reads its settings with it). Load your site's yaml-cpp module, or install "
                      "libyaml-cpp-dev (Debian, Ubuntu) or yaml-cpp-devel (Rocky), or set yaml-cpp_DIR.")
endif()
add_library(hortator_yaml INTERFACE)
if(TARGET yaml-cpp::yaml-cpp)
  target_link_libraries(hortator_yaml INTERFACE yaml-cpp::yaml-cpp)
else()
  target_link_libraries(hortator_yaml INTERFACE yaml-cpp)
endif()
find_package(nlohmann_json 3.7)
if(NOT nlohmann_json_FOUND)
  message(FATAL_ERROR "nlohmann-json was not found (failure.json and --json are written with it). Install nlohmann-json3-dev (Debian, "
                      "Ubuntu) or json-devel (Rocky), or set nlohmann_json_DIR.")
endif()

include(HortatorArrow)
include(HortatorCompression)
include(HortatorImages)
include(HortatorUnicode)
include(HortatorCuda)
include(HortatorRocm)
include(HortatorXpu)
