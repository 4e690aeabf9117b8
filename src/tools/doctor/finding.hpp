#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

/// What `hortator doctor` says: facts are gathered in one place, judged by pure functions in another.
namespace hortator::tools::doctor {

enum class Severity { ok, note, warning, error };

std::string_view to_string(Severity severity);

struct Finding {
  std::string check;  ///< what was looked at: "shared memory"
  Severity severity = Severity::ok;
  std::string says;         ///< what was found
  std::string remedy = "";  ///< what to do about it; empty where all is well
  int ranks = 1;            ///< how many ranks have found it

  friend bool operator==(const Finding&, const Finding&) = default;
};
using Findings = std::vector<Finding>;

/// Equal ones of several ranks as one each, in the order of their first; what some ranks call well is left out where
/// others have found something.
Findings merge(const Findings& all);

bool has_errors(const Findings& findings);

std::string for_people(const Findings& findings, int ranks);
/// {"ranks": 4, "errors": 0, "warnings": 1, "findings": [{"check": ..., "severity": ..., "says": ..., "remedy": ...,
/// "ranks": 4}]}
nlohmann::json for_programs(const Findings& findings, int ranks);

/// For the way between ranks.
std::string encode(const Findings& findings);
Findings decode(const std::string& text);

}  // namespace hortator::tools::doctor
