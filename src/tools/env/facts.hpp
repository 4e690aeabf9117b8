#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Selects the environment variables for a bug report.
namespace hortator::tools::env {

/// Variables of threads, devices, launchers, schedulers, transports and Hortator.
bool is_relevant(std::string_view name);

/// The relevant variables of `environment` ("NAME=value", terminated by nullptr). Values of secrets become "(not
/// shown)".
std::map<std::string, std::string> relevant_variables(const char* const* environment);

struct Section {
  std::string title;
  std::vector<std::pair<std::string, nlohmann::json>> facts = {};
  bool has_foreign_names = false;  ///< its names are those of variables or files
};
using Report = std::vector<Section>;

std::string to_text(const Report& report);
/// With names such as "build_type".
nlohmann::json to_json(const Report& report);

/// The facts that a bug report needs. Works without mpirun and without a GPU.
Report gather_facts();

}  // namespace hortator::tools::env
