#include <ATen/ops/item.h>

#include <hortator/error.hpp>
#include <hortator/training/progress.hpp>

#include "core/text/text.hpp"

namespace hortator {
namespace {

// variable_data() rather than detach(): it drops the graph without a call through the dispatcher.
at::Tensor without_graph(const at::Tensor& tensor) { return tensor.requires_grad() ? tensor.variable_data() : tensor; }

void check_single(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.numel() == 1) return;
  throw UsageError({.what = tensor.defined()
                                ? text::concat("Cannot log a tensor of ", text::count(tensor.numel(), "element"))
                                : std::string("Cannot log an undefined tensor"),
                    .why = "only single numbers can be logged",
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
