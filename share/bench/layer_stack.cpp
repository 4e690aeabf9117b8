#include "bench/layer_stack.hpp"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/error.hpp>
#include <numeric>
#include <utility>

#include "formats/file/raw_file.hpp"
#include "paging/stores/file_store.hpp"
#include "paging/stores/paged_storages.hpp"

namespace hortator::bench {
namespace {

void write(const torch::nn::Sequential& net, const std::filesystem::path& path) {
  std::filesystem::remove(path);
  auto file = formats::RawFile::create(path);
  std::int64_t offset = 0;
  for (const auto& parameter : net->parameters()) {
    file.write_at(offset, parameter.const_data_ptr(), parameter.nbytes());
    offset += static_cast<std::int64_t>(parameter.nbytes());
  }
  file.sync();
  file.close();
}

}  // namespace

torch::nn::Sequential LayerStack::make_layers(std::int64_t count) {
  torch::nn::Sequential net;
  for (std::int64_t i = 0; i < count; ++i) net->push_back(torch::nn::Linear(width, width));
  return net;
}

LayerStack::LayerStack(const std::filesystem::path& folder, std::int64_t bytes)
    : layers_(std::max<std::int64_t>(bytes / layer_bytes, 2)),
      path_(folder / "layers.raw"),
      input_(at::randn({batch, width})),
      in_memory_(make_layers(layers_)),
      piece_(piece_bytes) {
  std::filesystem::create_directories(folder);
  write(in_memory_, path_);
  all_ = page(0);
  half_ = page(static_cast<std::size_t>(this->bytes()) / 2);
  const c10::InferenceMode inference;
  expected_ = in_memory_->forward(input_);
}

LayerStack::~LayerStack() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

LayerStack::Paged LayerStack::page(std::size_t budget_bytes) const {
  Paged paged = {.net = construct_deferred([&] { return make_layers(layers_); })};
  paging::PagedStorages storages(paging::named_tensors(*paged.net, {}));
  const auto items = storages.items();
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  const auto file = std::make_shared<formats::FixedFile>(path_);
  std::vector<std::uint64_t> bytes;
  std::vector<paging::FileLocation> places;
  std::uint64_t offset = 0;
  for (const auto& item : items) {
    bytes.push_back(item.bytes);
    places.push_back({.file = file, .offset = offset});
    offset += item.bytes;
  }
  const paging::PagePlan plan = {.page_bytes = static_cast<std::size_t>(layer_bytes) + 64};
  auto pages = paging::plan_pages(items, order, plan);
  auto store = std::make_unique<paging::FileStore>(std::move(bytes), std::move(places), paging::FileStore::Options{});
  paged.pager = std::make_unique<paging::Pager>(
      std::move(storages), std::move(pages), std::move(store),
      paging::Pager::Options{.budget_bytes = budget_bytes, .origin = paging::Pager::Origin::store, .plan = plan});
  return paged;
}

void LayerStack::forward_in_memory() {
  const c10::InferenceMode inference;
  in_memory_->forward(input_);
}

void LayerStack::forward(Paged& paged) {
  const c10::InferenceMode inference;
  const auto actual = paged.net->forward(input_);
  peak_ = paged.pager->counters().peak_frame_bytes;
  check(actual);
}

void LayerStack::check(const at::Tensor& actual) const {
  if (at::equal(actual, expected_)) return;
  throw Error({.what = "Layers from a file computed a different result than layers in memory"});
}

void LayerStack::forward_from_disk() { forward(all_); }
void LayerStack::forward_half_from_disk() { forward(half_); }

void LayerStack::read_file() {
  const auto file = formats::RawFile::open_for_reading(path_);
  const auto end = bytes();
  for (std::int64_t offset = 0; offset < end; offset += static_cast<std::int64_t>(piece_.size())) {
    const auto count = std::min<std::int64_t>(end - offset, static_cast<std::int64_t>(piece_.size()));
    file.read_at(offset, piece_.data(), static_cast<std::size_t>(count));
  }
}

void LayerStack::drop_cache() { formats::RawFile::open_for_reading(path_).forget_cached(); }

std::size_t LayerStack::take_peak_frame_bytes() { return std::exchange(peak_, 0); }

}  // namespace hortator::bench
