#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

/// A report of named facts in sections, for people and for programs.
namespace hortator::tools::env {

struct Section {
  std::string title;
  std::vector<std::pair<std::string, nlohmann::json>> facts = {};
};
using Report = std::vector<Section>;

std::string for_people(const Report& report);
nlohmann::json for_programs(const Report& report);

}  // namespace hortator::tools::env
