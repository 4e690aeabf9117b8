#include "base/foreign_text.hpp"

#include <fstream>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a file is read whole, or not at all where it is too large or cannot be read") {
  std::ofstream("foreign") << std::string(100'000, 'x');
  CHECK(base::read_at_most("foreign", 100'000) == std::string(100'000, 'x'));
  CHECK_FALSE(base::read_at_most("foreign", 99'999).has_value());
  std::ofstream("foreign_empty").close();
  CHECK(base::read_at_most("foreign_empty", 0) == "");
  CHECK_FALSE(base::read_at_most("foreign_absent").has_value());
  CHECK_FALSE(base::read_at_most(".").has_value());
  CHECK_FALSE(base::read_at_most("/dev/zero", 1000).has_value());
}

TEST_CASE("levels are counted outside of texts") {
  CHECK(base::is_shallow("", 0));
  CHECK(base::is_shallow(R"({"a": [1, {"b": 2}]})", 3));
  CHECK_FALSE(base::is_shallow(R"({"a": [1, {"b": 2}]})", 2));
  CHECK(base::is_shallow(R"({"[[[[": "\"[[[["})", 1));
  CHECK(base::is_shallow("[][][]{}", 1));
  CHECK_FALSE(base::is_shallow(std::string(1'000'000, '[')));
}
