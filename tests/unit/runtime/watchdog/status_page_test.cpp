// The stores of a writer and the loads of a reader, in every order in which they can mix. The code is the real one,
// with words that record stores and apply them between the reader's loads.
#include "runtime/watchdog/status_page.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace {

/// How many of the recorded stores come before each load of the reader: all possibilities, one after the other.
class Schedule {
 public:
  void record(std::uint64_t* where, std::uint64_t value) { stores_.emplace_back(where, value); }
  std::size_t recorded() const { return stores_.size(); }
  void start() { applied_ = load_ = 0, is_reading_ = true; }
  std::size_t applied() const { return applied_; }

  void before_load() {
    if (!is_reading_) return;
    if (load_ == choices_.size()) choices_.push_back(0);
    for (auto count = choices_[load_++]; count > 0; --count) apply_next();
  }
  /// The writer continues without the reader.
  void apply_next() {
    const auto& [where, value] = stores_[applied_++];
    *where = value;
  }
  /// Chooses the next possibility. False after the last one.
  bool advance() {
    is_reading_ = false;
    choices_.resize(load_);
    for (auto left = stores_.size() - applied_; !choices_.empty(); choices_.pop_back()) {
      if (left > 0) {
        ++choices_.back();
        return true;
      }
      left += choices_.back();
    }
    return false;
  }

 private:
  std::vector<std::pair<std::uint64_t*, std::uint64_t>> stores_;
  std::vector<std::size_t> choices_;  // by load
  std::size_t load_ = 0;
  std::size_t applied_ = 0;
  bool is_reading_ = false;
};

Schedule schedule;

class ScheduledWord {
 public:
  std::uint64_t load(std::memory_order /*order*/) const {
    schedule.before_load();
    return value_;
  }
  void store(std::uint64_t value, std::memory_order /*order*/) {
    schedule.record(&value_, value);
    value_ = value;
  }

 private:
  std::uint64_t value_ = 0;
};

using Page = hortator::runtime::StatusPage<ScheduledWord, 24>;

}  // namespace

TEST_CASE("whenever a rank is stopped or killed while it publishes, others read its last whole status") {
  const std::vector<std::string> texts = {"", "the1first", "second", "third"};
  static Page page;
  schedule = {};
  std::vector<std::size_t> ends = {0};  // after how many stores each text is there
  for (std::size_t i = 1; i < texts.size(); ++i) {
    page.write(texts[i]);
    ends.push_back(schedule.recorded());
  }
  const auto complete = [&] {
    std::size_t last = 0;
    while (last + 1 < ends.size() && ends[last + 1] <= schedule.applied()) ++last;
    return last;
  };
  long orders = 0;
  long wrong = 0;
  std::vector<long> found(texts.size());
  // The writer has made `before` stores when the reader begins, and any number when it ends.
  for (std::size_t before = 0; before <= schedule.recorded(); ++before) {
    do {
      page = {};
      schedule.start();
      for (std::size_t i = 0; i < before; ++i) schedule.apply_next();
      const auto oldest = complete();
      auto text = page.read();
      text.resize(text.find_last_not_of(' ') + 1);
      std::size_t which = complete();
      while (which > oldest && text != texts[which]) --which;
      if (text != texts[which]) ++wrong;
      ++found[which];
      ++orders;
    } while (schedule.advance());
  }
  CHECK(wrong == 0);
  CHECK(orders > 10'000);
  for (const auto count : found) CHECK(count > 0);
}
