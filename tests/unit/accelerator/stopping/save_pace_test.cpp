#include "accelerator/stopping/save_pace.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using accelerator::best_interval;
using accelerator::save_fits;
using accelerator::SavePace;
using accelerator::time_to_save;

TEST_CASE("the interval follows Young's formula") {
  CHECK(best_interval(5s, 3h) == 329s);
  CHECK(best_interval(50ms, 24h) == 93s);
  CHECK_THROWS_AS(best_interval(5s, 0s), UsageError);
}

TEST_CASE("a save is made before SIGKILL if 1.5 times the longest save so far fits") {
  CHECK(save_fits({.longest = 10s}, 15s));
  CHECK_FALSE(save_fits({.longest = 10s}, 14900ms));
  CHECK(save_fits({}, 5s));
  CHECK_FALSE(save_fits({}, 4900ms));
  CHECK_FALSE(save_fits({.longest = 1ms}, -5s));
}

TEST_CASE("a save that is requested while another is under way follows it") {
  CHECK_FALSE(time_to_save({}).has_value());
  CHECK(*time_to_save({.longest = 10s}) == 10s);
  CHECK(*time_to_save({.longest = 10s, .under_way = 4s}) == 16s);
  CHECK(*time_to_save({.longest = 10s, .under_way = 25s}) == 25s);
  CHECK(save_fits({.longest = 10s, .under_way = 4s}, 24s));
  CHECK_FALSE(save_fits({.longest = 10s, .under_way = 4s}, 23s));
  CHECK_FALSE(save_fits({.under_way = 1ms}, 30s));  // the first one needs the time itself
}

TEST_CASE("the cost is that of the longest pause of training; a save is due after an interval without one") {
  SavePace pace;
  CHECK_FALSE(pace.cost().has_value());
  CHECK_FALSE(pace.longest_until_complete().has_value());
  CHECK_FALSE(pace.is_due());
  pace.ask_for_every(1h);
  CHECK_FALSE(pace.is_due());
  pace.ask_for_every(1ns);
  CHECK(pace.is_due());
  pace.ask_for_every(1h);
  pace.saved(2s);
  pace.note_complete();
  pace.saved(3s);
  CHECK(pace.cost() == SavePace::Clock::duration(3s));
  CHECK(pace.longest_until_complete() == SavePace::Clock::duration(2s));
  CHECK_FALSE(pace.is_due());
}
