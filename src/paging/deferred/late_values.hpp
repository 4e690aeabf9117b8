#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace hortator::paging {

/// Drops the values and the memory of a tensor, and lets `fill` write others when they are needed: when an operator
/// reads the tensor, or something takes it over (sharding, offloading). `fill` gets a tensor of the same size with
/// uninitialised memory, on any thread, and is destroyed when it has returned. If it throws, so does what needed the
/// values, and the next need calls it again. Small tensors (below 1 MiB) are filled at once.
void fill_later(const at::Tensor& tensor, std::function<void(const at::Tensor& uninitialised)> fill);

/// As settle(), for a tensor that gets the values of another rank next: late ones are not made.
void settle_to_receive(const at::Tensor& tensor);

}  // namespace hortator::paging
