#pragma once

#include <string>
#include <vector>

#include "paging/paged_storages.hpp"

namespace torch::jit {
struct Module;
}
namespace torch::nn {
class Module;
}

namespace hortator::paging {

/// Which of a module's tensors are paged.
struct TensorSelection {
  std::vector<std::string> keep_resident = {};  ///< tensors, or modules with all of theirs
  bool buffers = false;
};

/// A module's parameters (and buffers) by their names, without those in `keep_resident`. Throws UsageError for a name
/// that the module does not have.
std::vector<NamedTensor> named_tensors(const torch::nn::Module& module, const TensorSelection& selection);
std::vector<NamedTensor> named_tensors(const torch::jit::Module& module, const TensorSelection& selection);

}  // namespace hortator::paging
