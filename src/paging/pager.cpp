#include "paging/pager.hpp"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <exception>
#include <hortator/error.hpp>
#include <iterator>
#include <utility>

#include "core/text/text.hpp"
#include "interception/claimed_operators.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/storage_memory.hpp"
#include "interception/weight_operators.hpp"
#include "machine/device/copy_bytes.hpp"
#include "machine/device/recording.hpp"
#include "machine/memory/memory_limit.hpp"
#include "machine/memory/system_memory.hpp"
#include "paging/page_traffic.hpp"

namespace hortator::paging {
namespace {

std::vector<int> page_of_each(const std::vector<Page>& pages, int storages) {
  std::vector<int> page_of(static_cast<std::size_t>(storages), -1);
  for (const auto& page : pages) {
    for (const auto& position : page.positions) page_of[static_cast<std::size_t>(position.storage)] = page.number;
  }
  return page_of;
}

std::size_t largest(const std::vector<Page>& pages) {
  std::size_t bytes = 0;
  for (const auto& page : pages) bytes = std::max(bytes, page.bytes);
  return bytes;
}

// The system's cache is shared, and what is read into it too early is evicted before it is needed.
std::size_t room_for_announced() {
  constexpr std::size_t max_bytes = std::size_t{1} << 30;
  return std::min(machine::available_memory().value_or(0) / 8, max_bytes);
}

// A recording would hold copies that are never made again, and frames that have other pages by then.
void refuse_in_recording() {
  if (!machine::is_recording()) return;
  throw UsageError(
      {.what = "A parameter of an offloaded module was used in a step that is recorded (accelerator.capture)",
       .why = "the host brings such parameters in, and a replay has no host",
       .hint = "leave out one of the two"});
}

PageUse page_use_of(interception::Access access, c10::Device device) {
  if (access == interception::Access::read_cast) return {.cast = at::autocast::get_autocast_dtype(device.type())};
  return {.is_exact = access != interception::Access::read};
}

std::vector<int> storages_in(const std::vector<Page>& pages) {
  std::vector<int> storages;
  for (const auto& page : pages) {
    for (const auto& position : page.positions) storages.push_back(position.storage);
  }
  return storages;
}

}  // namespace

Pager::Pager(PagedStorages storages, std::vector<Page> pages, std::unique_ptr<Store> store, const Options& options)
    : storages_(std::move(storages)),
      pages_(std::move(pages)),
      page_of_(page_of_each(pages_, storages_.size())),
      store_(std::move(store)),
      options_(options),
      order_(static_cast<int>(pages_.size())),
      is_ours_(static_cast<std::size_t>(storages_.size()), false),
      is_used_(static_cast<std::size_t>(storages_.size()), false),
      may_repack_(store_->follows_storages()) {
  interception::start_interception();
  make_traffic();
  try {
    for (const auto& page : pages_) take_over(page);
  } catch (...) {
    const auto error = std::current_exception();
    try {
      release();
    } catch (...) {  // report the first error
    }
    abandon();
    std::rethrow_exception(error);
  }
  traffic_->trim_frames();
}

Pager::~Pager() { abandon(); }

void Pager::make_traffic() {
  const auto needed = (static_cast<std::size_t>(options_.fetch_ahead) + 2) * machine::whole_pages(largest(pages_));
  const PageTraffic::Options options = {.budget_bytes = options_.budget_bytes != 0 ? options_.budget_bytes : needed,
                                        .fetch_ahead = options_.fetch_ahead,
                                        .announced_bytes = room_for_announced(),
                                        .frames = options_.frames};
  traffic_ = std::make_unique<PageTraffic>(storages_, pages_, *store_, options);
}

template <typename Act>
void Pager::for_each_tensor_in(const Page& page, const Act& act) const {
  for (std::size_t i = 0; i < storages_.tensors().size(); ++i) {
    if (page_of(storages_.storage_of(i)) == page.number) act(storages_.tensors()[i].tensor);
  }
}

void Pager::take_over(const Page& page) {
  const auto content = options_.origin == Origin::tensors ? interception::Content::keep : interception::Content::drop;
  for (const auto& position : page.positions) {
    const auto former = interception::claim_of(storages_.storage(position.storage));
    if (former) former.provider->hand_over(former.number, content);
    if (content == interception::Content::keep) interception::require_memory(storages_.storage(position.storage));
  }
  if (options_.origin == Origin::tensors) {
    traffic_->fill(page, [&](std::byte* frame) {
      for (const auto& position : page.positions)
        machine::copy_bytes(frame + position.offset, interception::memory_of(storages_.storage(position.storage)),
                            position.bytes, storages_.device());
    });
  }
  for (const auto& position : page.positions) {
    const auto& storage = storages_.storage(position.storage);
    interception::claim(storage, {.provider = this, .number = position.storage});
    is_ours_[static_cast<std::size_t>(position.storage)] = true;
    interception::take_memory(storage, absence_of(storages_, position.storage));
  }
  for_each_tensor_in(page, interception::add_key);
}

void Pager::give_back(const Page& page) {
  const bool is_ours = std::ranges::all_of(page.positions, [this](const PagePosition& position) {
    return is_ours_[static_cast<std::size_t>(position.storage)];
  });
  if (!is_ours) return;  // all storages of a page are, or none
  // An order that predicts nothing: pages that were given back must not be read ahead.
  const AccessOrder unknown(0);
  traffic_->pin(page.number, unknown, {.is_exact = true});
  std::vector<at::DataPtr> memories;
  try {
    for (const auto& position : page.positions) {
      memories.push_back(interception::new_memory(position.bytes, storages_.device()));
      machine::copy_bytes(static_cast<std::byte*>(memories.back().get()),
                          traffic_->memory(page.number) + position.offset, position.bytes, storages_.device());
    }
  } catch (...) {
    traffic_->unpin(page.number, unknown);
    throw;
  }
  for (std::size_t i = 0; i < memories.size(); ++i) {
    const auto& storage = storages_.storage(page.positions[i].storage);
    interception::own_memory(storage, std::move(memories[i]));
    interception::disclaim(storage);
    is_ours_[static_cast<std::size_t>(page.positions[i].storage)] = false;
  }
  for_each_tensor_in(page, interception::remove_key_of_claim);
  traffic_->forget_page(page.number);
}

void Pager::abandon() noexcept {
  for (int storage = 0; storage < storages_.size(); ++storage) {
    if (!is_ours_[static_cast<std::size_t>(storage)]) continue;
    interception::disclaim(storages_.storage(storage));
    interception::take_memory(
        storages_.storage(storage),
        text::concat("The parameter ", text::quote(storages_.representative(storage).name),
                     " has no values: its offloading or sharding has ended. To keep the values, call Offload::remove() "
                     "or Accelerator::free_memory() before that"));
  }
}

void Pager::release() {
  const std::lock_guard lock(mutex_);
  for (const auto& page : pages_) give_back(page);
  interception::refresh_weights();  // operators of adapters and packed weights are intercepted by the same key
}

void Pager::enter(int storage, interception::Access access) {
  refuse_in_recording();
  const std::lock_guard lock(mutex_);
  note_first_use(storage);
  // If the pass cannot begin, the next use tries again.
  const bool is_repeated = std::exchange(last_use_, -1) == storage;
  if (storage == first_uses_.front() && !is_repeated) begin_pass();
  last_use_ = storage;
  const int page = page_of(storage);
  order_.note(page);
  try {
    traffic_->advance();
    traffic_->pin(page, order_, page_use_of(access, storages_.device()));
  } catch (...) {
    if (store_->take_divergence()) start_over();
    throw;
  }
  if (access == interception::Access::write) traffic_->mark_changed(page);
}

void Pager::expect_use() {
  const std::lock_guard lock(mutex_);
  traffic_->expect(order_);
}

void Pager::leave(int storage) noexcept {
  const std::lock_guard lock(mutex_);
  traffic_->unpin(page_of(storage), order_);
  try {
    traffic_->advance();
  } catch (...) {  // thrown again when the page that is being fetched is needed
  }
}

void Pager::hand_over(int storage, interception::Content /*content*/) {
  throw UsageError({.what = text::concat("The parameter ", text::quote(storages_.representative(storage).name),
                                         " is already offloaded or sharded"),
                    .hint = "end that first, by Offload::remove() or Accelerator::free_memory()"});
}

void Pager::note_first_use(int storage) {
  if (is_used_[static_cast<std::size_t>(storage)]) return;
  is_used_[static_cast<std::size_t>(storage)] = true;
  first_uses_.push_back(storage);
}

// Called when the parameter that was used first is used again.
void Pager::begin_pass() {
  audit();
  if (!may_repack_ || traffic_->is_any_pinned() || first_uses_.size() < 2) return;
  may_repack_ = false;
  repack();
}

// All ranks that share the store begin again without present pages and without a recorded order.
void Pager::start_over() {
  traffic_->forget();
  order_ = AccessOrder(static_cast<int>(pages_.size()));
}

// Puts storages that are used one after the other into one page, whatever their order in the module.
void Pager::repack() {
  auto order = first_uses_;
  const auto before = storages_in(pages_);
  std::ranges::copy_if(before, std::back_inserter(order),
                       [this](int storage) { return !is_used_[static_cast<std::size_t>(storage)]; });
  if (order == before) return;
  traffic_->publish_changed();
  traffic_->evict();
  pages_ = plan_pages(storages_.items(), order, options_.plan);
  for (const auto& page : pages_) {
    for (const auto& position : page.positions) page_of_[static_cast<std::size_t>(position.storage)] = page.number;
  }
  order_ = AccessOrder(static_cast<int>(pages_.size()));
  traffic_->start_over();
}

void Pager::audit() const {
  for (std::size_t i = 0; i < storages_.tensors().size(); ++i) {
    const auto& [name, tensor] = storages_.tensors()[i];
    const auto number = storages_.storage_of(i);
    if (!is_ours_[static_cast<std::size_t>(number)]) continue;
    const auto* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    if (interception::carries_key(tensor) && storage == storages_.storage(number).unsafeGetStorageImpl()) continue;
    throw UsageError(
        {.what = text::concat("The parameter ", text::quote(name),
                              " was replaced while it is offloaded or sharded: by module->to(), set_data(), "
                              "or torch::load()"),
         .why = "the new memory is neither paged nor saved",
         .hint = "do that before offloading or sharding, or change the values in place (copy_())"});
  }
}

void Pager::publish_changed() {
  const std::lock_guard lock(mutex_);
  traffic_->publish_changed();
}

void Pager::forget_all() {
  const std::lock_guard lock(mutex_);
  order_.note_boundary();
  traffic_->forget();
}

void Pager::trim_frames() {
  const std::lock_guard lock(mutex_);
  traffic_->trim_frames();
}

PageTraffic::Counters Pager::counters() const {
  const std::lock_guard lock(mutex_);
  return traffic_->counters();
}

}  // namespace hortator::paging
