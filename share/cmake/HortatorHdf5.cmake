# Finds parallel HDF5 built with the same MPI; anything else is an error.
set(HDF5_PREFER_PARALLEL TRUE)
find_package(HDF5 COMPONENTS C)
if(NOT HDF5_FOUND)
  message(FATAL_ERROR "HDF5 was not found (checkpoints are parallel HDF5 files). Load your site's parallel HDF5 module, install "
                      "libhdf5-openmpi-dev (Debian, Ubuntu) or hdf5-openmpi-devel (Rocky), or set HDF5_ROOT.")
endif()
if(HDF5_VERSION VERSION_LESS 1.10.2)
  message(FATAL_ERROR "HDF5 ${HDF5_VERSION} at ${HDF5_INCLUDE_DIRS} is too old (1.10.2 is the first release with checksums of a file's metadata). "
                      "Load a newer module, or set HDF5_ROOT.")
endif()
if(NOT HDF5_IS_PARALLEL)
  message(FATAL_ERROR "The HDF5 found at ${HDF5_INCLUDE_DIRS} is serial (all ranks write one checkpoint, which needs parallel HDF5). "
                      "Point HDF5_ROOT at a parallel HDF5 built with your MPI, e.g. the package libhdf5-openmpi-dev.")
endif()

# Two MPIs in one process crash later, for no visible reason: compare the libmpi that HDF5 needs with the one found.
function(hortator_needed_mpi library out)
  execute_process(COMMAND "${CMAKE_OBJDUMP}" -p "${library}" OUTPUT_VARIABLE headers ERROR_QUIET)
  string(REGEX MATCH "NEEDED +(libmpi[a-z]*\\.so[.0-9]*)" unused "${headers}")
  set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()
function(hortator_soname library out)
  execute_process(COMMAND "${CMAKE_OBJDUMP}" -p "${library}" OUTPUT_VARIABLE headers ERROR_QUIET)
  string(REGEX MATCH "SONAME +([^ \n]+)" unused "${headers}")
  set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

foreach(hdf5_library IN LISTS HDF5_C_LIBRARIES HDF5_LIBRARIES)
  if(hdf5_library MATCHES "libhdf5[^/]*\\.so" AND CMAKE_OBJDUMP)
    hortator_needed_mpi("${hdf5_library}" hdf5_mpi)
    set(our_mpis "")
    foreach(mpi_library IN LISTS MPI_C_LIBRARIES)
      hortator_soname("${mpi_library}" soname)
      list(APPEND our_mpis "${soname}")
    endforeach()
    if(hdf5_mpi AND our_mpis AND NOT hdf5_mpi IN_LIST our_mpis)
      message(FATAL_ERROR "${hdf5_library} was built with another MPI (it needs ${hdf5_mpi}, the MPI found has ${our_mpis}): two MPIs in "
                          "one process crash. Load matching modules, or set HDF5_ROOT or MPI_HOME so that both agree.")
    endif()
    break()
  endif()
endforeach()

add_library(hortator_hdf5_c INTERFACE)
target_include_directories(hortator_hdf5_c SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS} ${HDF5_INCLUDE_DIRS})
target_link_libraries(hortator_hdf5_c INTERFACE ${HDF5_C_LIBRARIES} hortator_mpi_c)
target_compile_definitions(hortator_hdf5_c INTERFACE ${HDF5_C_DEFINITIONS})
add_feature_info(HDF5 HDF5_IS_PARALLEL "${HDF5_VERSION}, parallel")
