#include <algorithm>
#include <array>
#include <cctype>
#include <hortator/error.hpp>
#include <hortator/training/logger.hpp>
#include <mutex>
#include <set>
#include <utility>

#include "core/environment/environment.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "runtime/log_level.hpp"

namespace hortator {
namespace {

const std::vector<std::string>& level_names() {  // in the order of LogLevel
  static const std::vector<std::string> names = {"debug", "info", "warning", "error", "critical"};
  return names;
}

std::string lower(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char one) { return std::tolower(one); });
  return word;
}

LogLevel read_level(const char* variable, const std::string& word) {
  const auto& names = level_names();
  // Python's logging has further names.
  auto name = lower(word);
  name = name == "warn" ? "warning" : name == "fatal" ? "critical" : name == "notset" ? "debug" : name;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw UsageError({.what = text::concat(variable, ": unknown level ", text::quote(word)),
                      .why = "it is the lowest level of lines that are written",
                      .hint = "use " + text::join(names)});
  }
  return static_cast<LogLevel>(found - names.begin());
}

LogLevel level_from_environment() {
  const auto variables = core::process_variables();
  for (const char* name : {"HORTATOR_LOG_LEVEL", "ACCELERATE_LOG_LEVEL"}) {
    const auto word = variables(name);
    if (word && !word->empty()) return read_level(name, *word);
  }
  return LogLevel::info;
}

}  // namespace

void runtime::check_log_level() { level_from_environment(); }

struct Logger::Core {
  State state;
  std::string name;
  LogLevel level;
  std::mutex mutex = {};
  std::set<std::pair<Speakers, std::string>> said = {};
};

Logger get_logger(const State& state, std::string name, std::optional<LogLevel> level) {
  return Logger(std::shared_ptr<Logger::Core>(
      new Logger::Core{.state = state, .name = std::move(name), .level = level ? *level : level_from_environment()}));
}

bool Logger::is_enabled_for(LogLevel level) const { return level >= core_->level; }

void Logger::say(LogLevel level, const std::string& line) const {
  const auto& state = core_->state;
  const auto write = [&] {
    if (!is_enabled_for(level)) return;
    const auto& word = level == LogLevel::info ? "" : level_names()[static_cast<std::size_t>(level)] + ": ";
    log::write_everywhere(text::concat(word, core_->name, core_->name.empty() ? "" : ": ", line));
  };
  if (speakers_ == Speakers::everywhere) return write();
  if (speakers_ == Speakers::main) {
    if (state.is_main_process()) write();
    return;
  }
  for (int rank = 0; rank < state.num_processes(); ++rank) {
    if (rank == state.process_index()) write();
    state.wait_for_everyone();
  }
}

// Separate for each group of logging ranks: a rank that has logged a message on its own must still take part where all
// ranks log it in turn.
void Logger::say_once(LogLevel level, const std::string& line) const {
  {
    const std::scoped_lock lock(core_->mutex);
    if (!core_->said.emplace(speakers_, line).second) return;
  }
  say(level, line);
}

}  // namespace hortator
