#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "interception/claims.hpp"
#include "paging/access_order.hpp"
#include "paging/page_traffic.hpp"
#include "paging/stores/paged_storages.hpp"
#include "paging/stores/store.hpp"

namespace hortator::paging {

/// Keeps a module's parameters in memory only while they are used: before an operator reads one (interception.hpp), its
/// page is fetched. Pages are read ahead in the order of their last uses; the page that is expected last is evicted.
///
/// Parameters stay the same tensors: leaves, with their gradients, hooks and versions. In-place changes are noticed,
/// and published when the page is evicted. Raw pointers are valid while a Hold or an operator keeps the page;
/// data_ptr() of an absent one throws. Thread-safe: a thread that needs a page waits for it.
class Pager final : public interception::StorageProvider {
 public:
  /// Where the pages' first content comes from.
  enum class Origin {
    tensors,  ///< the parameters' own memory, which is published page by page and freed
    store     ///< the store, which has it already; the parameters' memory is freed
  };
  struct Options {
    std::size_t budget_bytes = 0;  ///< of frames; 0: of `fetch_ahead` + 2 of the largest pages
    int fetch_ahead = 2;           ///< maximum number of pages under way
    Origin origin = Origin::tensors;
    std::vector<std::span<std::byte>> frames = {};  ///< memory for frames, used first; must outlive the pager
    PagePlan plan = {};  ///< for the distribution over pages after the first pass, if the store follows storages
  };

  /// Each storage must be in exactly one page. If it throws, the parameters are unchanged.
  Pager(PagedStorages storages, std::vector<Page> pages, std::unique_ptr<Store> store, const Options& options);
  /// Leaves parameters that are still paged without values: using one throws an error that says so.
  ~Pager() override;
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  /// Gives all parameters memory of their own, with their present values, and stops paging them. If it throws, some may
  /// still be paged, and it can be called again.
  void release();

  /// Publishes all changed pages, and waits for the store. Pages stay present.
  void publish_changed();
  /// Drops all pages without publishing: the store has newer content (sharded parameters after the optimizer's step).
  void forget_all();
  /// Returns free frames to the system.
  void trim_frames();

  const PagedStorages& storages() const { return storages_; }
  const std::vector<Page>& pages() const { return pages_; }  ///< not while operators run, which may change them
  int page_of(int storage) const { return page_of_[static_cast<std::size_t>(storage)]; }
  PageTraffic::Counters counters() const;
  /// Whether reading a parameter is @collective over ranks that each keep a part of it.
  bool needs_ranks() const { return store_->needs_ranks(); }

  /// Starts to fetch the first pages: the parameters are about to be used in the order of the last pass.
  void expect_use();

  void enter(int storage, interception::Access access) override;
  void leave(int storage) noexcept override;
  void hand_over(int storage, interception::Content content) override;

 private:
  void take_over(const Page& page);
  void give_back(const Page& page);
  void abandon() noexcept;
  template <typename Act>
  void for_each_tensor_in(const Page& page, const Act& act) const;
  void note_first_use(int storage);
  void begin_pass();
  void start_over();
  void repack();
  /// Throws UsageError unless every parameter is as the pager made it: module->to(), set_data() and torch::load() give
  /// it other memory, which would not be paged or published. Costs a few ns a parameter.
  void audit() const;
  void make_traffic();

  mutable std::mutex mutex_;
  PagedStorages storages_;
  std::vector<Page> pages_;
  std::vector<int> page_of_;
  std::unique_ptr<Store> store_;
  Options options_;
  AccessOrder order_;
  std::vector<bool> is_ours_;    ///< of each storage
  std::vector<int> first_uses_;  ///< storages, in the order of their first use
  std::vector<bool> is_used_;    ///< of each storage
  int last_use_ = -1;            ///< a storage
  bool may_repack_ = false;
  std::unique_ptr<PageTraffic> traffic_;  ///< last: it uses the other members
};

}  // namespace hortator::paging
