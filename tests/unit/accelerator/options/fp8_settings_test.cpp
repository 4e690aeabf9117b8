// What the launcher's variables choose for Precision::fp8.
#include "accelerator/options/fp8_settings.hpp"

#include <map>
#include <optional>
#include <string>

#include "support/catch.hpp"

using namespace hortator;
using Catch::Matchers::Contains;

namespace {

Fp8Options settings(const std::map<std::string, std::string>& set) {
  return accelerator::fp8_settings([&](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace

TEST_CASE("the launcher's variables choose the options of fp8, and those that are not set stay") {
  const Fp8Options none = settings({}), builtin;
  CHECK(none.scaling == builtin.scaling);
  CHECK(none.format == builtin.format);
  CHECK(none.amax_history_length == builtin.amax_history_length);
  CHECK(none.amax_most_recent == builtin.amax_most_recent);
  CHECK(none.margin == builtin.margin);
  CHECK(none.during_evaluation == builtin.during_evaluation);
  CHECK(settings({{"HORTATOR_FP8_SCALING", "delayed"}}).scaling == Fp8Scaling::delayed);
  CHECK(settings({{"HORTATOR_FP8_SCALING", "dynamic"}}).scaling == Fp8Scaling::dynamic);
  CHECK(settings({{"HORTATOR_FP8_FORMAT", "E4M3"}}).format == Fp8Format::e4m3);
  CHECK(settings({{"HORTATOR_FP8_FORMAT", "HYBRID"}}).format == Fp8Format::hybrid);
  CHECK(settings({{"HORTATOR_FP8_AMAX_HISTORY_LEN", "7"}}).amax_history_length == 7);
  CHECK(!settings({{"HORTATOR_FP8_AMAX_COMPUTE_ALGO", "max"}}).amax_most_recent);
  CHECK(settings({{"HORTATOR_FP8_AMAX_COMPUTE_ALGO", "most_recent"}}).amax_most_recent);
  CHECK(settings({{"HORTATOR_FP8_MARGIN", "16"}}).margin == 16);
  CHECK(settings({{"HORTATOR_FP8_USE_AUTOCAST_DURING_EVAL", "true"}}).during_evaluation);
}

TEST_CASE("values of fp8's variables that cannot be had are errors that name the variable") {
  for (const auto& [name, value] : std::map<std::string, std::string>{{"HORTATOR_FP8_SCALING", "static"},
                                                                      {"HORTATOR_FP8_FORMAT", "E5M2"},
                                                                      {"HORTATOR_FP8_AMAX_HISTORY_LEN", "0"},
                                                                      {"HORTATOR_FP8_AMAX_COMPUTE_ALGO", "mean"},
                                                                      {"HORTATOR_FP8_USE_AUTOCAST_DURING_EVAL", "2"}}) {
    INFO(name);
    CHECK_THROWS_WITH(settings({{name, value}}), Contains(name) && Contains(value));
  }
  for (const auto* margin : {"-1", "17", "1.5", "large"}) {
    INFO(margin);
    CHECK_THROWS_WITH(settings({{"HORTATOR_FP8_MARGIN", margin}}), Contains("HORTATOR_FP8_MARGIN") && Contains(margin));
  }
}
