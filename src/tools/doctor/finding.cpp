#include "tools/doctor/finding.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>

#include "core/text/text.hpp"

namespace hortator::tools::doctor {
namespace {

constexpr std::array<std::string_view, 4> severity_names = {"ok", "note", "warning", "error"};

bool is_same(const Finding& a, const Finding& b) {
  return a.check == b.check && a.severity == b.severity && a.message == b.message && a.remedy == b.remedy;
}

nlohmann::json as_json(const Finding& finding) {
  return {{"check", finding.check},
          {"severity", to_string(finding.severity)},
          {"says", finding.message},
          {"remedy", finding.remedy},
          {"ranks", finding.ranks}};
}

Severity severity_named(const std::string& name) {
  return static_cast<Severity>(std::find(severity_names.begin(), severity_names.end(), name) - severity_names.begin());
}

auto count(const Findings& findings, Severity severity) {
  return std::count_if(findings.begin(), findings.end(),
                       [severity](const Finding& finding) { return finding.severity == severity; });
}

}  // namespace

std::string_view to_string(Severity severity) { return severity_names.at(static_cast<std::size_t>(severity)); }

Findings merge(const Findings& all) {
  Findings merged;
  for (const auto& finding : all) {
    const auto known =
        std::find_if(merged.begin(), merged.end(), [&](const Finding& other) { return is_same(finding, other); });
    if (known != merged.end()) {
      known->ranks += finding.ranks;
    } else {
      merged.push_back(finding);
    }
  }
  std::erase_if(merged, [&all](const Finding& finding) {
    return finding.severity == Severity::ok && std::any_of(all.begin(), all.end(), [&](const Finding& other) {
             return other.check == finding.check && other.severity != Severity::ok;
           });
  });
  return merged;
}

bool has_errors(const Findings& findings) { return count(findings, Severity::error) > 0; }

std::string to_text(const Findings& findings, int ranks) {
  std::size_t width = 0;
  for (const auto& finding : findings) width = std::max(width, finding.check.size());
  std::ostringstream out;
  for (const auto& finding : findings) {
    const auto name = std::string(to_string(finding.severity));
    out << std::left << std::setw(9) << name << std::setw(static_cast<int>(width) + 2) << finding.check
        << finding.message;
    if (finding.severity != Severity::ok && ranks > 1)
      out << " (" << finding.ranks << " of " << text::count(ranks, "rank") << ")";
    out << '\n';
    if (!finding.remedy.empty()) out << std::string(width + 11, ' ') << "remedy: " << finding.remedy << '\n';
  }
  out << text::count(count(findings, Severity::error), "error") << ", "
      << text::count(count(findings, Severity::warning), "warning") << '\n';
  return std::move(out).str();
}

nlohmann::json to_json(const Findings& findings, int ranks) {
  auto list = nlohmann::json::array();
  for (const auto& finding : findings) list.push_back(as_json(finding));
  return {{"ranks", ranks},
          {"errors", count(findings, Severity::error)},
          {"warnings", count(findings, Severity::warning)},
          {"findings", list}};
}

std::string encode(const Findings& findings) {
  auto list = nlohmann::json::array();
  for (const auto& finding : findings) list.push_back(as_json(finding));
  // Messages of the system need not be UTF-8.
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Findings decode(const std::string& text) {
  Findings findings;
  for (const auto& entry : nlohmann::json::parse(text)) {
    findings.push_back({.check = entry["check"],
                        .severity = severity_named(entry["severity"]),
                        .message = entry["says"],
                        .remedy = entry["remedy"],
                        .ranks = entry["ranks"]});
  }
  return findings;
}

}  // namespace hortator::tools::doctor
