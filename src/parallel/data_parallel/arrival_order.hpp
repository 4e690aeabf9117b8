#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// The order in which backward comes to a model's parameters, learned from the first pass and again when it changes,
/// and whether the ranks agree on it.
class ArrivalOrder {
 public:
  /// Backward has come to it, for the first time in this pass.
  void note(std::size_t parameter) { now_.push_back(static_cast<int>(parameter)); }

  /// Has it come to all `parameters`, in another order than what was agreed on last? Some rank's yes is to be followed
  /// by agree() on all.
  bool is_new(std::size_t parameters) const { return now_.size() == parameters && now_ != agreed_; }
  /// A pass that did not come to all of them says nothing.
  void close_pass(std::size_t parameters);

  /// The last pass's order counts from now on. Throws on all ranks, naming for each the first parameter that differs,
  /// where they have come to all in different orders. `names` are the parameters'. @collective
  void agree(const mpi::Communicator& host, const std::vector<std::string>& names);

 private:
  std::vector<int> now_;
  std::vector<int> last_;  ///< empty: it says nothing
  std::vector<int> agreed_;
};

}  // namespace hortator::parallel
