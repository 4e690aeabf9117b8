# Finds LibTorch and defines imported targets. TorchConfig.cmake is not used: it requires the whole CUDA toolkit even for a CPU build.
#   LibTorch::cpu   libtorch_cpu and c10, which is all that a CPU build needs
#   LibTorch::KIND  also libtorch_KIND and c10_KIND, for each kind of devices that this LibTorch has (LibTorch_HAS_KIND): cuda, hip (ROCm), xpu
# Sets LibTorch_ROOT_DIR, LibTorch_SOURCE (how it was found), LibTorch_VERSION, LibTorch_SITE (its parent, the site-packages folder of a wheel).
include("${CMAKE_CURRENT_LIST_DIR}/libtorch_search.cmake")
if(NOT LibTorch_ROOT_DIR)
  hortator_search_libtorch("${CMAKE_CURRENT_LIST_DIR}/../.." LibTorch_FOUND_AT)
  set(LibTorch_ROOT_DIR "${LibTorch_FOUND_AT_ROOT}")
  set(LibTorch_SOURCE "${LibTorch_FOUND_AT_SOURCE}")
endif()
if(LibTorch_ROOT_DIR)
  hortator_torch_version("${LibTorch_ROOT_DIR}" LibTorch_VERSION)
  cmake_path(GET LibTorch_ROOT_DIR PARENT_PATH LibTorch_SITE)
endif()
set(libtorch_kinds "")
file(GLOB libraries "${LibTorch_ROOT_DIR}/lib/libc10_*.so")
foreach(library IN LISTS libraries)
  string(REGEX REPLACE ".*/libc10_(.*)[.]so" "\\1" kind "${library}")
  if(EXISTS "${LibTorch_ROOT_DIR}/lib/libtorch_${kind}.so")
    string(TOUPPER ${kind} upper)
    set(LibTorch_HAS_${upper} TRUE)
    list(APPEND libtorch_kinds ${kind})
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_ROOT_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE
    "LibTorch is needed (tensors and autograd). Set LIBTORCH to an unpacked LibTorch, activate a Python that has torch, or run ./jobs/quickstart.sh, which downloads it into .deps/.")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  set(include_dirs "${LibTorch_ROOT_DIR}/include" "${LibTorch_ROOT_DIR}/include/torch/csrc/api/include")
  foreach(library c10 torch_cpu)
    add_library(LibTorch::${library} SHARED IMPORTED)
    set_target_properties(LibTorch::${library} PROPERTIES
      IMPORTED_LOCATION "${LibTorch_ROOT_DIR}/lib/lib${library}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${include_dirs}")
  endforeach()
  # The linker need not find LibTorch's own dependencies (gomp, cudart, cupti): its RPATH does at run time.
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  target_link_libraries(LibTorch::cpu INTERFACE LibTorch::torch_cpu LibTorch::c10)
  target_link_options(LibTorch::cpu INTERFACE "LINKER:--allow-shlib-undefined")
  foreach(kind IN LISTS libtorch_kinds)
    foreach(library c10_${kind} torch_${kind})
      add_library(LibTorch::${library} SHARED IMPORTED)
      set_target_properties(LibTorch::${library} PROPERTIES IMPORTED_LOCATION "${LibTorch_ROOT_DIR}/lib/lib${library}.so")
    endforeach()
    add_library(LibTorch::${kind} INTERFACE IMPORTED)
    # No symbol refers to libtorch_cuda (its kernels register themselves), so --as-needed must not drop it.
    target_link_options(LibTorch::${kind} INTERFACE "LINKER:--no-as-needed,${LibTorch_ROOT_DIR}/lib/libtorch_${kind}.so,--as-needed")
    target_link_libraries(LibTorch::${kind} INTERFACE LibTorch::cpu LibTorch::c10_${kind} LibTorch::torch_${kind})
  endforeach()
endif()
