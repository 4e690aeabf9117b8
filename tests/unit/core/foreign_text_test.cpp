#include "core/text/json.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("nesting is counted outside of strings") {
  CHECK(core::is_shallow("", 0));
  CHECK(core::is_shallow(R"({"a": [1, {"b": 2}]})", 3));
  CHECK_FALSE(core::is_shallow(R"({"a": [1, {"b": 2}]})", 2));
  CHECK(core::is_shallow(R"({"[[[[": "\"[[[["})", 1));
  CHECK(core::is_shallow("[][][]{}", 1));
  CHECK_FALSE(core::is_shallow(std::string(1'000'000, '[')));
}
