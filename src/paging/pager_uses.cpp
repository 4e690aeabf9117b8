#include <algorithm>
#include <hortator/error.hpp>
#include <iterator>
#include <utility>

#include "core/text/text.hpp"
#include "paging/interception/paged_key.hpp"
#include "paging/pager.hpp"

namespace hortator::paging {
namespace {

constexpr std::size_t max_uses = std::size_t{1} << 16;

std::vector<int> storages_in(const std::vector<Page>& pages) {
  std::vector<int> storages;
  for (const auto& page : pages) {
    for (const auto& position : page.positions) storages.push_back(position.storage);
  }
  return storages;
}

}  // namespace

void Pager::enter(int storage, Access access) {
  const std::lock_guard lock(mutex_);
  note_first_use(storage);
  const bool is_repeated = std::exchange(last_use_, storage) == storage;
  if (storage == first_uses_.front() && !is_repeated) begin_pass();
  const int page = page_of(storage);
  if (order_.note(page)) {
    uses_.push_back(page);
    if (uses_.size() > max_uses) uses_.erase(uses_.begin(), uses_.begin() + max_uses / 2);
  }
  try {
    traffic_->pin(page, order_);
  } catch (...) {
    if (store_->take_divergence()) start_over();
    throw;
  }
  if (access == Access::write) traffic_->mark_changed(page);
}

void Pager::expect_use() {
  const std::lock_guard lock(mutex_);
  traffic_->expect(order_);
}

void Pager::leave(int storage) noexcept {
  const std::lock_guard lock(mutex_);
  traffic_->unpin(page_of(storage), order_);
}

void Pager::hand_over(int storage, Content /*content*/) {
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
  audit_now();
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
  std::copy_if(before.begin(), before.end(), std::back_inserter(order),
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
  const std::lock_guard lock(mutex_);
  audit_now();
}

void Pager::audit_now() const {
  for (std::size_t i = 0; i < storages_.tensors().size(); ++i) {
    const auto& [name, tensor] = storages_.tensors()[i];
    const auto number = storages_.storage_of(i);
    if (!is_ours_[static_cast<std::size_t>(number)]) continue;
    const auto* storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    if (carries_key(tensor) && storage == storages_.storage(number).unsafeGetStorageImpl()) continue;
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

void Pager::evict_all() {
  const std::lock_guard lock(mutex_);
  traffic_->publish_changed();
  traffic_->evict();
}

void Pager::forget_all() {
  const std::lock_guard lock(mutex_);
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

std::vector<int> Pager::take_uses() {
  const std::lock_guard lock(mutex_);
  return std::exchange(uses_, {});
}

}  // namespace hortator::paging
