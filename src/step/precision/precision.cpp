#include "step/precision/precision.hpp"

#include <array>

#include "core/environment/setting_key.hpp"

namespace hortator {
namespace {

constexpr std::array<std::string_view, 4> names = {"no", "fp16", "bf16", "fp8"};

std::optional<Precision> from_environment(const core::Variables& variables) {
  const auto set = core::first_set(variables, {"HORTATOR_MIXED_PRECISION", "ACCELERATE_MIXED_PRECISION"});
  if (!set) return std::nullopt;
  return static_cast<Precision>(core::read_choice(core::program_setting("mixed_precision"), *set));
}

}  // namespace

std::string_view to_string(Precision precision) { return names[static_cast<std::size_t>(precision)]; }

namespace step {

Precision choose_precision(std::optional<Precision> asked, const core::Variables& variables) {
  const auto of_environment = from_environment(variables);  // an unknown name is an error also where it has no effect
  return asked ? *asked : of_environment.value_or(Precision::no);
}

std::optional<c10::ScalarType> autocast_type(Precision precision) {
  if (precision == Precision::fp16) return at::kHalf;
  if (precision == Precision::bf16 || precision == Precision::fp8) return at::kBFloat16;
  return std::nullopt;
}

}  // namespace step
}  // namespace hortator
