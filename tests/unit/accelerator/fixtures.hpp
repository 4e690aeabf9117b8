#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <hortator/hortator.hpp>

namespace hortator::test {

/// The length of a training that is compared with that of one rank: fifty steps. Fewer on more than two ranks, which
/// wait for each other in each step where there are fewer cores.
inline std::int64_t many_steps() { return State().num_processes() > 2 ? 20 : 50; }

/// A data set: row i is `width` times the number 0.1 (i + 1); its target is the sum of the row.
struct Rows {
  std::int64_t count;
  std::int64_t width = 3;
  at::ScalarType type = at::kFloat;

  std::size_t size() const { return static_cast<std::size_t>(count); }
  Example<> get(std::int64_t i) const {
    const auto row = at::full({width}, 0.1 * static_cast<double>(i + 1), type);
    return {row, row.sum().view({1})};
  }
};

struct NetImpl : torch::nn::Module {
  explicit NetImpl(double dropout = 0) {
    hidden = register_module("hidden", torch::nn::Linear(3, 4));
    drop = register_module("drop", torch::nn::Dropout(dropout));
    out = register_module("out", torch::nn::Linear(4, 1));
    register_buffer("calls", at::zeros({}, at::kLong));
  }
  at::Tensor forward(const at::Tensor& x) {
    named_buffers()["calls"].add_(1);
    return out(drop(at::tanh(hidden(x))));
  }
  torch::nn::Linear hidden{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Linear out{nullptr};
};
TORCH_MODULE(Net);

/// A folder for one test in the working directory. Rank 0 removes it before and after the test; all ranks wait.
class Folder {
 public:
  Folder(const State& state, const std::string& name)
      : state_(state), path_(std::filesystem::absolute("folder_" + name)) {
    remove();
  }
  ~Folder() { remove(); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  void remove() const {
    state_.wait_for_everyone();
    if (state_.is_main_process()) std::filesystem::remove_all(path_);
    state_.wait_for_everyone();
  }

  State state_;
  std::filesystem::path path_;
};

inline bool same_parameters(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto left = a.parameters();
  const auto right = b.parameters();
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!at::equal(left[i], right[i])) return false;
  }
  return left.size() == right.size();
}

/// @collective
inline bool same_on_all_ranks(Accelerator& accelerator, const at::Tensor& tensor) {
  const auto flat = tensor.detach().to(at::kDouble).reshape({1, -1});
  const auto all = accelerator.gather(flat).view({accelerator.num_processes(), -1});
  for (std::int64_t rank = 1; rank < all.size(0); ++rank) {
    if (!at::equal(all[rank], all[0])) return false;
  }
  return true;
}

}  // namespace hortator::test
