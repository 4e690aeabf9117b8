#include <ATen/ops/item.h>

#include <hortator/error.hpp>
#include <hortator/training/progress.hpp>

#include "core/text/text.hpp"

namespace hortator {
namespace {

// Not detach(): variable_data() leaves the graph behind without a trip through the dispatcher.
at::Tensor without_graph(const at::Tensor& tensor) { return tensor.requires_grad() ? tensor.variable_data() : tensor; }

void check_single(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.numel() == 1) return;
  throw UsageError({.what = tensor.defined() ? text::concat("a tensor of ", text::count(tensor.numel(), "element"),
                                                            " cannot be logged")
                                             : std::string("an undefined tensor cannot be logged"),
                    .why = "one number has room beside a progress bar",
                    .hint = "log its mean() or another single number"});
}

}  // namespace

Loggable::Loggable(const at::Tensor& tensor) {
  check_single(tensor);
  value_ = without_graph(tensor);
}

double Loggable::value() const {
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  return std::get<at::Tensor>(value_).item<double>();
}

ProgressSink::~ProgressSink() = default;

}  // namespace hortator
