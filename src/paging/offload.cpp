#include <algorithm>
#include <hortator/bigmodel/offload.hpp>
#include <hortator/error.hpp>
#include <numeric>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "interception/claimed_operators.hpp"
#include "machine/device/memory.hpp"
#include "paging/offload_state.hpp"
#include "paging/stores/file_store.hpp"
#include "paging/stores/host_stores.hpp"
#include "paging/stores/paged_storages.hpp"
#include "paging/stores/staged_store.hpp"

namespace hortator {
namespace {

std::vector<paging::Page> pages_of(const std::vector<paging::PageItem>& items, const paging::PagePlan& plan) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  return paging::plan_pages(items, order, plan);
}

void check(const DiskOffloadOptions& options) {
  if (options.read_ahead_pages >= 0 && options.page_bytes > 0) return;
  throw UsageError({.what = text::concat("disk_offload: invalid read_ahead_pages '", options.read_ahead_pages,
                                         "' or page_bytes '", options.page_bytes, "'"),
                    .hint = "use read_ahead_pages from 0 and page_bytes from 1"});
}

void check(const CpuOffloadOptions& options) {
  if (options.fetch_ahead_pages >= 0 && options.page_bytes > 0) return;
  throw UsageError({.what = text::concat("cpu_offload: invalid fetch_ahead_pages '", options.fetch_ahead_pages,
                                         "' or page_bytes '", options.page_bytes, "'"),
                    .hint = "use fetch_ahead_pages from 0 and page_bytes from 1"});
}

}  // namespace

Offload::Offload(std::unique_ptr<State> state) : state_(std::move(state)) {}
Offload::Offload(Offload&& other) noexcept = default;
Offload& Offload::operator=(Offload&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Offload::~Offload() {
  if (state_) state_->remove_if_possible();
}
void Offload::remove() {
  if (state_) state_->remove();
}
OffloadCounters Offload::counters() const { return state_ ? state_->counters() : OffloadCounters{}; }

namespace {

bool is_on_device(const std::vector<paging::NamedTensor>& tensors) {
  return std::ranges::any_of(tensors, [](const auto& named) {
    return named.tensor.defined() && !named.tensor.is_cpu() && !named.tensor.is_meta();
  });
}

paging::PagedStorages storages_of(std::vector<paging::NamedTensor> tensors) {
  using Where = paging::PagedStorages::Where;
  const auto where = is_on_device(tensors) ? Where::one_device : Where::host;
  return paging::PagedStorages(std::move(tensors), where);
}

Offload to_disk(std::vector<paging::NamedTensor> tensors, const std::filesystem::path& folder,
                const DiskOffloadOptions& options) {
  auto storages = storages_of(std::move(tensors));
  const auto items = storages.items();
  std::vector<std::uint64_t> bytes;
  for (const auto& item : items) bytes.push_back(item.bytes);
  formats::make_folder(folder);
  std::unique_ptr<paging::Store> store = std::make_unique<paging::FileStore>(
      bytes, std::vector<paging::FileLocation>(items.size()), paging::FileStore::Options{.scratch = folder});
  const auto device = storages.device();
  if (!device.is_cpu()) store = std::make_unique<paging::StagedStore>(std::move(store), device, machine::page_locked);
  const paging::PagePlan plan = {.page_bytes = options.page_bytes};
  return Offload(std::make_unique<Offload::State>(
      std::move(storages), pages_of(items, plan), std::move(store),
      paging::Pager::Options{
          .budget_bytes = options.resident_bytes, .fetch_ahead = options.read_ahead_pages, .plan = plan},
      device.is_cpu() ? options.recycled_bytes : 0));
}

Offload from_device(std::vector<paging::NamedTensor> tensors, const CpuOffloadOptions& options) {
  auto storages = storages_of(std::move(tensors));
  const paging::PagePlan plan = {.page_bytes = options.page_bytes};
  auto pages = pages_of(storages.items(), plan);
  auto store = std::make_unique<paging::PinnedStore>(pages, storages.device());
  return Offload(std::make_unique<Offload::State>(
      std::move(storages), std::move(pages), std::move(store),
      paging::Pager::Options{
          .budget_bytes = options.resident_bytes, .fetch_ahead = options.fetch_ahead_pages, .plan = plan},
      0));
}

Offload to_host(std::vector<paging::NamedTensor> tensors, const CpuOffloadOptions& options) {
  if (is_on_device(tensors)) return from_device(std::move(tensors), options);
  paging::PagedStorages storages(std::move(tensors));
  auto pages = pages_of(storages.items(), {});
  auto store = std::make_unique<paging::HostStore>(pages, paging::HostStore::Use::in_place);
  return Offload(std::make_unique<Offload::State>(std::move(storages), std::move(pages), std::move(store),
                                                  paging::Pager::Options{}, 0));
}

paging::TensorSelection selection_of(const auto& options) {
  return {.keep_resident = options.keep_resident, .buffers = options.offload_buffers};
}

}  // namespace

Offload detail::disk_offload(const torch::nn::Module& module, const std::filesystem::path& folder,
                             const DiskOffloadOptions& options) {
  check(options);
  return to_disk(paging::named_tensors(module, selection_of(options)), folder, options);
}
Offload disk_offload(const torch::jit::Module& model, const std::filesystem::path& folder,
                     const DiskOffloadOptions& options) {
  check(options);
  return to_disk(paging::named_tensors(model, selection_of(options)), folder, options);
}
Offload detail::cpu_offload(const torch::nn::Module& module, const CpuOffloadOptions& options) {
  check(options);
  return to_host(paging::named_tensors(module, selection_of(options)), options);
}
Offload cpu_offload(const torch::jit::Module& model, const CpuOffloadOptions& options) {
  check(options);
  return to_host(paging::named_tensors(model, selection_of(options)), options);
}

class Pin::Held {
 public:
  Held(const std::vector<at::Tensor>& tensors, For purpose)
      : hold_(tensors, purpose == For::writing ? interception::Access::write : interception::Access::read_exact) {}

 private:
  interception::Hold hold_;
};

Pin::Pin(const std::vector<at::Tensor>& tensors, For purpose) : held_(std::make_unique<Held>(tensors, purpose)) {}
Pin::Pin(const at::Tensor& tensor, For purpose) : Pin(std::vector<at::Tensor>{tensor}, purpose) {}
Pin::~Pin() = default;

}  // namespace hortator
