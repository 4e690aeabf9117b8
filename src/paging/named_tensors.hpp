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

struct Choice {
  std::vector<std::string> keep_resident = {};  ///< tensors, or modules with all of theirs
  bool buffers = false;
};

/// A module's parameters (and buffers) by their names, but for those that are to stay. Throws UsageError for a name
/// that it does not have.
std::vector<NamedTensor> named_tensors(const torch::nn::Module& module, const Choice& choice);
std::vector<NamedTensor> named_tensors(const torch::jit::Module& module, const Choice& choice);

}  // namespace hortator::paging
