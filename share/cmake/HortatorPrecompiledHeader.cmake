# The one precompiled header of all that sees LibTorch (half a gigabyte on disk, so only one): an empty file that starts
# from it compiles in 2.5 s in place of 12 s. GCC instantiates LibTorch's templates anew in each: the presets compile
# several sources as one (CMAKE_UNITY_BUILD), so names in unnamed namespaces must differ within a room.
file(WRITE "${PROJECT_BINARY_DIR}/pch/pch.cpp" "")
add_library(hortator_pch OBJECT "${PROJECT_BINARY_DIR}/pch/pch.cpp")
target_link_libraries(hortator_pch PRIVATE hortator_flags LibTorch::cpu)
target_precompile_headers(hortator_pch PRIVATE
  <ATen/ATen.h> <torch/nn/module.h> <torch/optim/optimizer.h>
  <functional> <map> <memory> <optional> <span> <sstream> <string> <string_view> <utility> <vector>)

# Programs are compiled as libraries are (-fPIC in place of CMake's -fPIE): the header serves only one of the two.
function(hortator_use_precompiled_header target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM hortator_pch)
endfunction()
