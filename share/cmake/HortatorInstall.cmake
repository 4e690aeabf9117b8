# A relocatable installation: all files find each other by relative paths; LibTorch is expected where it was at build time.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Hortator")
set(find_files "${PROJECT_SOURCE_DIR}/share/cmake/FindLibTorch.cmake" "${PROJECT_SOURCE_DIR}/share/cmake/libtorch_search.cmake"
               "${PROJECT_SOURCE_DIR}/share/cmake/hortator_compatibility.cmake")

# Libraries outside the system's folders are found where they were at link time, in the order of the build tree: with another order, another
# NCCL, or the wheel's old libgomp and libgfortran, would be loaded. They are listed here because INSTALL_RPATH_USE_LINK_PATH omits .deps/, which
# CMake considers part of the build tree, and thus puts the system's folders before LibTorch's. CMAKE_INSTALL_RPATH of the user comes first.
set(library_folders ${CMAKE_BUILD_RPATH})
foreach(library IN LISTS MPI_C_LIBRARIES HDF5_C_LIBRARIES HDF5_LIBRARIES ITEMS "${LibTorch_ROOT_DIR}/lib/libtorch.so" ${cuda_linked})
  if(library MATCHES "/[^/]*\\.so")
    cmake_path(GET library PARENT_PATH folder)
    if(NOT folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES AND NOT folder IN_LIST CMAKE_PLATFORM_IMPLICIT_LINK_DIRECTORIES)
      list(APPEND library_folders "${folder}")
    endif()
  endif()
endforeach()
list(REMOVE_DUPLICATES library_folders)
set_property(TARGET hortator APPEND PROPERTY INSTALL_RPATH "$ORIGIN" ${library_folders})
set_target_properties(hortator PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS hortator EXPORT HortatorTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
set_target_properties(hortator_cli PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS hortator_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
set(verbs hortator_verb_bench hortator_verb_checkpoint hortator_verb_doctor hortator_verb_env hortator_verb_estimate-memory
          hortator_verb_test hortator_verb_tokenize)
foreach(verb IN LISTS verbs)
  set_property(TARGET ${verb} APPEND PROPERTY INSTALL_RPATH ${library_folders})
endforeach()
set_target_properties(${verbs} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS ${verbs} RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/hortator")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/jobs" DESTINATION "${CMAKE_INSTALL_DATADIR}/hortator" FILES_MATCHING PATTERN "*.in")
install(PROGRAMS "${PROJECT_SOURCE_DIR}/jobs/pbs_agent.sh" DESTINATION "${CMAKE_INSTALL_DATADIR}/hortator/jobs")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/share/new" DESTINATION "${CMAKE_INSTALL_DATADIR}/hortator")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/share/sites" DESTINATION "${CMAKE_INSTALL_DATADIR}/hortator")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/share/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/hortator" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(FILES "${PROJECT_BINARY_DIR}/include/hortator/version.hpp" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/hortator")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/share/doc/" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.cff" PATTERN "site" EXCLUDE)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/share/examples" DESTINATION "${CMAKE_INSTALL_DATADIR}/hortator")
# Links of README and of the project's pages lead from the source tree's root or from .github; here all documents lie in one folder.
file(RELATIVE_PATH examples "${CMAKE_INSTALL_FULL_DOCDIR}" "${CMAKE_INSTALL_FULL_DATADIR}/hortator/examples")
foreach(page README.md .github/CONTRIBUTING.md .github/SECURITY.md .github/CODE_OF_CONDUCT.md)
  file(READ "${PROJECT_SOURCE_DIR}/${page}" text)
  string(REGEX REPLACE "\\]\\((\\.\\./)?share/doc/" "](" text "${text}")
  string(REPLACE "](.github/" "](" text "${text}")
  string(REPLACE "](share/examples" "](${examples}" text "${text}")
  cmake_path(GET page FILENAME name)
  file(WRITE "${PROJECT_BINARY_DIR}/${name}" "${text}")
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${page}")
  install(FILES "${PROJECT_BINARY_DIR}/${name}" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
endforeach()
install(FILES LICENSE INSTALL DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# The completion of each shell, where the shell looks for it.
install(FILES "${PROJECT_SOURCE_DIR}/share/completion/hortator.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME hortator)
install(FILES "${PROJECT_SOURCE_DIR}/share/completion/_hortator" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES "${PROJECT_SOURCE_DIR}/share/completion/hortator.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")

# pkg-config, for projects without CMake.
file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
set(pc_cuda no)
if(HORTATOR_CUDA)
  set(pc_cuda "${CUDAToolkit_VERSION}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/share/cmake/hortator.pc.in" "${PROJECT_BINARY_DIR}/hortator.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/hortator.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# The CMake package, for the build tree and for an installation.
set(exported_cuda_version "")
if(HORTATOR_CUDA)
  set(exported_cuda_version "${CUDAToolkit_VERSION}")
endif()
foreach(part IN ITEMS PNG|PNG_FOUND JPEG|JPEG_FOUND CAIRO|HORTATOR_CAIRO)
  string(REPLACE "|" ";" part "${part}")
  list(GET part 0 name)
  list(GET part 1 found)
  string(TOLOWER "exported_${name}" name)
  set(${name} FALSE)
  if(${found})
    set(${name} TRUE)
  endif()
endforeach()
configure_package_config_file("${PROJECT_SOURCE_DIR}/share/cmake/HortatorConfig.cmake.in" "${PROJECT_BINARY_DIR}/HortatorConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/HortatorConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
export(EXPORT HortatorTargets NAMESPACE hortator:: FILE "${PROJECT_BINARY_DIR}/HortatorTargets.cmake")
file(COPY ${find_files} DESTINATION "${PROJECT_BINARY_DIR}")
install(EXPORT HortatorTargets NAMESPACE hortator:: DESTINATION "${package_dir}")
install(FILES "${PROJECT_BINARY_DIR}/HortatorConfig.cmake" "${PROJECT_BINARY_DIR}/HortatorConfigVersion.cmake" ${find_files}
        DESTINATION "${package_dir}")
