#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "paging/access_order.hpp"
#include "paging/interception/storage_provider.hpp"
#include "paging/page.hpp"
#include "paging/page_traffic.hpp"
#include "paging/paged_storages.hpp"
#include "paging/stores/store.hpp"

namespace hortator::paging {

/// Keeps a module's parameters in memory only while they are used: before an operator reads one (interception.hpp), its
/// page is there. What comes next is read ahead along the order of the pages' last uses; what is needed last makes way.
///
/// Parameters stay the tensors that they were: leaves, with their gradients, hooks and versions. In-place changes are
/// seen, and published when the page leaves. Raw pointers are good while a Hold or an operator keeps the page;
/// data_ptr() of an absent one throws. May be used from any thread: one that needs a page waits for it.
class Pager final : public StorageProvider {
 public:
  /// Where the pages' first content comes from.
  enum class Origin {
    tensors,  ///< the parameters' own memory, which is published page by page, and freed
    store     ///< the store has it already; the parameters' memory is only freed
  };
  struct Options {
    std::size_t budget_bytes = 0;  ///< of frames; 0: of `fetch_ahead` + 2 of the largest pages
    int fetch_ahead = 2;           ///< pages under way at most
    Origin origin = Origin::tensors;
    PagePlan plan = {};  ///< by which pages are dealt anew after the first pass, if the store follows storages
  };

  /// Each storage is in exactly one page. If it throws, the parameters are as they were.
  Pager(PagedStorages storages, std::vector<Page> pages, std::unique_ptr<Store> store, const Options& options);
  /// Parameters that are still paged are left without values: to use one is an error that says so.
  ~Pager() override;
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  /// Gives all parameters memory of their own again, with their present values, and lets go of them. If it throws, some
  /// may still be paged, and it can be called again.
  void release();

  /// Throws UsageError unless every parameter is as the pager made it: module->to(), set_data() and torch::load() put
  /// other memory in place, after which nothing would be paged or published any more. A few ns a parameter; done
  /// without being asked at the start of each pass.
  void audit() const;

  /// What was changed is published; when it returns the store has it. Pages stay.
  void publish_changed();
  /// The same, and what no operator uses leaves: the next use gets what the store holds then.
  void evict_all();
  /// Everything leaves unpublished: the store has newer content (sharded parameters after the optimizer's step).
  void forget_all();
  /// Free frames go back to the system.
  void trim_frames();

  const PagedStorages& storages() const { return storages_; }
  const std::vector<Page>& pages() const { return pages_; }  ///< not while operators run: they may be dealt anew
  int page_of(int storage) const { return page_of_[static_cast<std::size_t>(storage)]; }
  PageTraffic::Counters counters() const;

  /// The pages in the order in which they were used since the last call, as far as it is kept (65536 uses): for ranks
  /// to compare.
  std::vector<int> take_uses();

  /// The parameters are about to be used in the order of before: what comes first is asked for.
  void expect_use();

  void enter(int storage, Access access) override;
  void leave(int storage) noexcept override;
  void hand_over(int storage, Content content) override;

 private:
  void take_over(const Page& page);
  void give_back(const Page& page);
  void abandon() noexcept;
  template <typename Act>
  void for_each_tensor_in(const Page& page, const Act& act) const;
  void note_first_use(int storage);
  void begin_pass();
  void start_over();
  void deal_anew();
  void audit_now() const;
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
  bool may_deal_anew_ = false;
  std::vector<int> uses_;
  std::unique_ptr<PageTraffic> traffic_;  ///< the last: it works with all of these
};

}  // namespace hortator::paging
