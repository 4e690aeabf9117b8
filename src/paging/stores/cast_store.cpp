#include "paging/stores/cast_store.hpp"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <hortator/error.hpp>
#include <limits>
#include <utility>

#include "core/text/text.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::paging {
namespace {

struct NumberRange {
  double largest = 0;
  bool has_infinity = false;
};

NumberRange range_of(at::ScalarType type) {
  NumberRange range;
  AT_DISPATCH_V2(type, "range_of", AT_WRAP([&] {
                   using Limits = std::numeric_limits<scalar_t>;
                   range = {static_cast<double>(Limits::max()), Limits::has_infinity};
                 }),
                 AT_EXPAND(AT_FLOATING_TYPES), at::kHalf, at::kBFloat16, AT_EXPAND(AT_FLOAT8_TYPES));
  return range;
}

}  // namespace

bool holds_weights(at::ScalarType type) {
  return c10::isFloatingType(type) && type != at::kFloat8_e8m0fnu && type != at::kFloat4_e2m1fn_x2;
}

bool fits(const at::Tensor& values, at::ScalarType type) {
  const auto range = range_of(type);
  const auto sizes = values.abs();
  auto is_too_large = sizes.gt(range.largest);
  if (range.has_infinity) is_too_large = is_too_large.logical_and(sizes.isinf().logical_not());
  return !is_too_large.any().item<bool>();
}

void require_fits(const std::string& name, const at::Tensor& values, at::ScalarType type, std::string_view hint) {
  if (values.scalar_type() == type || !values.is_floating_point() || fits(values, type)) return;
  throw UsageError(
      {.what = text::concat("The tensor ", text::quote(name), " does not fit into ", formats::type_name(type)),
       .why = "some of its numbers are larger than the largest of that type",
       .hint = std::string(hint)});
}

CastStore::CastStore(const PagedStorages& storages, at::ScalarType type) {
  for (int i = 0; i < storages.size(); ++i) {
    const auto& [name, tensor] = storages.representative(i);
    const auto elements = static_cast<std::int64_t>(storages.storage(i).nbytes() / tensor.element_size());
    auto values = at::empty({elements}, at::TensorOptions(tensor.device()).dtype(type));  // first: it can throw
    kept_.push_back({.name = name, .type = tensor.scalar_type(), .values = std::move(values)});
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
    require_fits(kept.name, values, kept.values.scalar_type(), hint_for_kept);
    kept.values.copy_(values);
  }
  return {};
}

}  // namespace hortator::paging
