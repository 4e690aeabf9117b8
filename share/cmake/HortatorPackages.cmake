# Packages of the build (`cpack`: .tar.gz, and .deb where dpkg is) and the archive of the sources (`cpack --config CPackSourceConfig.cmake`).
set(CPACK_PACKAGE_NAME hortator)
set(CPACK_PACKAGE_VENDOR "The Hortator developers")
set(CPACK_PACKAGE_CONTACT "${CPACK_PACKAGE_VENDOR}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION "Built with LibTorch ${LibTorch_VERSION}, ${HORTATOR_MPI_NAME} ${HORTATOR_MPI_VERSION} and HDF5 ${HDF5_VERSION}. LibTorch is not part of the package: it is expected in ${LibTorch_ROOT_DIR}.")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_FILE_NAME "hortator-${HORTATOR_MODULE_VERSION}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR TGZ)
find_program(HORTATOR_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(HORTATOR_DPKG_SHLIBDEPS)
if(HORTATOR_DPKG_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
endif()

# The libraries are found by dpkg-shlibdeps; the command also starts mpirun.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
if(HORTATOR_MPI_NAME STREQUAL "Open MPI")
  set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
elseif(HORTATOR_MPI_NAME STREQUAL "MPICH")
  set(CPACK_DEBIAN_PACKAGE_DEPENDS mpich)
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "cmake (>= 3.25), g++")

# The name that EasyBuild and Spack expect. What git ignores is left out, also where the path of the sources has such a name itself.
set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME "hortator-${PROJECT_VERSION}")
string(REGEX REPLACE "([][+.*()^$?{}|\\\\])" "\\\\\\1" sources "${PROJECT_SOURCE_DIR}")
set(CPACK_SOURCE_IGNORE_FILES "^${sources}/(\\.git|\\.deps|\\.cache|build|runs)(/|$)" "^${sources}/(compile_commands|CMakeUserPresets)\\.json$"
                              "\\.swp$" "/__pycache__/")
include(CPack)
