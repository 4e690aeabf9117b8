#pragma once

#include <cstdint>
#include <functional>
#include <hortator/accelerator.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/training/launched.hpp"
#include "accelerator/training/memory_by_owner.hpp"

namespace hortator::mpi {
class Communicator;
}
namespace hortator::observe {
class StepRecording;
}
namespace hortator::parallel {
struct RankGroup;
}
namespace hortator::runtime {
class World;
}
namespace hortator::step {
struct GivenLoss;
}

namespace hortator::accelerator {

class Channels;
class Prepared;
class RunOutput;
class StepControl;
struct DueSaves;
struct RunFacts;

/// Implements an Accelerator: its four parts, and the verbs that need several of them.
class Training {
 private:
  static LaunchedOptions agreed(const AcceleratorOptions& options, const runtime::World& world);  ///< @collective
  struct Parts;
  LaunchedOptions launched_;
  std::unique_ptr<Parts> parts_;

 public:
  /// Applies the launcher's variables to the program's options. Throws on all ranks if they are invalid on one, or
  /// differ. @collective
  Training(const AcceleratorOptions& options, runtime::World& world);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  static Training& of(const Accelerator& accelerator) { return *accelerator.training_; }

  Prepared& prepared;
  RunOutput& output;
  StepControl& control;
  Channels& channels;
  std::unique_ptr<observe::StepRecording> recording;  ///< null unless the options ask for it

  const AcceleratorOptions& options() const { return launched_.options; }
  const LaunchedOptions& launched() const { return launched_; }
  const mpi::Communicator& host() const;
  /// The ranks that get different batches.
  const parallel::RankGroup& data() const;
  /// The ranks that average their gradients: those, and the ranks that have other tokens of the same batches.
  const parallel::RankGroup& averaging() const;
  c10::Device device() const;

  /// Chooses the run's seed, which is what rank 0 was seeded with last; call it before a model or loader is prepared.
  /// @collective the first time
  void settle_seed();
  std::uint64_t seed() const { return seed_.value_or(0); }

  /// Writes this rank's status row when it is due. Call it after each step or micro-step.
  void report_status();
  /// Publishes that a phase begins which may take long, unless no status row has been written yet.
  void enter_phase(const std::string& phase);
  /// Publishes that the run is over, and what was measured if that is asked for.
  void publish_end();

  /// Runs backward of `loss` and finishes the gradients that are still on their way. `given`: the loss as the user gave
  /// it. `may_reach_none`: nothing that this rank has may learn, as in a frozen stage. @collective
  void backward(const at::Tensor& loss, const step::GivenLoss& given, bool retain_graph, bool may_reach_none = false);
  /// Finishes gradients that are still on their way. @collective
  void synchronise_gradients();
  /// Call it when an optimizer has cleared the gradients of these parameters: what was noted of their losses goes with
  /// them.
  void note_cleared(const std::vector<at::Tensor>& parameters);
  /// Drops what was added up for the next update. Call it on all ranks when weights were loaded. @collective
  void drop_gradients();
  /// The mean over all ranks of a loss that each of them has computed. UsageError where some ranks may have none.
  /// @collective
  at::Tensor mean_loss(const at::Tensor& loss);

  /// Takes this rank out of the collectives of the prepared objects: comm::Communicator::abandon. Returns whether the
  /// other ranks are free as well.
  bool abandon(std::string_view reason) noexcept;
  /// Runs work in which ranks exchange parts of parameters, and which may fail on one of them, for example for lack of
  /// memory: the others then stop waiting for it, and all throw. @collective
  void exchange_together(const std::function<void()>& work);
  /// Call it on all ranks after abandon(): forgets what was prepared and joins the ranks again. @collective
  void start_afresh();

  /// Forgets what was prepared; handles throw from now on. What an optimizer of shards remembers is lost. @collective
  /// where parameters are sharded
  void forget();
  /// Call it on all ranks before weights are loaded: protection must not return to those of before.
  void forget_protection();
  /// Gives memory that is not in use back to the system and the device.
  void empty_cache() const;

 private:
  void connect();  ///< @collective
  void start_recording();
  DueSaves due_saves();
  void note_backward();
  void run_backward(const at::Tensor& start, bool retain_graph);  ///< @collective
  void run_pass(const at::Tensor& start, bool retain_graph);      ///< @collective
  void forget_objects();
  RunFacts facts();

  std::optional<std::uint64_t> seed_;  ///< nothing until something is prepared
  std::int64_t gradient_bytes_ = 0;    ///< 0 unless measured; kept since users' modules may be destroyed at the end
  MemoryWatch memory_watch_{*this};
};

}  // namespace hortator::accelerator
