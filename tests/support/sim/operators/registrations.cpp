// What LibTorch asks of a device by name. All other operators go to one fallback.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "support/sim/copies.hpp"
#include "support/sim/current.hpp"
#include "support/sim/memory.hpp"
#include "support/sim/near.hpp"
#include "support/sim/operators/operators.hpp"
#include "support/sim/operators/plain_scope.hpp"
#include "support/sim/tensors.hpp"

namespace hortator::sim {
namespace {

int index_of(std::optional<at::Device> device) {
  return device && device->has_index() ? device->index() : current_device();
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                 std::optional<at::Device> device, std::optional<bool> /*pin*/,
                 std::optional<at::MemoryFormat> format) {
  const CurrentDevice scope(index_of(device));
  return at::detail::empty_generic(sizes, &device_allocator(), far_keys, c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                         std::optional<bool> /*pin*/) {
  const CurrentDevice scope(index_of(device));
  return at::detail::empty_strided_generic(sizes, strides, &device_allocator(), far_keys, c10::dtype_or_default(type));
}

at::Tensor copy_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) resize_tensor(to, from.sizes());
  return copy_tensor(from, to, false);
}

const at::Tensor& resize_(const at::Tensor& tensor, at::IntArrayRef sizes, std::optional<at::MemoryFormat> /*format*/) {
  resize_tensor(tensor, sizes);
  return tensor;
}

at::Tensor& set(at::Tensor& tensor, at::Storage storage, std::int64_t offset, at::IntArrayRef sizes,
                at::IntArrayRef strides) {
  auto* const impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(sizes, strides);
  return tensor;
}

// As between CPU and CUDA: to() replaces the memory of a parameter.
bool may_take_place(const at::Tensor& /*tensor*/, const at::Tensor& /*from*/) { return true; }

void record_stream(at::Tensor& tensor, at::Stream stream) {
  if (auto* const block = block_at(near(tensor.storage().mutable_data()))) note_use(*block, number_of(stream));
}

std::int64_t attention_by_products(const at::Tensor& /*query*/, const at::Tensor& /*key*/, const at::Tensor& /*value*/,
                                   const std::optional<at::Tensor>& /*mask*/, double /*dropout*/, bool /*causal*/,
                                   std::optional<double> /*scale*/, bool /*grouped*/) {
  return 0;
}

// LibTorch's kernel for the CPU has no argument for a generator.
std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double probability, std::optional<bool> training) {
  if (!training.value_or(true) || probability == 0)
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  auto mask = at::empty_like(input, input.options().dtype(at::kBool)).bernoulli_(1 - probability);
  const auto scale = probability == 1 ? 0.0 : 1 / (1 - probability);
  return {at::mul(input, mask).mul_(scale), mask};
}

c10::OperatorHandle operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) { run_operator(op, stack); }

void convolution(const c10::OperatorHandle& /*op*/, torch::jit::Stack* stack) {
  static const auto op = operator_named("aten::convolution");
  run_operator(op, stack);
}

// It has the sizes of the bias before the stride.
void convolution_backward(const c10::OperatorHandle& /*op*/, torch::jit::Stack* stack) {
  static const auto op = operator_named("aten::convolution_backward");
  const auto stride = stack->end() - 7;
  const auto weight = (stride - 1)->toTensor();
  const auto is_transposed = (stride + 3)->toBool();
  const auto channels = is_transposed ? weight.size(1) * (stride + 5)->toInt() : weight.size(0);
  stack->insert(stride, c10::IValue(std::vector<std::int64_t>{channels}));
  run_operator(op, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_tensor);
  library.impl("_copy_from_and_resize", copy_and_resize);
  library.impl("resize_", resize_);
  library.impl("set_.source_Storage_storage_offset", set);
  library.impl("_has_compatible_shallow_copy_type", may_take_place);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(at::native::view));
  library.impl("record_stream", record_stream);
  library.impl("_fused_sdp_choice", attention_by_products);
  library.impl("native_dropout", dropout);
  library.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  library.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace
}  // namespace hortator::sim
