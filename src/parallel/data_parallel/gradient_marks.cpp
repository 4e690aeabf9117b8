#include "parallel/data_parallel/gradient_marks.hpp"

namespace hortator::parallel {

GradientMarks::GradientMarks(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)), marks_(read()) {}

std::vector<GradientMarks::Mark> GradientMarks::read() const {
  std::vector<Mark> marks;
  marks.reserve(parameters_.size());
  for (const auto& parameter : parameters_) {
    const auto& gradient = parameter.grad();
    marks.emplace_back(gradient.defined() ? gradient.unsafeGetTensorImpl() : nullptr,
                       gradient.defined() ? static_cast<std::int64_t>(gradient._version()) : 0);
  }
  return marks;
}

}  // namespace hortator::parallel
