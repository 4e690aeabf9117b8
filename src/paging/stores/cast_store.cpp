#include "paging/stores/cast_store.hpp"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <hortator/error.hpp>
#include <limits>

#include "core/text/text.hpp"

namespace hortator::paging {
namespace {

double largest_of(at::ScalarType type) {
  double largest = 0;
  AT_DISPATCH_V2(type, "largest_of",
                 AT_WRAP([&] { largest = static_cast<double>(std::numeric_limits<scalar_t>::max()); }),
                 AT_EXPAND(AT_FLOATING_TYPES), at::kHalf, at::kBFloat16, AT_EXPAND(AT_FLOAT8_TYPES));
  return largest;
}

}  // namespace

void require_fits(const std::string& name, const at::Tensor& values, at::ScalarType type) {
  if (!values.abs().gt(largest_of(type)).any().item<bool>()) return;
  throw UsageError(
      {.what = text::concat("The parameter ", text::quote(name), " does not fit into ", c10::toString(type)),
       .why = "some of its numbers are larger than the largest of that type",
       .hint = "keep it as it is (keep_resident), or choose a type with a larger range"});
}

CastStore::CastStore(const PagedStorages& storages, at::ScalarType type) {
  for (int i = 0; i < storages.size(); ++i) {
    const auto& [name, tensor] = storages.representative(i);
    const auto elements = static_cast<std::int64_t>(storages.storage(i).nbytes() / tensor.element_size());
    kept_.push_back({.name = name,
                     .type = tensor.scalar_type(),
                     .values = at::empty({elements}, at::TensorOptions(tensor.device()).dtype(type))});
  }
}

at::Tensor CastStore::in_frame(const PagePosition& position, std::byte* frame) const {
  const auto& kept = kept_at(position);
  const auto device = kept.values.device();
  return at::from_blob(
      frame + position.offset, kept.values.sizes(), [](void*) {}, at::TensorOptions(device).dtype(kept.type), device);
}

comm::Work CastStore::fetch(const Page& page, std::span<std::byte> frame) {
  const at::NoGradGuard no_grad;
  for (const auto& position : page.positions) in_frame(position, frame.data()).copy_(kept_at(position).values);
  return {};
}

comm::Work CastStore::publish(const Page& page, std::span<const std::byte> frame) {
  const at::NoGradGuard no_grad;
  for (const auto& position : page.positions) {
    const auto& kept = kept_at(position);
    const auto values = in_frame(position, const_cast<std::byte*>(frame.data()));
    require_fits(kept.name, values, kept.values.scalar_type());
    kept.values.copy_(values);
  }
  return {};
}

}  // namespace hortator::paging
