#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/identity/ending_record.hpp"

/// The rules that find the class of a failure from one record. Pure.
namespace hortator::tools {

enum class Decision { retry, stop };
std::string_view to_string(Decision decision);

/// When `stop` holds: an error that only one rank of many sees may be one of its node.
enum class StopScope { always, when_shared };

struct Rule {
  std::string_view id;           ///< "disk-full"
  std::string_view error_class;  ///< "space"
  Decision decision = Decision::retry;
  std::string_view reason;
  StopScope scope = StopScope::always;
  bool is_consequence = false;               ///< usually follows from the end of another rank
  bool blames_host = false;                  ///< the node is suspect
  std::vector<std::string_view> kinds = {};  ///< any of them; empty: any
  std::vector<int> signals = {};             ///< any of them; empty: any
  std::vector<std::string_view> types = {};  ///< any of these in the type's name; empty: any
  std::vector<std::string_view> texts = {};  ///< any of these in the problem, in small letters; empty: any
  std::vector<std::string_view> also = {};   ///< and any of these
};

/// All rules, in the order in which they are tried. The last one matches everything.
std::span<const Rule> rules();

/// The first rule that matches a rank's record.
const Rule& rule_of(const runtime::EndingRecord& ending);

/// The rule for what a launcher reports of a job whose ranks have left no record; null if none matches.
/// `has_begun`: its program had begun.
const Rule* launcher_rule(int exit_code, std::string_view report, bool has_begun);

/// The rule of that id, which must exist.
const Rule& rule_named(std::string_view id);

/// Whether the type is one that a program's own error has: an index, a shape, a logic error.
bool is_program_type(std::string_view type);

/// Whether "oom_kill in FILE: 4 before the run, 5 now" in the text shows that the kernel has killed for memory.
bool shows_oom_kill(std::string_view problem);

}  // namespace hortator::tools
