#pragma once

#include <string>
#include <vector>

#include "core/text/text.hpp"
#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// The entry of `choices` for the type that `key` names. Throws UsageError with the nearest type.
template <typename Choices>
const auto& choice_of(const Section& model, const char* key, const std::string& type, const Choices& choices) {
  if (const auto found = choices.find(type); found != choices.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, choice] : choices) known.push_back(name);
  throw model.error(key, text::concat("unknown type ", text::quote(type)), text::suggestion(type, known));
}

}  // namespace hortator::simulation
