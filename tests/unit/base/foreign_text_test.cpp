#include "base/foreign_text.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("levels are counted outside of texts") {
  CHECK(base::is_shallow("", 0));
  CHECK(base::is_shallow(R"({"a": [1, {"b": 2}]})", 3));
  CHECK_FALSE(base::is_shallow(R"({"a": [1, {"b": 2}]})", 2));
  CHECK(base::is_shallow(R"({"[[[[": "\"[[[["})", 1));
  CHECK(base::is_shallow("[][][]{}", 1));
  CHECK_FALSE(base::is_shallow(std::string(1'000'000, '[')));
}
