#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/identity/topology.hpp"
#include "runtime/watchdog/board.hpp"
#include "runtime/watchdog/stall.hpp"
#include "runtime/watchdog/stall_files.hpp"
#include "runtime/watchdog/stall_report.hpp"
#include "runtime/watchdog/wait_clock.hpp"

namespace hortator::runtime {

/// The exit code of a job that is stuck in a collective, the same as that of timeout(1).
constexpr int stalled_exit_code = 124;

/// A thread that checks periodically whether this rank waits too long for others in the collectives of one world. If
/// so, it finds out which ranks are missing, reports them, and ends the job. It calls nothing of MPI but MPI_Abort.
/// Long computation does not trigger it as long as no rank waits for it.
class Watchdog {
 public:
  /// In debug mode ranks that wait for each other in a cycle are reported within a second, at the cost of more checks.
  struct Settings {
    std::chrono::milliseconds limit;
    bool in_debug_mode = false;
    std::string run;  ///< a name that no other run shares
  };

  /// `node` is world.node(). @collective
  Watchdog(const mpi::Communicator& world, const mpi::Communicator& node, const Topology& topology,
           const Settings& settings);
  /// Publishes that this rank has left. Local.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Called when the process exits while its world exists. The other ranks cannot continue, so it reports that and ends
  /// the job.
  void leave_early();

  /// If a rank of this node has been killed, writes this rank's last collectives and, unless a launcher `reports` it,
  /// reports that rank if this one is the one to do so. Called by a thread of its own, after SIGTERM.
  void report_killed_peer(bool launcher_reports) const;

 private:
  struct View {
    std::vector<RankRecord> slots;
    std::vector<int> silent_nodes = {};
    std::string note = {};
    bool is_announced = false;  ///< by this rank, which must withdraw it
  };

  void leave();
  void watch();
  bool rest(std::chrono::milliseconds time);
  void look();
  void publish(std::vector<std::string> stack);
  void answer_questions();
  void answer_other_nodes();
  bool leads_node();
  void consider();
  bool still_waits(std::uint64_t visit) const;
  View ask_everybody();
  std::vector<RankRecord> ask_node();
  void collect_answers(const StallFiles& files, View& view);
  void report(const Stall& stall, const View& view);
  StallFiles files() const;

  const Topology topology_;
  const std::uint64_t family_;
  const std::string run_;
  const StallLimits patience_;
  const bool asks_early_;  ///< asks other nodes as soon as one of their ranks may be in a cycle with ours
  const std::chrono::milliseconds step_;  ///< between two checks
  const pid_t process_;
  const int own_rank_;

  Board board_;
  WaitClock clock_;
  RankRecord slot_;
  std::chrono::steady_clock::time_point last_look_;
  std::chrono::steady_clock::time_point next_files_look_;
  double next_attempt_ = 0;  ///< seconds of waiting after which a stall that was not reported is checked again
  std::vector<std::uint64_t> beats_;
  std::vector<int> quiet_looks_;  ///< checks since a rank's watchdog last published

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace hortator::runtime
