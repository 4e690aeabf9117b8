#include "accelerator/launched.hpp"

#include <hortator/error.hpp>

#include "base/text.hpp"

namespace hortator::accelerator {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& words, const std::string& hint) {
  throw UsageError({.what = text::concat(name, " is ", text::quote(words)), .hint = hint});
}

std::optional<std::int64_t> steps(const runtime::Variables& variables) {
  constexpr auto name = "HORTATOR_GRADIENT_ACCUMULATION_STEPS";
  const auto words = variables(name);
  if (!words || words->empty()) return std::nullopt;
  long long number = 0;
  if (!text::parse_integer(*words, number) || number < 1) refuse(name, *words, "set it to a number from 1 on");
  return number;
}

bool stays_on_cpu(const runtime::Variables& variables) {
  constexpr auto name = "HORTATOR_CPU";
  const auto words = variables(name);
  if (!words || words->empty()) return false;
  const auto said = text::parse_bool(*words);
  if (!said) refuse(name, *words, "set it to 1 or 0");
  return *said;
}

// Whoever asked for it counts on the memory that it would save.
void refuse_sharding(const runtime::Variables& variables) {
  const auto stage = variables("HORTATOR_ZERO_STAGE");
  if (!stage || stage->empty() || *stage == "0") return;
  throw UsageError({.what = "zero_stage " + *stage + " was asked for",
                    .why = "this version keeps parameters, gradients and moments whole on every rank",
                    .hint = "leave out --zero-stage (HORTATOR_ZERO_STAGE)"});
}

}  // namespace

AcceleratorOptions launched(AcceleratorOptions options, const runtime::Variables& variables) {
  refuse_sharding(variables);
  if (const auto number = steps(variables)) options.gradient_accumulation_steps = *number;
  options.cpu = options.cpu || stays_on_cpu(variables);
  return options;
}

}  // namespace hortator::accelerator
