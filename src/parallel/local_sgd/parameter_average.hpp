#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "comm/communicator.hpp"

namespace hortator::parallel {

/// Averages parameters over all ranks, many in one collective: each group of at most 25 MiB (or one larger parameter)
/// travels while the next one is packed. Needs memory for two groups.
class ParameterAverage {
 public:
  /// `parameters` each once; those of integer types are ignored. @collective
  ParameterAverage(std::vector<at::Tensor> parameters, comm::Communicator& communicator);

  /// Sets every parameter to the mean over all ranks, bitwise the same on each. @collective
  void run();
  std::size_t groups() const { return groups_.size(); }

 private:
  struct Group {
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> packed;  ///< the parameters' copies in `flat`
    at::Tensor flat;                 ///< in one of the two frames
    comm::Work work = {};
  };
  void add_group(std::vector<at::Tensor> parameters);
  void start(Group& group);
  static void finish(Group& group);

  comm::Communicator& communicator_;
  std::array<at::Tensor, 2> frames_;  ///< of bytes; used by the groups in turn
  std::vector<Group> groups_;
};

}  // namespace hortator::parallel
