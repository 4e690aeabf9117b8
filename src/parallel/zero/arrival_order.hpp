#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// The order in which backward reaches a model's parameters, learned from the first pass and again when it changes, and
/// whether the ranks agree on it.
class ArrivalOrder {
 public:
  /// Must be called when backward reaches a parameter for the first time in this pass.
  void note(std::size_t parameter) { now_.push_back(static_cast<int>(parameter)); }

  /// Whether backward has reached all `parameters`, in another order than the one agreed on last. If it is true on one
  /// rank, all ranks must call agree().
  bool is_new(std::size_t parameters) const { return now_.size() == parameters && now_ != agreed_; }
  /// Must be called at the end of a pass. A pass that did not reach all parameters has no order.
  void close_pass(std::size_t parameters);
  /// Must be called instead if the pass was interrupted.
  void drop_pass() { now_.clear(); }

  /// Makes the last pass's order the agreed one. If ranks that reached all parameters did so in different orders,
  /// throws on all ranks, naming for each the first parameter that differs. `names` are the parameters'. @collective
  void agree(const mpi::Communicator& host, const std::vector<std::string>& names);

 private:
  std::vector<int> now_;
  std::vector<int> last_;  ///< empty if it did not reach all parameters
  std::vector<int> agreed_;
};

}  // namespace hortator::parallel
