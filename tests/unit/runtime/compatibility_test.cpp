#include "runtime/compatibility.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a program that was compiled with this very LibTorch and C++ library is taken") {
  CHECK_NOTHROW(runtime::check_program({}));
}

TEST_CASE("a program that was compiled with another LibTorch is refused, naming both") {
  CHECK_THROWS_WITH(runtime::check_program({.libtorch = "2.14.1"}, {.libtorch = "2.15.0"}),
                    ContainsSubstring("compiled with LibTorch 2.14.1, its Hortator with LibTorch 2.15.0"));
}

TEST_CASE("a program of another C++ ABI is refused, naming both, before anything else is looked at") {
  CHECK_THROWS_WITH(
      runtime::check_program({.libtorch = "2.14.1", .cxx_library = "libc++"}, {.cxx_library = "libstdc++"}),
      ContainsSubstring("compiled with libc++, its Hortator with libstdc++ "));
}

TEST_CASE("the LibTorch that is loaded is the one that was compiled against, whatever a site adds to its version") {
  CHECK_NOTHROW(runtime::check_libtorch("2.15.0", "2.15.0"));
  CHECK_NOTHROW(runtime::check_libtorch("2.15.0a0+git1f6d2fe", "2.15.0"));
  CHECK_THROWS_WITH(runtime::check_libtorch("2.15.0", "2.15.1"),
                    ContainsSubstring("loaded is 2.15.1") && ContainsSubstring("built with LibTorch 2.15.0"));
}
