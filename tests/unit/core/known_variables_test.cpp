#include "core/environment/known_variables.hpp"

#include <algorithm>
#include <cstdlib>

#include "support/catch.hpp"

using namespace hortator;
using core::meant_variable;

TEST_CASE("a misspelt variable is taken for the nearest known one") {
  CHECK(meant_variable("HORTATOR_ZERO_STGE") == "HORTATOR_ZERO_STAGE");
  CHECK(meant_variable("HORTATOR_MIXED_PRECISON") == "HORTATOR_MIXED_PRECISION");
  CHECK(meant_variable("HORTATOR_TIMEOT") == "HORTATOR_TIMEOUT");
  CHECK(meant_variable("HORTATOR_RANK") == "HORTATOR_RANKS");
}

TEST_CASE("known variables, those of others, and names that resemble none are left alone") {
  for (const auto& name : core::known_variables()) CHECK(meant_variable("HORTATOR_" + name).empty());
  for (const auto* name : {"HORTATOR_TEST_TIMEOT", "HORTATOR_WITH_CUDA", "HORTATOR_CCACHE", "HORTATOR_OF_OUR_SITE",
                           "HORTATOR_", "PATH", "ZERO_STGE"})
    CHECK(meant_variable(name).empty());
}

TEST_CASE("the names of Hortator's variables in the environment are found") {
  setenv("HORTATOR_ZERO_STGE", "2", 1);
  const auto names = core::own_variables();
  unsetenv("HORTATOR_ZERO_STGE");
  CHECK(std::ranges::count(names, "HORTATOR_ZERO_STGE") == 1);
  CHECK(std::ranges::all_of(names, [](const std::string& name) { return name.starts_with("HORTATOR_"); }));
}
