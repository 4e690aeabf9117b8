#include "step/precision/precision.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <string>
#include <vector>

#include "core/text/text.hpp"

namespace hortator {
namespace {

struct PrecisionName {
  Precision precision;
  const char* name;
};
constexpr std::array<PrecisionName, 4> names = {
    {{Precision::no, "no"}, {Precision::fp16, "fp16"}, {Precision::bf16, "bf16"}, {Precision::fp8, "fp8"}}};

std::optional<Precision> from_environment(const core::Variables& variables) {
  for (const auto* variable : {"HORTATOR_MIXED_PRECISION", "ACCELERATE_MIXED_PRECISION"}) {
    const auto name = variables(variable);
    if (!name || name->empty()) continue;
    const auto* const found =
        std::find_if(names.begin(), names.end(), [&](const PrecisionName& one) { return one.name == *name; });
    if (found != names.end()) return found->precision;
    const std::vector<std::string> known = {"no", "fp16", "bf16"};
    throw UsageError({.what = text::concat(variable, ": invalid precision ", text::quote(*name)),
                      .why = "it selects the type in which models compute",
                      .hint = "use " + text::join(known)});
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Precision precision) { return names[static_cast<std::size_t>(precision)].name; }

namespace step {

Precision choose_precision(std::optional<Precision> asked, const core::Variables& variables) {
  const auto of_environment = from_environment(variables);  // an unknown name is an error also where it has no effect
  const auto chosen = asked ? *asked : of_environment.value_or(Precision::no);
  if (chosen != Precision::fp8) return chosen;
  throw UsageError({.what = "mixed_precision fp8 is not available",
                    .why = "LibTorch has no autocast to 8 bits; the libraries that have one need Python",
                    .hint = "use bf16"});
}

std::optional<c10::ScalarType> autocast_type(Precision precision) {
  if (precision == Precision::fp16) return at::kHalf;
  if (precision == Precision::bf16) return at::kBFloat16;
  return std::nullopt;
}

}  // namespace step
}  // namespace hortator
