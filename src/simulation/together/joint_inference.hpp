#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"
#include "simulation/sections/section.hpp"
#include "simulation/together/request_board.hpp"

namespace hortator::simulation {

/// Inference of all ranks of a node that share a device as one batch, which the first of them computes. A rank that is
/// not there in time computes on its own, and no other waits longer for it than `patience`.
class JointInference {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Compute = std::function<Tensors(const Tensors&)>;

  struct Settings {
    std::chrono::nanoseconds patience = std::chrono::milliseconds(10);
    std::size_t bytes = std::size_t{16} << 20;  ///< for the inputs, and for the outputs, of each rank
  };
  /// Reads `infer_together` of a model's section; nothing if it is missing. Throws UsageError for a model whose samples
  /// depend on each other.
  static std::optional<Settings> read(const Section& model);

  /// `name` is the model's, for messages. @collective over `all`
  JointInference(const mpi::Communicator& all, c10::Device device, std::string name, const Settings& settings);

  /// The outputs of `compute` for these inputs, on the CPU or on the device of `compute`. They may lie in memory that
  /// the next call overwrites. What `compute` throws for this rank's inputs is thrown here only. Waits for other ranks,
  /// at most as long as `patience` and the computation of their batch take.
  Tensors infer(const Tensors& inputs, const Compute& compute);

  /// How many calls of this rank were part of a batch of several ranks.
  std::int64_t joint_calls() const { return joint_calls_; }

 private:
  Tensors ask(const Tensors& inputs, const Compute& compute);
  Tensors serve(const Tensors& inputs, const Compute& compute);
  /// Finishes the requests of ranks whose results are on the board. Returns why they must not be computed like this.
  std::optional<std::string> compute_batch(const std::vector<int>& ranks, const Tensors& own, const Compute& compute,
                                           Tensors& own_results);
  std::optional<std::string> dependence(const std::vector<Tensors>& parts, const std::vector<std::int64_t>& counts,
                                        const Tensors& results, const Compute& compute);
  void note_no_room(const char* what);

  mpi::Communicator ranks_;
  std::string name_;
  Settings settings_;
  std::unique_ptr<RequestBoard> board_;  ///< null where the rank shares its device with no other
  std::int64_t joint_calls_ = 0;
  bool are_independent_ = false;  ///< samples, as the first batch has shown
  bool has_noted_ = false;
};

}  // namespace hortator::simulation
