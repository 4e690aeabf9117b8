#include "runtime/ending/late_failure.hpp"

#include <stdexcept>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("the first late failure is thrown, once") {
  CHECK_NOTHROW(runtime::throw_late_failure());
  runtime::note_late_failure(std::make_exception_ptr(std::runtime_error("the first")));
  runtime::note_late_failure(std::make_exception_ptr(std::runtime_error("the second")));
  CHECK_THROWS_WITH(runtime::throw_late_failure(), "the first");
  CHECK_NOTHROW(runtime::throw_late_failure());
}
