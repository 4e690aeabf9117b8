#include "observe/progress/pace.hpp"

#include "support/catch.hpp"

using namespace hortator::observe;

TEST_CASE("the rate is 0 before the first step") {
  Rate rate;
  rate.update(0, 3);
  CHECK(rate.per_second() == 0);
  rate.update(1, 4);
  CHECK(rate.per_second() == 0.25);
}

TEST_CASE("a steady loop has its rate from the first update") {
  Rate rate;
  for (int second = 1; second < 100; ++second) {
    rate.update(7 * second, second);
    CHECK(rate.per_second() == Approx(7));
  }
}

TEST_CASE("a slow start is forgotten, and a change is followed within about ten seconds") {
  Rate rate;
  rate.update(1, 20);
  for (int second = 1; second <= 60; ++second) rate.update(1 + 10 * second, 20 + second);
  CHECK(rate.per_second() == Approx(10).epsilon(0.01));
  for (int second = 1; second <= 10; ++second) rate.update(601 + 20 * second, 80 + second);
  CHECK(rate.per_second() == Approx(10 + 10 * (1 - std::exp(-1))).epsilon(0.01));
}

TEST_CASE("the rate does not depend on the frequency of updates") {
  Rate often;
  Rate seldom;
  for (int tenth = 0; tenth <= 300; ++tenth) often.update(tenth, tenth / 10.0);
  seldom.update(100, 10.0);
  seldom.update(300, 30.0);
  CHECK(often.per_second() == Approx(seldom.per_second()));
}

TEST_CASE("updates between two slow steps do not change the rate") {
  Rate rate;
  for (int tenth = 1; tenth <= 500; ++tenth) rate.update(tenth / 50, tenth / 10.0);
  CHECK(rate.per_second() == Approx(0.2));
}
