#include "launch/launcher_output.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <utility>

namespace hortator::launching {
namespace {

struct Match {
  enum class Outcome { none, possible, certain, complete };
  Outcome outcome = Outcome::none;
  std::size_t length = 0;  ///< of a complete report
};
using enum Match::Outcome;

// Where a report ends is found within these, however many bytes come at once.
constexpr std::size_t max_report_bytes = 4096;
constexpr std::size_t max_first_line_bytes = 200;

// The line of dashes above and below a report.
std::string_view rule() {
  static const auto line = std::string(74, '-') + '\n';
  return line;
}

// First lines, after the launcher's name in most of them.
bool begins_report(std::string_view line) {
  static constexpr std::array<std::string_view, 6> texts = {"Primary job  terminated normally, but ",
                                                            "MPI_ABORT was invoked on rank ",
                                                            " noticed that process rank ",
                                                            " detected that one or more processes exited ",
                                                            " has exited due to process rank ",
                                                            " has lost communication with a remote daemon"};
  return std::ranges::any_of(texts, [&](std::string_view text) {
    const auto at = line.find(text);
    return text.front() == ' ' ? at != line.npos && at > 0 && at == line.find(' ') : at == 0;
  });
}

Match match_framed(std::string_view text) {
  if (!text.starts_with(rule())) return {rule().starts_with(text) ? possible : none};
  const auto body = text.substr(rule().size());
  const auto line_end = body.find('\n');
  if (line_end >= max_first_line_bytes) return {body.size() < max_first_line_bytes ? possible : none};
  if (!begins_report(body.substr(0, line_end))) return {none};
  const auto below = body.find(rule(), line_end);
  if (below == body.npos || below + rule().size() > max_report_bytes)
    return {body.size() < max_report_bytes ? certain : none};
  return {complete, rule().size() + below + rule().size()};
}

// Reads a text from front to back as long as it fits.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Scanner& literal(std::string_view expected) {
    for (const char c : expected) one([c](char got) { return got == c; });
    return *this;
  }
  template <typename Is>
  Scanner& some(const Is& is) {
    one(is);
    while (outcome_ == certain && at_ < text_.size() && is(text_[at_])) ++at_;
    return *this;
  }
  Match::Outcome outcome() const { return outcome_; }  ///< certain: all of it fits

 private:
  template <typename Is>
  void one(const Is& is) {
    if (outcome_ != certain) return;
    if (at_ == text_.size()) {
      outcome_ = possible;
    } else if (!is(text_[at_++])) {
      outcome_ = none;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Match::Outcome outcome_ = certain;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_host(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-'; }

Match whole_line(std::string_view text, Match::Outcome beginning) {
  if (beginning != certain) return {beginning};
  const auto end = text.find('\n');
  if (end >= max_report_bytes) return {text.size() < max_report_bytes ? certain : none};
  return {complete, end + 1};
}

// "[n1:13920] [[23198,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file ...\n"
Match match_error_line(std::string_view text) {
  Scanner scanner(text);
  scanner.literal("[").some(is_host).literal(":").some(is_digit).literal("] [[").some(is_digit).literal(",");
  scanner.some(is_digit).literal("],").some(is_digit).literal("] ORTE_ERROR_LOG: ");
  return whole_line(text, scanner.outcome());
}

// "[n1:13920] 1 more process has sent help message help-mpi-api.txt / mpi-abort\n", and the line after it
Match match_help_line(std::string_view text) {
  Match::Outcome best = none;
  for (const std::string_view rest : {"process has sent help message ", "processes have sent help message "}) {
    Scanner scanner(text);
    scanner.literal("[").some(is_host).literal(":").some(is_digit).literal("] ").some(is_digit).literal(" more ");
    scanner.literal(rest);
    if (scanner.outcome() != none) best = scanner.outcome();
  }
  for (const std::string_view name : {"orte", "prte"}) {
    Scanner scanner(text);
    scanner.literal("[").some(is_host).literal(":").some(is_digit).literal("] Set MCA parameter \"").literal(name);
    scanner.literal("_base_help_aggregate\"");
    if (scanner.outcome() != none) best = scanner.outcome();
  }
  return whole_line(text, best);
}

Match match_bracketed(std::string_view text) {
  const auto error = match_error_line(text);
  return error.outcome != none ? error : match_help_line(text);
}

Match match_report(std::string_view text, char before) {
  if (text.front() == '-' && before != '-') return match_framed(text);
  if (text.front() == '[') return match_bracketed(text);
  return {none};
}

}  // namespace

std::optional<KilledRank> parse_killed_rank(std::string_view report) {
  static const std::regex form(
      R"(noticed that process rank (\d{1,9}) with PID (\d{1,9})\s+on node (\S+)\s+exited on\s+signal (\d{1,3})\b)");
  static const std::regex improper(
      R"(has exited due to process rank (\d{1,9}) with PID (\d{1,9})\s+on\s+node (\S+)\s+exiting improperly)");
  std::match_results<std::string_view::const_iterator> found;
  const bool is_signalled = std::regex_search(report.begin(), report.end(), found, form);
  if (!is_signalled && !std::regex_search(report.begin(), report.end(), found, improper)) return {};
  return KilledRank{.rank = std::stoi(found.str(1)),
                    .pid = std::stol(found.str(2)),
                    .host = found.str(3),
                    .signal = is_signalled ? std::stoi(found.str(4)) : 0};
}

std::optional<KilledRank> parse_srun_line(std::string_view line) {
  static constexpr std::array<std::pair<std::string_view, int>, 6> signals = {{{"Killed", 9},
                                                                               {"Segmentation fault", 11},
                                                                               {"Bus error", 7},
                                                                               {"Aborted", 6},
                                                                               {"Floating point exception", 8},
                                                                               {"Illegal instruction", 4}}};
  static const std::regex form(R"(^srun: error: (\S+): task (\d{1,9}): ([A-Z][a-z ]+?)( \(core dumped\))?\s*$)");
  std::match_results<std::string_view::const_iterator> found;
  if (!line.starts_with("srun: error: ") || !std::regex_search(line.begin(), line.end(), found, form)) return {};
  const auto signal = std::ranges::find(signals, found.str(3), [](const auto& pair) { return pair.first; });
  if (signal == signals.end()) return {};
  return KilledRank{.rank = std::stoi(found.str(2)), .host = found.str(1), .signal = signal->second};
}

void LauncherOutput::observe(char c) {
  constexpr std::size_t max_line = 300;
  if (c != '\n') {
    if (line_.size() < max_line) line_ += c;
    return;
  }
  if (!killed_task_) killed_task_ = parse_srun_line(line_);
  has_failure_line_ = has_failure_line_ || line_.find("hortator: rank ") != line_.npos;
  line_.clear();
}

std::string LauncherOutput::take(std::string_view bytes) {
  held_ += bytes;
  is_certain_ = false;
  std::string passed;
  std::size_t at = 0;
  while (at < held_.size()) {
    const auto match = match_report(std::string_view(held_).substr(at), last_);
    if (match.outcome == complete) {
      reports_.push_back(held_.substr(at, match.length));
      at += match.length;
      is_after_report_ = true;
      continue;
    }
    is_certain_ = match.outcome == certain;
    if (match.outcome != none) break;
    last_ = held_[at++];
    observe(last_);
    // Open MPI 5 ends its reports with a zero byte.
    if (last_ != '\0' || !std::exchange(is_after_report_, false)) passed += last_;
    is_after_report_ = false;
  }
  held_.erase(0, at);
  return passed;
}

std::string LauncherOutput::release() { return is_certain_ ? "" : finish(); }

std::string LauncherOutput::finish() {
  for (const char c : held_) observe(c);
  if (!held_.empty()) last_ = held_.back();
  return std::exchange(held_, "");
}

std::optional<KilledRank> LauncherOutput::killed_rank() const {
  for (const auto& report : reports_) {
    if (const auto killed = parse_killed_rank(report)) return killed;
  }
  return killed_task_;
}

}  // namespace hortator::launching
