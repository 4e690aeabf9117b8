#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

namespace hortator::tools {

/// A command of the user that runs for each complete checkpoint of a launch (--on-checkpoint), one at a time, beside
/// the ranks. The program reports checkpoints in a file in this folder, which this removes. Failures are printed, and
/// end nothing.
class CheckpointCommand {
 public:
  /// `arguments` are those of command_arguments(). Throws Error if the file cannot be made.
  explicit CheckpointCommand(std::vector<std::string> arguments);
  ~CheckpointCommand();
  CheckpointCommand(const CheckpointCommand&) = delete;
  CheckpointCommand& operator=(const CheckpointCommand&) = delete;

  /// Tells the program of the file: "NAME=value".
  std::string variable() const { return "HORTATOR_CHECKPOINT_NOTE=" + note_.string(); }
  /// Reports a command that has ended, and starts the next. Returns at once.
  void advance();
  /// Returns when the commands for all checkpoints have ended. A signal that asks the launch to stop ends them.
  void finish();

 private:
  void read_note();
  void start_next();
  void report_end();
  void give_up(int signal);
  void end_process();

  std::vector<std::string> arguments_;
  std::filesystem::path note_;
  std::uint64_t read_bytes_ = 0;
  std::deque<std::string> waiting_;  ///< folders of checkpoints
  std::string folder_;               ///< of the command that runs
  pid_t process_ = -1;
};

}  // namespace hortator::tools
