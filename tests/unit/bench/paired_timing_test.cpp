#include "bench/paired_timing.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace hortator::bench;

TEST_CASE("the median is the middle, or the mean of the two in the middle") {
  CHECK(median(std::vector<double>{3}) == 3);
  CHECK(median(std::vector<double>{5, 1, 3}) == 3);
  CHECK(median(std::vector<double>{4, 1, 3, 2}) == 2.5);
}

TEST_CASE("the gap is a difference of means, so that rare long waits count") {
  CHECK(mean_gap(std::vector<double>{1, 1, 2}, std::vector<double>{1, 2, 10}) == 3);
  CHECK(mean_gap(std::vector<double>{4}, std::vector<double>{4}) == 0);
}

TEST_CASE("the range of the median is its 95 % confidence interval") {
  const auto range_of = [](int n) {
    std::vector<double> values;
    for (int i = n; i > 0; --i) values.push_back(i);
    const auto range = median_range(values);
    return std::pair(range.low, range.high);
  };
  CHECK((range_of(1) == std::pair(1.0, 1.0)));
  CHECK((range_of(2) == std::pair(1.0, 2.0)));
  CHECK((range_of(6) == std::pair(1.0, 6.0)));
  CHECK((range_of(10) == std::pair(2.0, 9.0)));
  CHECK((range_of(21) == std::pair(6.0, 16.0)));
  CHECK((range_of(41) == std::pair(14.0, 28.0)));
}

TEST_CASE("the ratio is the median over neighbouring blocks, so that a slowing machine does not matter") {
  const std::vector<double> ours = {2, 20, 200};
  const std::vector<double> reference = {1, 10, 100};
  const auto timing = summarize(ours, reference);
  CHECK(timing.ratio == 2);
  CHECK(timing.ratio_range.low == 2);
  CHECK(timing.ratio_range.high == 2);
  CHECK(timing.ours.median_s == 20);
  CHECK(timing.ours.min_s == 2);
  CHECK(timing.reference.median_s == 10);
  CHECK(timing.reference.min_s == 1);
  CHECK(timing.runs == 3);
}

TEST_CASE("blocks alternate, the first of each is not counted, and ranks are synchronised around each") {
  std::string order;
  double clock = 0;
  int step = 0;
  const Sides sides = {.ours = [&] { order += 'o', clock += step++ < 4 ? 100 : 3; },
                       .reference = [&] { order += 'r', clock += step++ < 4 ? 100 : 2; },
                       .line_up = [&] { order += '|'; }};
  const auto timing = time_in_pairs(sides, {.blocks = 3, .steps = 2}, [&] { return clock; });
  CHECK(order == "|rr||oo||oo||rr||rr||oo||oo||rr|");
  CHECK(timing.ours.median_s == 3);
  CHECK(timing.reference.min_s == 2);
  CHECK(timing.ratio == 1.5);
  CHECK(timing.runs == 3);
}

TEST_CASE("the wait for the device at the end of a block counts") {
  double clock = 0;
  int queued = 0;
  const Sides sides = {
      .ours = [&] { queued += 5; }, .reference = [&] { queued += 1; }, .line_up = [&] { clock += queued, queued = 0; }};
  CHECK(time_in_pairs(sides, {.blocks = 2, .steps = 10}, [&] { return clock; }).ratio == 5);
}
