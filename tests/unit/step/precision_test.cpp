#include "step/precision/precision.hpp"

#include <hortator/error.hpp>
#include <map>

#include "support/catch.hpp"

using namespace hortator;

namespace {

Precision chosen(std::optional<Precision> asked, const std::map<std::string, std::string>& environment = {}) {
  return step::choose_precision(asked, [&](const char* name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace

TEST_CASE("precision: the program's choice, then Hortator's variable, then Accelerate's, then none") {
  const std::map<std::string, std::string> both = {{"HORTATOR_MIXED_PRECISION", "fp16"},
                                                   {"ACCELERATE_MIXED_PRECISION", "bf16"}};
  CHECK(chosen({}) == Precision::no);
  CHECK(chosen({}, both) == Precision::fp16);
  CHECK(chosen({}, {{"ACCELERATE_MIXED_PRECISION", "bf16"}}) == Precision::bf16);
  CHECK(chosen({}, {{"HORTATOR_MIXED_PRECISION", ""}, {"ACCELERATE_MIXED_PRECISION", "bf16"}}) == Precision::bf16);
  CHECK(chosen(Precision::bf16, both) == Precision::bf16);
  CHECK(chosen(Precision::no, both) == Precision::no);
}

TEST_CASE("precision: fp8 can be chosen, and unknown names throw, whatever their source") {
  CHECK(chosen(Precision::fp8) == Precision::fp8);
  CHECK(chosen({}, {{"ACCELERATE_MIXED_PRECISION", "fp8"}}) == Precision::fp8);
  CHECK_THROWS_WITH(chosen({}, {{"HORTATOR_MIXED_PRECISION", "bf15"}}),
                    ContainsSubstring("HORTATOR_MIXED_PRECISION: expected one of no, fp16, bf16, fp8, got 'bf15'"));
}

TEST_CASE("precision: names and autocast types") {
  CHECK(to_string(Precision::no) == "no");
  CHECK(to_string(Precision::fp16) == "fp16");
  CHECK(to_string(Precision::bf16) == "bf16");
  CHECK(to_string(Precision::fp8) == "fp8");
  CHECK(step::autocast_type(Precision::no) == std::nullopt);
  CHECK(step::autocast_type(Precision::fp16) == at::kHalf);
  CHECK(step::autocast_type(Precision::bf16) == at::kBFloat16);
}
