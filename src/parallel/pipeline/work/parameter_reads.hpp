#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace hortator::parallel {

/// How many operators whose results lead to `results` read a parameter, as autograd has recorded them.
int count_reads(const at::Tensor& parameter, const std::vector<at::Tensor>& results);

}  // namespace hortator::parallel
