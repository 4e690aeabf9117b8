#pragma once

#include <torch/version.h>

#include <cstddef>  // brings the macros of the C++ library

namespace hortator {

/// What a program was compiled with. Taken down where it is compiled and compared where it starts, because neither the
/// linker nor the loader does: LibTorch has no stable C++ interface, and a C++ library has one for each of its ABIs.
/// Plain pointers, the same in all of them.
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
