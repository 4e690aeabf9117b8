#include "comm/exchange_plan.hpp"

#include <algorithm>

#include "core/hash.hpp"
#include "support/catch.hpp"

using hortator::comm::ExchangeSummary;

namespace {

/// What travels from each rank to each, in rows: the sender's or the receiver's view.
using Messages = std::vector<std::uint64_t>;

std::uint64_t total_imbalance(const Messages& sent, const Messages& expected, std::size_t ranks) {
  std::uint64_t sum = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    ExchangeSummary summary;
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      summary.to.push_back(sent[rank * ranks + peer]);
      summary.from.push_back(expected[peer * ranks + rank]);
    }
    sum += summary.imbalance(static_cast<int>(rank));
  }
  return sum;
}

/// The digits of `number` to the base 3, from the last.
Messages messages_of(int number, std::size_t count) {
  Messages digits;
  for (; digits.size() < count; number /= 3) digits.push_back(static_cast<std::uint64_t>(number % 3));
  return digits;
}

}  // namespace

TEST_CASE("two ranks' imbalances cancel only where both expect what is sent, in all cases of three contents") {
  constexpr int cases = 3 * 3 * 3 * 3;
  int different = 0;
  for (int i = 0; i < cases; ++i) {
    for (int j = 0; j < cases; ++j) {
      const bool is_balanced = total_imbalance(messages_of(i, 4), messages_of(j, 4), 2) == 0;
      if (is_balanced != (i == j)) ++different;
    }
  }
  CHECK(different == 0);
}

TEST_CASE("the imbalances of several ranks show each message that changes its content or its way") {
  for (const std::size_t ranks : {1, 2, 3, 4, 7}) {
    Messages sent;
    for (std::size_t i = 0; i < ranks * ranks; ++i) sent.push_back(hortator::core::mix(ranks, i) % 3 * (i + 1));
    CHECK(total_imbalance(sent, sent, ranks) == 0);
    for (std::size_t i = 0; i < sent.size(); ++i) {
      auto changed = sent;
      ++changed[i];
      CHECK(total_imbalance(sent, changed, ranks) != 0);
      for (std::size_t j = 0; j < i; ++j) {
        auto swapped = sent;
        std::swap(swapped[i], swapped[j]);
        CHECK((total_imbalance(sent, swapped, ranks) == 0) == (swapped == sent));
      }
    }
  }
}
