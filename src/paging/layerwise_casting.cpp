#include <algorithm>
#include <hortator/bigmodel/layerwise_casting.hpp>
#include <hortator/error.hpp>
#include <numeric>
#include <set>

#include "core/text/text.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "paging/offload_state.hpp"
#include "paging/stores/cast_store.hpp"

namespace hortator {
namespace {

void check(c10::ScalarType storage_type) {
  if (paging::holds_weights(storage_type)) return;
  throw UsageError({.what = text::concat("Weights were to be kept as ", c10::toString(storage_type)),
                    .why = "floating-point weights are kept in a smaller floating-point type",
                    .hint = "use at::kFloat8_e4m3fn, at::kBFloat16 or at::kHalf"});
}

/// Vectors (biases, the weights of norms) are small, and sensitive.
bool is_cast(const paging::NamedTensor& named, c10::ScalarType storage_type) {
  const auto& tensor = named.tensor;
  return tensor.defined() && tensor.is_floating_point() && tensor.dim() >= 2 &&
         static_cast<std::size_t>(tensor.element_size()) > c10::elementSize(storage_type);
}

/// Leaves out tensors that are not cast, and those in whose memory one of them lies.
void keep_those_to_cast(std::vector<paging::NamedTensor>& tensors, c10::ScalarType storage_type) {
  std::set<const c10::StorageImpl*> others;
  for (const auto& named : tensors) {
    if (named.tensor.defined() && named.tensor.has_storage() && !is_cast(named, storage_type))
      others.insert(named.tensor.storage().unsafeGetStorageImpl());
  }
  std::erase_if(tensors, [&](const auto& named) {
    return !is_cast(named, storage_type) || others.contains(named.tensor.storage().unsafeGetStorageImpl());
  });
}

/// A page for each storage: no more is converted than an operator uses.
std::vector<paging::Page> single_pages(const std::vector<paging::PageItem>& items) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  return paging::plan_pages(items, order, {.page_bytes = 1});
}

}  // namespace

Offload detail::cast_layerwise(const torch::nn::Module& module, c10::ScalarType storage_type,
                               const LayerwiseCastingOptions& options) {
  check(storage_type);
  auto tensors = paging::named_tensors(module, {.keep_resident = options.keep_resident, .buffers = true});
  keep_those_to_cast(tensors, storage_type);
  if (tensors.empty()) {
    throw UsageError({.what = text::concat("attach_layerwise_casting_hooks: no weight becomes smaller as ",
                                           c10::toString(storage_type)),
                      .why = "weights of two or more dimensions and of a larger floating-point type are cast",
                      .hint = "convert the model to the type in which it computes first: model->to(at::kBFloat16)"});
  }
  for (const auto& [name, tensor] : tensors) {
    if (!paging::is_deferred(tensor)) paging::require_fits(name, tensor.detach(), storage_type, paging::hint_for_kept);
  }
  const auto device = tensors.front().tensor.device();
  paging::PagedStorages storages(std::move(tensors), paging::PagedStorages::where_on(device));
  auto pages = single_pages(storages.items());
  auto store = std::make_unique<paging::CastStore>(storages, storage_type);
  return Offload(std::make_unique<Offload::State>(std::move(storages), std::move(pages), std::move(store),
                                                  paging::Pager::Options{.fetch_ahead = 0}, 0));
}

}  // namespace hortator
