#include <hortator/training/progress.hpp>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "observe/progress/noted_progress.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

struct NotedSink final : ProgressSink {
  void start(std::string_view title, std::int64_t total, std::int64_t done) override {
    notes += std::string(title) + "/" + std::to_string(total) + ":" + std::string(static_cast<std::size_t>(done), '_');
  }
  void advance() override { notes += "+"; }
  void set(std::string_view /*name*/, Loggable /*value*/) override {}
  void finish() noexcept override { notes += "."; }
  std::string notes;
};

// Like a loader: begin() changes it, the end has another type, the element belongs to the iterator.
class Batches {
 public:
  struct End {};
  class Iterator {
   public:
    explicit Iterator(Batches& owner) : owner_(&owner) {}
    int& operator*() { return owner_->batch_; }
    Iterator& operator++() {
      ++owner_->batch_;
      return *this;
    }
    bool operator==(End) const { return owner_->batch_ == owner_->count_; }

   private:
    Batches* owner_;
  };

  explicit Batches(int count) : count_(count) {}
  Batches(const Batches&) = delete;
  Iterator begin() {
    batch_ = 0;
    return Iterator(*this);
  }
  End end() { return {}; }
  std::size_t size() const { return static_cast<std::size_t>(count_); }

 private:
  int count_;
  int batch_ = -1;
};

template <typename Range>
auto progress(NotedSink& sink, Range&& range) {
  return ProgressRange<Range>(std::forward<Range>(range), sink, "t");
}

}  // namespace

TEST_CASE("the loop sees the range's own elements, and the sink each step") {
  NotedSink sink;
  std::vector<int> numbers = {1, 2, 3};
  for (auto& number : progress(sink, numbers)) number *= 2;
  CHECK(numbers == std::vector<int>{2, 4, 6});
  CHECK(sink.notes == "t/3:+++.");
}

TEST_CASE("constant ranges, lists, ranges of bool, elements that cannot be copied") {
  NotedSink sink;
  const std::vector<int> constant = {1, 2};
  int sum = 0;
  for (const auto& number : progress(sink, constant)) sum += number;
  for (const auto number : progress(sink, std::list<int>{3, 4})) sum += number;
  for (auto&& bit : progress(sink, std::vector<bool>{true, false})) sum += bit ? 1 : 0;
  std::vector<std::unique_ptr<int>> owners;
  owners.push_back(std::make_unique<int>(5));
  for (auto& owner : progress(sink, owners)) sum += *owner;
  CHECK(sum == 16);
  CHECK(sink.notes == "t/2:++.t/2:++.t/2:++.t/1:+.");
}

TEST_CASE("a temporary is kept for the loop") {
  NotedSink sink;
  std::string joined;
  for (const auto& text : progress(sink, std::vector<std::string>{std::string(40, 'a'), std::string(40, 'b')}))
    joined += text;
  CHECK(joined == std::string(40, 'a') + std::string(40, 'b'));
}

TEST_CASE("a loader with a sentinel and a changing begin") {
  NotedSink sink;
  Batches batches(3);
  int sum = 0;
  for (auto& batch : progress(sink, batches)) sum += batch;
  CHECK(sum == 3);
  CHECK(sink.notes == "t/3:+++.");
}

TEST_CASE("a resumed loader reports its step") {
  struct Resumed : Batches {
    using Batches::Batches;
    std::int64_t first_step() const { return 2; }
  };
  NotedSink sink;
  Resumed batches(3);
  for ([[maybe_unused]] auto& batch : progress(sink, batches)) break;
  CHECK(sink.notes == "t/3:__.");
}

TEST_CASE("break, return, exceptions and empty ranges close the bar") {
  NotedSink sink;
  const std::vector<int> numbers = {1, 2, 3};
  for (const int number : progress(sink, numbers)) {
    if (number == 2) break;
  }
  CHECK(sink.notes == "t/3:+.");
  try {
    for (const int number : progress(sink, numbers)) throw std::runtime_error(std::to_string(number));
  } catch (const std::runtime_error&) {
  }
  CHECK(sink.notes == "t/3:+.t/3:.");
  for (const int number : progress(sink, std::vector<int>{})) CHECK(number == 0);
  CHECK(sink.notes == "t/3:+.t/3:.t/0:.");
}

TEST_CASE("a stored range can be iterated again, and one that was never iterated shows nothing") {
  NotedSink sink;
  const std::vector<int> numbers = {1};
  {
    auto range = progress(sink, numbers);
    CHECK(range.size() == 1);
    CHECK(sink.notes.empty());
    for (const int number : range) CHECK(number == 1);
    for (const int number : range) CHECK(number == 1);
  }
  CHECK(sink.notes == "t/1:+.t/1:+.");
}

TEST_CASE("the type is deduced, and other ranks are silent") {
  observe::SilentProgress sink;
  std::vector<int> numbers = {1, 2};
  int sum = 0;
  for (const int number : ProgressRange(numbers, sink, "t")) sum += number;
  for (const int number : ProgressRange(std::vector<int>{3}, sink, "t")) sum += number;
  CHECK(sum == 6);
}
