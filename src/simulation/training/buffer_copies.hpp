#pragma once

#include <torch/nn/module.h>

#include <utility>
#include <vector>

namespace hortator::simulation {

/// Copies of a module's buffers, such as the running statistics of BatchNorm, which a forward pass changes. Puts them
/// back at its end, unless they are to stay as the pass has left them.
class BufferCopies {
 public:
  BufferCopies() = default;
  ~BufferCopies() { put_back(); }
  BufferCopies(const BufferCopies&) = delete;
  BufferCopies& operator=(const BufferCopies&) = delete;

  void copy(const torch::nn::Module& module);
  void keep_changes() { copies_.clear(); }

 private:
  void put_back() noexcept;

  std::vector<std::pair<at::Tensor, at::Tensor>> copies_ = {};  ///< a buffer and its copy
};

}  // namespace hortator::simulation
