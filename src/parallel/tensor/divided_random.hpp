#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "parallel/tensor/tensor_ranks.hpp"

namespace hortator::parallel {

/// While it lives, the ranks draw different random numbers on the device, for parts that must not repeat each other
/// (dropout). Before and after, the device's default generator has the same state on all ranks, if it had at first.
class DividedRandom {
 public:
  DividedRandom(c10::Device device, const TensorRanks& ranks);
  ~DividedRandom();
  DividedRandom(const DividedRandom&) = delete;
  DividedRandom& operator=(const DividedRandom&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace hortator::parallel
