#pragma once

#include <hortator/detail/built_with.hpp>
#include <string_view>

/// Whether the parts of this process were made for each other. Each throws, naming both versions, when they were not.
namespace hortator::runtime {

/// A program, and this library.
void check_program(const BuiltWith& program, const BuiltWith& library = {});

/// The LibTorch that was compiled against, and the one that is loaded.
void check_libtorch(std::string_view built, std::string_view loaded);

}  // namespace hortator::runtime
