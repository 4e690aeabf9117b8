#pragma once

#include <hortator/detail/built_with.hpp>
#include <string_view>

/// Checks that the parts of this process are compatible. Each function throws otherwise; the error names both versions.
namespace hortator::runtime {

/// The headers that a program was compiled with, and this library.
void check_program(const BuiltWith& program, const BuiltWith& library = {});

/// The LibTorch that this library was compiled against, and the one that is loaded.
void check_libtorch(std::string_view built, std::string_view loaded);

}  // namespace hortator::runtime
