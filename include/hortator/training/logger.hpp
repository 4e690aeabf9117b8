#pragma once

#include <hortator/export.hpp>
#include <hortator/state.hpp>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace hortator {

/// How much a line matters.
enum class LogLevel { debug, info, warning, error, critical };

class Logger;

/// Lines from `level` on are written; by default from HORTATOR_LOG_LEVEL's or ACCELERATE_LOG_LEVEL's (debug, info,
/// warning, error, critical, in any case), else from info's.
HORTATOR_API Logger get_logger(const State& state, std::string name, std::optional<LogLevel> level = {});

/// Lines on standard error under a name, in jobs of many ranks: `auto logger = hortator::get_logger(accelerator,
/// "train"); logger.info("epoch ", epoch);` is said once, by the main process. Copies are one logger.
class HORTATOR_API Logger {
 public:
  /// By every rank that comes here: `logger.everywhere().warning("nothing to do");`
  Logger everywhere() const { return with(Speakers::everywhere); }
  /// By all ranks, one after the other. Each line is @collective, also one whose level is off.
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
  /// The same words are said the first time only (each, by everywhere() and by in_order()).
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
