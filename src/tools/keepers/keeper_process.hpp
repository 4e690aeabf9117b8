#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/restarts/keeping.hpp"

namespace hortator::tools {

/// The process of a command that starts keepers. It ends when its input is closed, or this process ends.
class KeeperProcess {
 public:
  explicit KeeperProcess(launching::KeeperCommand command) : command_(std::move(command)) {}

  const std::string& where() const { return command_.where; }
  bool is_running() const { return process_ > 0; }
  /// Whether it has ended, or was never started.
  bool has_ended();

  void start();
  /// Takes what it has printed, without waiting. A remote shell may print greetings.
  void read_output();
  /// Whether all its keepers have said that they have their folders.
  bool is_ready() const { return ready_ == command_.keepers; }
  int output() const { return output_; }  ///< -1 when nothing more will come
  void close_output() noexcept;
  void close_input() noexcept;
  /// Whether it has ended well.
  bool was_good() const { return was_good_; }
  void kill() noexcept;

 private:
  void take_line(std::string_view line);

  launching::KeeperCommand command_;
  pid_t process_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::string unread_;
  int ready_ = 0;
  bool was_good_ = true;
};

/// Starts all of them, and waits until they are ready, for a limited time, or until `is_asked_to_stop`, which may be
/// empty. Returns those that are not ready: they have been ended.
std::vector<KeeperProcess*> start_together(const std::vector<KeeperProcess*>& keepers, std::chrono::milliseconds limit,
                                           const std::function<bool()>& is_asked_to_stop);

/// Ends all of them, and kills those that do not end in time. Returns where one has not ended well.
std::vector<std::string> end_together(std::vector<KeeperProcess>& keepers, std::chrono::milliseconds limit) noexcept;

}  // namespace hortator::tools
