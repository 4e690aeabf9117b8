#pragma once

#include <cstddef>
#include <set>

namespace hortator::accelerator {

/// Which tensors of the models a checkpoint holds.
struct ModelSelection {
  bool only_trainable = false;          ///< no frozen parameters; buffers all the same
  std::set<std::size_t> left_out = {};  ///< models that are not in it

  bool has_model(std::size_t model) const { return !left_out.contains(model); }
};

}  // namespace hortator::accelerator
