#include "paging/page_traffic.hpp"

#include <cstring>
#include <hortator/error.hpp>
#include <random>
#include <span>

#include "core/text/text.hpp"
#include "fixtures.hpp"
#include "interception/storage_memory.hpp"
#include "support/catch.hpp"

namespace hortator::paging {
namespace {

/// Records its calls, and fails on demand.
class NotingStore final : public Store {
 public:
  comm::Work fetch(const Page& page, std::span<std::byte> frame) override {
    calls.push_back(text::concat("fetch ", page.number));
    return comm::Work([this, number = page.number, frame] {
      if (number == broken_fetch) throw Error({.what = "cannot be read"});
      calls.push_back(text::concat("have ", number));
      std::memset(frame.data(), number, frame.size());
    });
  }
  comm::Work publish(const Page& page, std::span<const std::byte> /*frame*/) override {
    calls.push_back(text::concat("publish ", page.number));
    return comm::Work([this, number = page.number] {
      if (number == broken_publish) throw Error({.what = "disk is full"});
      calls.push_back(text::concat("kept ", number));
    });
  }
  void advance() override { ++advances; }
  void announce(const Page& page) override { calls.push_back(text::concat("announce ", page.number)); }
  bool follows_storages() const override { return false; }

  std::vector<std::string> calls;
  int advances = 0;
  int broken_fetch = -1;
  int broken_publish = -1;
};

constexpr std::size_t page_bytes = 4096;

/// Pages of one storage each.
struct Fixture {
  explicit Fixture(int count, std::size_t pages_in_budget, int fetch_ahead, std::size_t announced_pages = 0)
      : storages(tensors(count)),
        pages(testing::pages_of(storages, page_bytes)),
        order(count),
        traffic(storages, pages, store,
                {.budget_bytes = pages_in_budget * page_bytes,
                 .fetch_ahead = fetch_ahead,
                 .announced_bytes = announced_pages * page_bytes}) {
    for (int i = 0; i < count; ++i) interception::take_memory(storages.storage(i), "absent");
  }

  static std::vector<NamedTensor> tensors(int count) {
    std::vector<NamedTensor> made;
    for (int i = 0; i < count; ++i)
      made.push_back({.name = text::concat("t", i), .tensor = at::zeros({page_bytes}, at::kByte)});
    return made;
  }
  void use(int page, bool changes = false) {
    order.note(page);
    traffic.pin(page, order);
    if (changes) traffic.mark_changed(page);
    traffic.unpin(page, order);
  }
  bool is_present(int page) const { return interception::memory_of(storages.storage(page)) != nullptr; }
  std::vector<std::string> take_calls() { return std::exchange(store.calls, {}); }

  PagedStorages storages;
  std::vector<Page> pages;
  NotingStore store;
  AccessOrder order;
  PageTraffic traffic;
};

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("The next pages are fetched before the needed one is waited for", "[page_traffic]") {
  Fixture f(6, 4, 2);
  f.use(0);
  CHECK(f.take_calls() == Calls{"fetch 0", "fetch 1", "fetch 2", "have 0"});
  f.use(1);
  CHECK(f.take_calls() == Calls{"fetch 3", "have 1"});
  CHECK(f.traffic.counters().fetched == 4);
  CHECK(f.traffic.counters().fetched_ahead == 3);
}

TEST_CASE("Pages for which there is no frame yet are announced to the store, each once", "[page_traffic]") {
  Fixture f(6, 2, 1, 2);
  f.use(0);
  CHECK(f.take_calls() == Calls{"fetch 0", "fetch 1", "announce 2", "announce 3", "have 0"});
  f.use(1);
  CHECK(f.take_calls() == Calls{"fetch 2", "announce 4", "have 1"});
}

TEST_CASE("Nothing is fetched or announced ahead beyond a boundary", "[page_traffic]") {
  Fixture f(4, 2, 1, 2);
  for (int pass = 0; pass < 3; ++pass) {
    for (int page = 0; page < 4; ++page) f.use(page);
    f.order.note_boundary();
    f.traffic.forget();
    f.take_calls();
  }
  for (int page = 0; page < 3; ++page) f.use(page);
  f.take_calls();
  f.use(3);
  CHECK(f.take_calls() == Calls{"have 3"});
}

TEST_CASE("Pages are driven while they are being fetched, and only then", "[page_traffic]") {
  Fixture f(4, 4, 1);
  f.traffic.advance();
  CHECK(f.store.advances == 0);
  f.use(0);
  f.traffic.advance();
  CHECK(f.store.advances == 1);  // page 1
  f.use(1);
  f.use(2);
  f.use(3);
  f.traffic.advance();
  CHECK(f.store.advances == 1);
}

TEST_CASE("The first pages can be fetched before they are used", "[page_traffic]") {
  Fixture f(6, 2, 1, 2);
  f.traffic.expect(f.order);
  CHECK(f.take_calls() == Calls{"fetch 0", "announce 1", "announce 2"});
  f.use(0);
  CHECK(f.take_calls() == Calls{"fetch 1", "announce 3", "have 0"});
}

TEST_CASE("The storages of a present page point into its frame", "[page_traffic]") {
  Fixture f(3, 3, 0);
  f.use(2);
  const auto& tensor = f.storages.tensors()[2].tensor;
  CHECK(tensor.eq(2).all().item<bool>());
  CHECK(tensor.const_data_ptr() == static_cast<const void*>(f.traffic.memory(2)));
}

TEST_CASE("A page that is pinned while the store gets newer content is dropped when it is unpinned", "[page_traffic]") {
  Fixture f(3, 3, 0);
  f.use(1);
  f.traffic.pin(0, f.order);
  f.traffic.mark_changed(0);
  f.traffic.forget();
  CHECK(f.is_present(0));
  CHECK(!f.is_present(1));
  f.take_calls();
  f.traffic.unpin(0, f.order);
  CHECK(!f.is_present(0));
  CHECK(f.take_calls().empty());  // the store has newer content
  f.use(0);
  f.use(1);
  CHECK(f.is_present(0));
}

TEST_CASE("The budget holds, and the page that is needed last is evicted", "[page_traffic]") {
  Fixture f(6, 3, 1);
  for (int pass = 0; pass < 3; ++pass) {
    for (int page = 0; page < 6; ++page) f.use(page);
  }
  CHECK(f.traffic.counters().peak_frame_bytes == 3 * page_bytes);
  f.take_calls();
  const auto before = f.traffic.counters().fetched;
  for (int page = 0; page < 6; ++page) f.use(page);
  // A pager that evicts the least recently used page would fetch all six each time.
  CHECK(f.traffic.counters().fetched - before < 6);
}

TEST_CASE("One operator may need more than the budget", "[page_traffic]") {
  Fixture f(4, 1, 0);
  for (int page = 0; page < 4; ++page) {
    f.order.note(page);
    f.traffic.pin(page, f.order);
  }
  for (int page = 0; page < 4; ++page) CHECK(f.is_present(page));
  for (int page = 0; page < 4; ++page) f.traffic.unpin(page, f.order);
  CHECK(f.traffic.counters().frame_bytes <= page_bytes);
}

TEST_CASE("Without a budget pages are evicted when the operator ends", "[page_traffic]") {
  Fixture f(3, 0, 2);
  f.use(0);
  CHECK_FALSE(f.is_present(0));
  f.use(1, true);
  CHECK_FALSE(f.is_present(1));
  CHECK(f.take_calls() == Calls{"fetch 0", "have 0", "fetch 1", "have 1", "publish 1"});
  f.use(2);  // waits for the page that is being published
  CHECK(f.take_calls() == Calls{"kept 1", "fetch 2", "have 2"});
}

TEST_CASE("A changed page that is needed while it is published is not read again", "[page_traffic]") {
  Fixture f(3, 0, 0);
  f.use(0, true);
  f.take_calls();
  f.order.note(1);
  f.use(0);
  CHECK(f.take_calls() == Calls{"kept 0"});
}

TEST_CASE("A page that cannot be read is absent, and may be fetched again", "[page_traffic]") {
  Fixture f(3, 3, 2);
  f.store.broken_fetch = 1;
  CHECK_NOTHROW(f.use(0));  // page 1 was only read ahead
  CHECK_THROWS_WITH(f.use(1), ContainsSubstring("cannot be read"));
  CHECK(f.traffic.counters().frame_bytes <= 3 * page_bytes);
  CHECK_FALSE(f.is_present(1));
  f.store.broken_fetch = -1;
  f.use(1);
  CHECK(f.is_present(1));
}

TEST_CASE("A page that cannot be published stays, with its changes", "[page_traffic]") {
  Fixture f(3, 1, 0);
  f.use(0, true);
  f.store.broken_publish = 0;
  CHECK_THROWS_WITH(f.use(1), ContainsSubstring("disk is full"));
  CHECK(f.is_present(0));
  f.store.broken_publish = -1;
  f.use(1);
  CHECK_FALSE(f.is_present(0));
  const auto calls = f.take_calls();
  CHECK(std::count(calls.begin(), calls.end(), "kept 0") == 1);
}

TEST_CASE("The calls depend only on the order of uses", "[page_traffic]") {
  const auto calls = [] {
    Fixture f(7, 4, 2);
    for (const int page : {0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 0, 1, 6, 2, 5, 0})
      f.use(page, page % 3 == 0);
    return f.take_calls();
  };
  const auto first = calls();
  CHECK(first.size() > 20);
  CHECK(calls() == first);
}

TEST_CASE("evict() drops all pages unpublished, publish_changed() publishes without dropping", "[page_traffic]") {
  Fixture f(3, 3, 0);
  f.use(0, true);
  f.use(1, true);
  f.take_calls();
  f.traffic.publish_changed();
  CHECK(f.take_calls() == Calls{"publish 0", "kept 0", "publish 1", "kept 1"});
  CHECK(f.is_present(0));
  f.use(1, true);
  f.traffic.evict();
  CHECK(f.take_calls().empty());
  CHECK_FALSE(f.is_present(1));
  CHECK(f.traffic.counters().frame_bytes == 0);
}

TEST_CASE("Pages of all sizes stay within the lent frames, in any order", "[page_traffic]") {
  constexpr std::size_t largest = 4 * page_bytes;
  std::vector<NamedTensor> tensors;
  for (const auto size : {4, 1, 4, 1, 3, 4, 1, 2, 4})
    tensors.push_back({.name = "t", .tensor = at::zeros({static_cast<std::int64_t>(size * page_bytes)}, at::kByte)});
  PagedStorages storages(tensors);
  const auto pages = testing::pages_of(storages, 1);
  REQUIRE(pages.size() == tensors.size());
  std::vector<std::byte> memory(3 * largest);
  const std::span all(memory);
  NotingStore store;
  AccessOrder order(static_cast<int>(pages.size()));
  PageTraffic traffic(storages, pages, store,
                      {.budget_bytes = memory.size(),
                       .fetch_ahead = 1,
                       .frames = {all.subspan(0, largest), all.subspan(largest, largest), all.subspan(2 * largest)}});
  std::mt19937 random(3);
  for (int use = 0; use < 1000; ++use) {
    const auto page = static_cast<int>(use < 300 ? use % pages.size() : random() % pages.size());
    order.note(page);
    traffic.pin(page, order);
    const auto* data = traffic.memory(page);
    const auto bytes = pages[static_cast<std::size_t>(page)].bytes;
    REQUIRE((data >= memory.data() && data + bytes <= memory.data() + memory.size()));
    REQUIRE((data[0] == static_cast<std::byte>(page) && data[bytes - 1] == data[0]));
    traffic.unpin(page, order);
  }
  CHECK(traffic.counters().fetched_ahead > 100);
}

}  // namespace hortator::paging
