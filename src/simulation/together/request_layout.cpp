#include "simulation/together/request_layout.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>

namespace hortator::simulation {
namespace {

constexpr std::size_t cache_line = 64;

std::size_t padded(std::size_t bytes) { return (bytes + cache_line - 1) / cache_line * cache_line; }

at::IntArrayRef sizes_of(const RequestLayout::TensorLayout& tensor) {
  return {tensor.sizes.data(), static_cast<std::size_t>(tensor.dims)};
}

std::size_t tensor_bytes(const RequestLayout::TensorLayout& tensor) {
  std::size_t bytes = c10::elementSize(static_cast<at::ScalarType>(tensor.type));
  for (const auto size : sizes_of(tensor)) bytes *= static_cast<std::size_t>(size);
  return bytes;
}

/// With 0 samples: what requests of one batch have in common. Nothing for a request that is a batch of its own.
std::optional<RequestLayout> kind_of(RequestLayout layout) {
  if (!samples_of(layout)) return {};
  for (auto& tensor : layout.tensors) tensor.sizes[0] = 0;
  return layout;
}

}  // namespace

std::optional<RequestLayout> layout_of(const std::vector<at::Tensor>& tensors) {
  RequestLayout layout;
  if (tensors.size() > RequestLayout::max_tensors) return {};
  layout.count = static_cast<std::int32_t>(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].dim() > static_cast<std::int64_t>(RequestLayout::max_dims)) return {};
    layout.tensors[i].type = static_cast<std::int32_t>(tensors[i].scalar_type());
    layout.tensors[i].dims = static_cast<std::int32_t>(tensors[i].dim());
    std::ranges::copy(tensors[i].sizes(), layout.tensors[i].sizes.begin());
  }
  return layout;
}

std::size_t bytes_of(const RequestLayout& layout) {
  std::size_t bytes = 0;
  for (std::int32_t i = 0; i < layout.count; ++i)
    bytes += padded(tensor_bytes(layout.tensors[static_cast<std::size_t>(i)]));
  return bytes;
}

std::vector<at::Tensor> tensors_in(const RequestLayout& layout, std::byte* begin) {
  std::vector<at::Tensor> tensors;
  for (std::int32_t i = 0; i < layout.count; ++i) {
    const auto& tensor = layout.tensors[static_cast<std::size_t>(i)];
    tensors.push_back(at::from_blob(begin, sizes_of(tensor), static_cast<at::ScalarType>(tensor.type)));
    begin += padded(tensor_bytes(tensor));
  }
  return tensors;
}

// Small copies are most of what a small batch costs, and memcpy is several times faster than an operator.
void copy_to(std::byte* begin, const RequestLayout& layout, const std::vector<at::Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& shape = layout.tensors[i];
    const auto bytes = tensor_bytes(shape);
    if (tensors[i].is_cpu() && tensors[i].is_contiguous()) {
      if (bytes > 0) std::memcpy(begin, tensors[i].const_data_ptr(), bytes);
    } else {
      at::from_blob(begin, sizes_of(shape), tensors[i].scalar_type()).copy_(tensors[i]);
    }
    begin += padded(bytes);
  }
}

std::optional<std::int64_t> samples_of(const RequestLayout& layout) {
  std::optional<std::int64_t> samples;
  for (std::int32_t i = 0; i < layout.count; ++i) {
    const auto& tensor = layout.tensors[static_cast<std::size_t>(i)];
    if (tensor.dims == 0 || (samples && *samples != tensor.sizes[0])) return {};
    samples = tensor.sizes[0];
  }
  return samples;
}

std::vector<std::vector<std::size_t>> common_batches(const std::vector<RequestLayout>& requests) {
  std::vector<std::vector<std::size_t>> batches;
  std::vector<std::optional<RequestLayout>> kinds;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto kind = kind_of(requests[i]);
    const auto same = kind ? std::ranges::find(kinds, kind) : kinds.end();
    if (same != kinds.end()) {
      batches[static_cast<std::size_t>(same - kinds.begin())].push_back(i);
    } else {
      batches.push_back({i});
      kinds.push_back(kind);
    }
  }
  return batches;
}

}  // namespace hortator::simulation
