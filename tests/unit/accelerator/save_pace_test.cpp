#include "accelerator/save_pace.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using accelerator::best_interval;
using accelerator::save_fits;
using accelerator::SavePace;

TEST_CASE("the interval is that of Young") {
  CHECK(best_interval(5s, 3h) == 329s);
  CHECK(best_interval(50ms, 24h) == 93s);
  CHECK_THROWS_AS(best_interval(5s, 0s), UsageError);
}

TEST_CASE("a save is made before SIGKILL if the longest so far fits with half of itself to spare") {
  CHECK(save_fits(10s, 15s));
  CHECK_FALSE(save_fits(10s, 14900ms));
  CHECK(save_fits(std::nullopt, 10s));
  CHECK_FALSE(save_fits(std::nullopt, 9s));
  CHECK_FALSE(save_fits(1ms, -5s));
}

TEST_CASE("the cost is that of the longest save; due is what nobody has saved for so long") {
  SavePace pace;
  CHECK_FALSE(pace.cost().has_value());
  CHECK_FALSE(pace.is_due());
  pace.ask_for_every(1h);
  CHECK_FALSE(pace.is_due());
  pace.ask_for_every(1ns);
  CHECK(pace.is_due());
  pace.ask_for_every(1h);
  pace.saved(3s);
  pace.saved(2s);
  CHECK(pace.cost() == SavePace::Clock::duration(3s));
  CHECK_FALSE(pace.is_due());
}
