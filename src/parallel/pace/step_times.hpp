#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace hortator::parallel {

/// Measures how long this rank computes between two passes, and learns it of the other ranks from messages that travel
/// beside their gradients. If there are many ranks, some report in each pass, in turns.
class StepTimes {
 public:
  static constexpr int max_reports = 64;  ///< in one message

  struct Report {
    int rank = 0;
    double seconds = 0;
  };

  StepTimes(int rank, int ranks);

  std::size_t message_size() const { return static_cast<std::size_t>(reports_) + 1; }
  /// Must be called when a pass reaches a model, and when that model's gradients are complete. A pass may reach several
  /// models; each sends a message.
  void begin_model() {
    if (models_++ == 0) seconds_.reset();
  }
  void end_model() { --models_; }
  /// Must be called when this rank has computed its gradients, before it waits for others in any way. Only the first
  /// call of a pass counts.
  void note_computed() {
    if (!seconds_) seconds_ = since_last();
  }
  /// This rank's message: the time of this pass.
  std::vector<float> report();
  /// Reads the sum or mean of all ranks' messages. The time of the next pass begins.
  void receive(std::span<const float> message);
  /// What has been received since the last call, of each rank its newest time.
  std::vector<Report> take_reports();

 private:
  using Clock = std::chrono::steady_clock;

  int first_of_turn() const;
  double since_last() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  int rank_;
  int ranks_;
  int reports_;
  std::int64_t passes_ = 0;
  Clock::time_point began_ = Clock::now();
  int models_ = 0;                       ///< that this pass has reached and not completed
  std::optional<double> seconds_ = {};   ///< of this pass; nothing while it computes
  std::map<int, double> received_ = {};  ///< by rank
};

/// Finds ranks that are slow for several reports in a row. Pure.
class StragglerWatch {
 public:
  struct Slow {
    int rank = 0;
    double factor = 1;
  };

  StragglerWatch(int ranks, double factor, int patience);
  /// Takes a rank's newest time; returns it if it has become slow.
  std::vector<Slow> note(const std::vector<StepTimes::Report>& reports);

 private:
  double median_of_others(int rank) const;

  double factor_;
  int patience_;
  std::vector<double> seconds_;  ///< of each rank, 0: unknown
  std::vector<int> slow_for_;    ///< reports in a row
  std::vector<int> well_for_;
  std::vector<bool> named_;
};

}  // namespace hortator::parallel
