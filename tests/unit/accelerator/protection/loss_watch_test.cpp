// Which losses count as spikes above the mean of earlier ones.
#include "step/gradients/loss_watch.hpp"

#include <limits>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a loss watch follows a lasting rise: only its first losses are spikes") {
  for (const double level : {8.0, 40.0}) {
    step::LossWatch watch(3);
    for (int i = 0; i < 50; ++i) CHECK_FALSE(watch.is_bad(2));
    int spikes = 0;
    for (int i = 0; i < 100; ++i) spikes += watch.is_bad(level) ? 1 : 0;
    CHECK(spikes > 0);
    CHECK(spikes < 40);
    CHECK_FALSE(watch.is_bad(level));
    CHECK(watch.is_bad(4 * level));
  }
}

TEST_CASE("a loss watch finds spikes above the mean, and continues from its state") {
  step::LossWatch watch(3);
  for (int i = 0; i < step::LossWatch::warm_up; ++i) CHECK_FALSE(watch.is_bad(2));
  CHECK(watch.is_bad(std::numeric_limits<double>::quiet_NaN()));
  CHECK(watch.is_bad(6.1));  // enters the mean as 6: it is 2.2
  CHECK(watch.is_bad(-6.7));
  CHECK_FALSE(watch.is_bad(5.9));
  step::LossWatch other(3);
  CHECK_FALSE(other.is_bad(1000));
  other.load(watch.state());
  CHECK(other.is_bad(8.3));
  CHECK_FALSE(other.is_bad(7));
}
