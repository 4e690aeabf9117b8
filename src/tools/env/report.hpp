#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

/// A report of named facts in sections, as text and as JSON.
namespace hortator::tools::env {

struct Section {
  std::string title;
  std::vector<std::pair<std::string, nlohmann::json>> facts = {};
};
using Report = std::vector<Section>;

std::string to_text(const Report& report);
nlohmann::json to_json(const Report& report);

}  // namespace hortator::tools::env
