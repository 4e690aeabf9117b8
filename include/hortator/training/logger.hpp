#pragma once

#include <hortator/export.hpp>
#include <hortator/state.hpp>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace hortator {

/// The severity of a line.
enum class LogLevel { debug, info, warning, error, critical };

class Logger;

/// Creates a logger that writes lines of `level` and above. By default the level is HORTATOR_LOG_LEVEL, else
/// ACCELERATE_LOG_LEVEL (debug, info, warning, error, critical, in upper or lower case), else info.
HORTATOR_API Logger get_logger(const State& state, std::string name, std::optional<LogLevel> level = {});

/// Writes lines with a name to standard error, in jobs of many ranks. Only the main process writes by default:
///
///     auto logger = hortator::get_logger(accelerator, "train");
///     logger.info("epoch ", epoch);
///
/// Copies share one logger.
class HORTATOR_API Logger {
 public:
  /// A logger that writes on every rank that calls it: `logger.everywhere().warning("nothing to do");`
  Logger everywhere() const { return with(Speakers::everywhere); }
  /// A logger that writes on all ranks, one after the other. Each line is @collective, even if its level is off.
  Logger in_order() const { return with(Speakers::in_order); }

  bool is_enabled_for(LogLevel level) const;

  template <typename... Parts>
  void debug(const Parts&... parts) const {
    log(LogLevel::debug, parts...);
  }
  template <typename... Parts>
  void info(const Parts&... parts) const {
    log(LogLevel::info, parts...);
  }
  template <typename... Parts>
  void warning(const Parts&... parts) const {
    log(LogLevel::warning, parts...);
  }
  template <typename... Parts>
  void error(const Parts&... parts) const {
    log(LogLevel::error, parts...);
  }
  template <typename... Parts>
  void critical(const Parts&... parts) const {
    log(LogLevel::critical, parts...);
  }
  /// Writes the same text only once (once each for everywhere() and in_order()).
  template <typename... Parts>
  void warning_once(const Parts&... parts) const {
    say_once(LogLevel::warning, text(parts...));
  }
  template <typename... Parts>
  void log(LogLevel level, const Parts&... parts) const {
    say(level, text(parts...));
  }

 private:
  friend Logger get_logger(const State& state, std::string name, std::optional<LogLevel> level);
  enum class Speakers { main, everywhere, in_order };
  struct Core;

  explicit Logger(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  Logger with(Speakers speakers) const {
    auto copy = *this;
    copy.speakers_ = speakers;
    return copy;
  }
  template <typename... Parts>
  static std::string text(const Parts&... parts) {
    std::ostringstream line;
    (line << ... << parts);
    return std::move(line).str();
  }
  void say(LogLevel level, const std::string& line) const;
  void say_once(LogLevel level, const std::string& line) const;

  std::shared_ptr<Core> core_;
  Speakers speakers_ = Speakers::main;
};

}  // namespace hortator
