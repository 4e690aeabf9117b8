#include "tools/env/report.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "core/text/text.hpp"

namespace hortator::tools::env {
namespace {

std::string plain(const nlohmann::json& fact) {
  if (fact.is_string()) return fact.get<std::string>();
  if (fact.is_boolean()) return fact.get<bool>() ? "yes" : "no";
  if (!fact.is_array()) return fact.dump();
  std::vector<std::string> parts;
  for (const auto& part : fact) parts.push_back(plain(part));
  return parts.empty() ? "none" : text::join(parts);
}

}  // namespace

std::string to_text(const Report& report) {
  std::size_t width = 0;
  for (const auto& section : report) {
    for (const auto& [name, fact] : section.facts) width = std::max(width, name.size());
  }
  std::ostringstream out;
  for (const auto& section : report) {
    out << section.title << '\n';
    for (const auto& [name, fact] : section.facts) {
      out << "  " << std::left << std::setw(static_cast<int>(width) + 2) << name << plain(fact) << '\n';
    }
  }
  return std::move(out).str();
}

nlohmann::json to_json(const Report& report) {
  auto object = nlohmann::json::object();
  for (const auto& section : report) {
    object[section.title] = nlohmann::json::object();
    for (const auto& [name, fact] : section.facts) object[section.title][name] = fact;
  }
  return object;
}

}  // namespace hortator::tools::env
