#pragma once

#include <thread>

#include "launch/launcher_output.hpp"

namespace hortator::tools {

/// Passes a launcher's standard error on to that of this process, in a thread, without the launcher's own reports.
class Relay {
 public:
  /// Makes the pipe. `output` must outlive this.
  explicit Relay(launching::LauncherOutput& output);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int inlet() const { return inlet_; }  ///< the launcher's standard error
  /// Starts to read. Call it after the launcher was started, which must have the only inlet.
  void start();
  /// Passes on what is left when the launcher has ended. Other holders of the inlet are not waited for.
  void finish();

 private:
  void pass_on(const std::stop_token& ended);

  launching::LauncherOutput& output_;
  int inlet_ = -1;
  int outlet_ = -1;
  std::jthread thread_;
};

}  // namespace hortator::tools
