#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

/// The findings of `hortator doctor`: *_facts.cpp gather facts, pure functions in *_verdicts.cpp judge them.
namespace hortator::tools::doctor {

enum class Severity { ok, note, warning, error };

std::string_view to_string(Severity severity);

struct Finding {
  std::string check;  ///< the subject: "shared memory"
  Severity severity = Severity::ok;
  std::string message;      ///< what was found
  std::string remedy = "";  ///< how to fix it; empty if nothing is wrong
  int ranks = 1;            ///< the number of ranks with this finding

  friend bool operator==(const Finding&, const Finding&) = default;
};
using Findings = std::vector<Finding>;

/// Merges equal findings of several ranks, in order of first occurrence. An `ok` is dropped if another rank has a
/// problem with the same check.
Findings merge(const Findings& all);

bool has_errors(const Findings& findings);

std::string to_text(const Findings& findings, int ranks);
/// {"ranks": 4, "errors": 0, "warnings": 1, "findings": [{"check": ..., "severity": ..., "says": ..., "remedy": ...,
/// "ranks": 4}]}
nlohmann::json to_json(const Findings& findings, int ranks);

/// Serialisation for messages between ranks.
std::string encode(const Findings& findings);
Findings decode(const std::string& text);

}  // namespace hortator::tools::doctor
