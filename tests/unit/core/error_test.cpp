#include <hortator/error.hpp>

#include "support/catch.hpp"

TEST_CASE("an error reads: problem, why, hint") {
  const hortator::Error error(
      {.what = "batch size is 0", .why = "an epoch would never end", .hint = "ask for at least 1"});
  CHECK(std::string(error.what()) == "batch size is 0 (an epoch would never end); ask for at least 1");
  CHECK(std::string(hortator::Error({.what = "only this"}).what()) == "only this");
}

TEST_CASE("an error knows where it was found and on which rank") {
  hortator::Error error({.what = "x"});
  CHECK(std::string(error.where().file_name()).find("error_test.cpp") != std::string::npos);
  CHECK_FALSE(error.rank().has_value());
  CHECK(error.on_rank(3).rank() == 3);
}
