# Precompiled headers, by what a source includes:
#   torch   LibTorch's tensors, modules and optimizers: rooms with LibTorch, examples, benchmarks
#   plain   the standard library, JSON, Boost and YAML: rooms without LibTorch, such as the command
#   tests   LibTorch, Catch2 and the public headers: tests (defined in tests/, with their compiler flags)
# They hold headers of other projects, and those of ours that nearly every user of them includes.
#
# Clang reads of a precompiled header only what a source uses, and finds LibTorch's templates in it instantiated
# (CMAKE_PCH_INSTANTIATE_TEMPLATES). GCC reads all of it, and instantiates the templates again in every source: half a gigabyte and 2.5 s instead
# of 12 s for an empty file. So the presets use unity builds (CMAKE_UNITY_BUILD), and names in unnamed namespaces must differ within a room.
set(CMAKE_PCH_INSTANTIATE_TEMPLATES ON)

# hortator_precompile(kind LINKS target... HEADERS header...): defines the object library hortator_pch_<kind>, which holds the header.
function(hortator_precompile kind)
  cmake_parse_arguments(PARSE_ARGV 1 pch "" "" "LINKS;HEADERS")
  set(source "${PROJECT_BINARY_DIR}/pch/${kind}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "")
  add_library(hortator_pch_${kind} OBJECT "${source}")
  target_link_libraries(hortator_pch_${kind} PRIVATE hortator_flags ${pch_LINKS})
  target_precompile_headers(hortator_pch_${kind} PRIVATE ${pch_HEADERS})
endfunction()

set(standard <algorithm> <array> <chrono> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <set> <span> <sstream>
             <string> <string_view> <thread> <tuple> <utility> <variant> <vector>)
set(libtorch <ATen/ATen.h> <torch/nn/module.h> <torch/optim/optimizer.h>)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(libtorch "${PROJECT_SOURCE_DIR}/include/hortator/detail/precompiled_torch.hpp" <nlohmann/json.hpp>)
endif()
hortator_precompile(torch LINKS LibTorch::cpu nlohmann_json::nlohmann_json HEADERS ${libtorch} ${standard})
hortator_precompile(plain LINKS hortator_yaml Boost::program_options nlohmann_json::nlohmann_json
  HEADERS <nlohmann/json.hpp> <boost/program_options.hpp> <yaml-cpp/yaml.h> ${standard})

# hortator_use_precompiled_header(target [kind]): kind is torch if it is not given. Compiles programs with -fPIC, as libraries, instead of
# CMake's -fPIE: a precompiled header works with only one of the two.
function(hortator_use_precompiled_header target)
  set(kind torch)
  if(ARGC GREATER 1)
    set(kind ${ARGV1})
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM hortator_pch_${kind})
endfunction()
