#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <string>

#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// A function of each number.
class Activation {
 public:
  using Function = at::Tensor (*)(const at::Tensor&);
  using InPlace = void (*)(at::Tensor&);
  Activation(Function function, InPlace in_place) : function_(function), in_place_(in_place) {}

  at::Tensor operator()(const at::Tensor& x) const { return function_(x); }
  /// The result, in the memory of `x` where no gradient is wanted. The caller must not use `x` again.
  at::Tensor consume(at::Tensor x) const {
    if (c10::GradMode::is_enabled()) return function_(x);
    in_place_(x);
    return x;
  }

 private:
  Function function_;
  InPlace in_place_;
};

/// The function that `key` names: relu, gelu, silu, tanh, sigmoid, elu or none. Throws UsageError for another name.
Activation read_activation(const Section& section, const char* key, const std::string& absent);

}  // namespace hortator::simulation
