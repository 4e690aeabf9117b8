#include "runtime/compatibility.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::runtime {
namespace {

// Builds of a site's own name more: "2.15.0a0+git1f6d2fe".
std::string_view release(std::string_view version) {
  return version.substr(0, version.find_first_not_of("0123456789."));
}

}  // namespace

void check_program(const BuiltWith& program, const BuiltWith& library) {
  if (std::string_view(program.cxx_library) != library.cxx_library) {
    throw Error({.what = text::concat("This program was compiled with ", program.cxx_library, ", its Hortator with ",
                                      library.cxx_library),
                 .why = "what they pass to each other differs in memory",
                 .hint = "compile both with the same -stdlib and _GLIBCXX_USE_CXX11_ABI"});
  }
  if (std::string_view(program.libtorch) != library.libtorch) {
    throw Error({.what = text::concat("This program was compiled with LibTorch ", program.libtorch,
                                      ", its Hortator with LibTorch ", library.libtorch),
                 .why = "their C++ interfaces differ",
                 .hint = "load the Hortator that the program was built with, or build the program again"});
  }
}

void check_libtorch(std::string_view built, std::string_view loaded) {
  if (release(built) == release(loaded)) return;
  throw Error({.what = text::concat("The LibTorch that was loaded is ", loaded,
                                    ", this Hortator was built with LibTorch ", built),
               .why = "their C++ interfaces differ",
               .hint = "take LibTorch's folder out of LD_LIBRARY_PATH: Hortator finds its own"});
}

}  // namespace hortator::runtime
