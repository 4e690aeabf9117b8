#pragma once

#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <hortator/accelerator.hpp>
#include <vector>

// The task of all examples: points on three rings around the origin, whose ring is to be found. A small network learns
// it in seconds.
namespace toy {

/// Points with their ring as target. A sample depends on its index only; ranges of indices are different samples.
class Rings {
 public:
  explicit Rings(std::int64_t size, std::int64_t first = 0) : first_(first), size_(size) {}
  std::int64_t size() const { return size_; }
  hortator::Example<> get(std::int64_t i) const;

 private:
  std::int64_t first_;
  std::int64_t size_;
};

/// Samples that are used for tests only.
inline Rings held_out(std::int64_t size) { return Rings(size, std::int64_t{1} << 20); }

struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::int64_t width = 32, std::int64_t layers = 1);
  at::Tensor forward(at::Tensor points);

 private:
  std::vector<torch::nn::Linear> layers_;
};
TORCH_MODULE(Net);

/// The numbers in the tensors.
std::int64_t count_numbers(const std::vector<at::Tensor>& tensors);

/// Prints the loss and the accuracy on 600 held-out samples. Every rank computes all of them. @collective
void report(hortator::Accelerator& accelerator, hortator::Model<Net>& model);

}  // namespace toy
