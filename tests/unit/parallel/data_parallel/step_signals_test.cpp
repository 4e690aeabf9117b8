#include "parallel/data_parallel/step_signals.hpp"

#include <stdexcept>

#include "support/catch.hpp"

using namespace hortator;
using parallel::StepSignals;

namespace {

using Layout = StepSignals::Layout;

std::vector<Layout> all_layouts() {
  std::vector<Layout> layouts;
  for (unsigned bits = 0; bits < 8; ++bits) {
    for (const std::size_t parameters : {0, 1, 2}) {
      for (const std::size_t arrays : {0, 1, 2}) {
        layouts.push_back({.missing = (bits & 1U) != 0,
                           .new_order = (bits & 2U) != 0,
                           .votes = (bits & 4U) != 0,
                           .parameters = parameters,
                           .arrays = arrays});
      }
    }
  }
  return layouts;
}

/// All values of what travels in this layout.
std::vector<StepSignals> all_signals(const Layout& layout) {
  std::vector<StepSignals> all;
  const auto count = layout.size();
  for (std::size_t number = 0; number < std::size_t{1} << count; ++number) {
    std::size_t next = 0;
    const auto bit = [&] { return ((number >> next++) & 1U) != 0; };
    StepSignals signals;
    if (layout.missing) signals.missing = bit();
    if (layout.new_order) signals.new_order = bit();
    if (layout.votes)
      signals.votes = {.stop_in_minutes = bit(), .stop_in_seconds = bit(), .save = bit(), .bad_loss = bit()};
    for (std::size_t i = 0; i < layout.parameters; ++i) signals.used.push_back(bit());
    for (std::size_t i = 0; i < layout.arrays; ++i) signals.leftovers.push_back(bit());
    all.push_back(signals);
  }
  return all;
}

bool are_equal(const StepSignals& a, const StepSignals& b) {
  return a.missing == b.missing && a.new_order == b.new_order && a.votes.stop_in_minutes == b.votes.stop_in_minutes &&
         a.votes.stop_in_seconds == b.votes.stop_in_seconds && a.votes.save == b.votes.save &&
         a.votes.bad_loss == b.votes.bad_loss && a.used == b.used && a.leftovers == b.leftovers;
}

}  // namespace

TEST_CASE("step signals: every value of every layout comes back from its message") {
  for (const auto& layout : all_layouts()) {
    for (const auto& signals : all_signals(layout)) {
      const auto message = signals.encode(layout);
      REQUIRE(message.size() == layout.size());
      REQUIRE(are_equal(StepSignals::decode(message, layout), signals));
    }
  }
}

TEST_CASE("step signals: a sum or mean of messages has what any rank has set") {
  for (const float factor : {1.0F, 0.5F, 1.0F / 1024}) {
    for (const auto& layout : all_layouts()) {
      const auto all = all_signals(layout);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& a = all[i];
        const auto& b = all[(i * 7 + 3) % all.size()];
        auto message = a.encode(layout);
        const auto other = b.encode(layout);
        for (std::size_t k = 0; k < message.size(); ++k) message[k] = (message[k] + other[k]) * factor;
        const auto sum = StepSignals::decode(message, layout);
        REQUIRE(sum.missing == (a.missing || b.missing));
        REQUIRE(sum.new_order == (a.new_order || b.new_order));
        REQUIRE(sum.votes.stop_in_minutes == (a.votes.stop_in_minutes || b.votes.stop_in_minutes));
        REQUIRE(sum.votes.stop_in_seconds == (a.votes.stop_in_seconds || b.votes.stop_in_seconds));
        REQUIRE(sum.votes.save == (a.votes.save || b.votes.save));
        REQUIRE(sum.votes.bad_loss == (a.votes.bad_loss || b.votes.bad_loss));
        for (std::size_t k = 0; k < layout.parameters; ++k) REQUIRE(sum.used[k] == (a.used[k] || b.used[k]));
        for (std::size_t k = 0; k < layout.arrays; ++k) REQUIRE(sum.leftovers[k] == (a.leftovers[k] || b.leftovers[k]));
      }
    }
  }
}

TEST_CASE("step signals: what the layout leaves out does not travel, and what is not set is sent as zero") {
  const StepSignals all{.missing = true,
                        .new_order = true,
                        .votes = {.stop_in_minutes = true, .stop_in_seconds = true, .save = true, .bad_loss = true},
                        .used = {true, true},
                        .leftovers = {true}};
  CHECK(all.encode({}).empty());
  CHECK(are_equal(StepSignals::decode({}, {}), {}));
  const Layout full{.missing = true, .new_order = true, .votes = true, .parameters = 2, .arrays = 1};
  CHECK(all.encode(full) == std::vector<float>(9, 1));
  CHECK(StepSignals{}.encode(full) == std::vector<float>(9, 0));
}

TEST_CASE("step signals: a message of another layout is refused") {
  const Layout layout{.missing = true, .parameters = 3};
  CHECK_THROWS_AS(StepSignals::decode(std::vector<float>(3), layout), std::invalid_argument);
  CHECK_THROWS_AS(StepSignals::decode(std::vector<float>(5), layout), std::invalid_argument);
}
