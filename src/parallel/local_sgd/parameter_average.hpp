#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "comm/communicator.hpp"

namespace hortator::parallel {

/// Averages parameters over all ranks, many of them in one collective: each group of at most 25 MiB (or one parameter
/// that is larger) travels while the next one is packed. Takes memory for two groups.
class ParameterAverage {
 public:
  /// `parameters` each once; those of whole numbers are left alone. @collective
  ParameterAverage(std::vector<at::Tensor> parameters, comm::Communicator& communicator);

  /// Every parameter becomes the mean over all ranks, the same on each, bit for bit. @collective
  void run();
  std::size_t groups() const { return groups_.size(); }

 private:
  struct Group {
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> places;  ///< of the parameters, in `flat`
    at::Tensor flat;                 ///< in one of the two frames
    comm::Work work = {};
  };
  void add_group(std::vector<at::Tensor> parameters);
  void start(Group& group);
  static void finish(Group& group);

  comm::Communicator& communicator_;
  std::array<at::Tensor, 2> frames_;  ///< bytes; groups take turns
  std::vector<Group> groups_;
};

}  // namespace hortator::parallel
