#pragma once

#include <torch/version.h>

#include <cstddef>  // brings the macros of the C++ library

namespace hortator {

/// What a program was compiled with. Filled in where the program is compiled and compared when it starts, since neither
/// linker nor loader compares it: LibTorch has no stable C++ interface, and a C++ library has one for each of its ABIs.
/// Holds plain pointers only, whose layout is the same in all ABIs.
struct BuiltWith {
  const char* libtorch = TORCH_VERSION;
#if defined(_LIBCPP_VERSION)
  const char* cxx_library = "libc++";
#elif defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
  const char* cxx_library = "libstdc++";
#else
  const char* cxx_library = "libstdc++ with the ABI before C++11";
#endif
};

}  // namespace hortator
