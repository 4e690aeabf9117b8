#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hortator::accelerator {

class Training;

/// Who had how much of a process's counted memory at its peak.
struct PeakByOwner {
  std::uint64_t parameters = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizers = 0;   ///< what they remember (moments)
  std::uint64_t buffers = 0;      ///< of modules, and for communication
  std::uint64_t activations = 0;  ///< and all else that is temporary
  std::uint64_t total = 0;

  struct ByOperator {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint64_t largest = 0;  ///< of one tensor
  };
  std::vector<ByOperator> activations_by_operator = {};  ///< the largest first
};

/// Call it while parameters, gradients and moments exist: before an optimizer's second step. Local.
PeakByOwner peak_by_owner(const Training& training);

}  // namespace hortator::accelerator
