#pragma once

#include <ATen/core/stack.h>

#include <memory>
#include <vector>

#include "support/sim/operators/operator_facts.hpp"

namespace hortator::sim {

struct TensorShape {
  std::vector<std::int64_t> sizes = {};
  std::vector<std::int64_t> strides = {};
  at::ScalarType type = at::kFloat;
  std::int64_t offset = 0;
  bool is_defined = false;
};

/// The tensors that an operator returns, and the sizes of its arguments `out`.
struct ResultShapes {
  struct Result {
    std::vector<TensorShape> tensors = {};
    bool is_list = false;
  };
  std::vector<Result> results = {};
  std::vector<std::vector<std::int64_t>> outputs = {};
};

/// Finds them by the operator's Meta kernel or, where LibTorch has none, by a dry run on the CPU with zeros. Answers
/// for the same shapes are kept. Throws when neither works.
std::shared_ptr<const ResultShapes> shapes_of(const c10::OperatorHandle& op, OperatorFacts& facts,
                                              const torch::jit::Stack& arguments);

}  // namespace hortator::sim
