#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace hortator::parallel {

/// Records the gradients that a set of parameters has, to find out later whether a backward has reached one of them.
class GradientMarks {
 public:
  explicit GradientMarks(std::vector<at::Tensor> parameters);
  bool have_changed() const { return read() != marks_; }

 private:
  using Mark = std::pair<const void*, std::int64_t>;  // the gradient and its version

  std::vector<Mark> read() const;

  std::vector<at::Tensor> parameters_;
  std::vector<Mark> marks_;
};

}  // namespace hortator::parallel
