# The precompiled header of all sources that include LibTorch. There is only one, because it takes half a gigabyte on disk. With it an empty
# file compiles in 2.5 s instead of 12 s. GCC still instantiates LibTorch's templates in every source, so the presets use unity builds
# (CMAKE_UNITY_BUILD), and names in unnamed namespaces must differ within a room.
file(WRITE "${PROJECT_BINARY_DIR}/pch/pch.cpp" "")
add_library(hortator_pch OBJECT "${PROJECT_BINARY_DIR}/pch/pch.cpp")
target_link_libraries(hortator_pch PRIVATE hortator_flags LibTorch::cpu)
target_precompile_headers(hortator_pch PRIVATE
  <ATen/ATen.h> <torch/nn/module.h> <torch/optim/optimizer.h>
  <functional> <map> <memory> <optional> <span> <sstream> <string> <string_view> <utility> <vector>)

# Compiles programs with -fPIC, as libraries, instead of CMake's -fPIE: the precompiled header works with only one of the two.
function(hortator_use_precompiled_header target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM hortator_pch)
endfunction()
