#include "observe/progress/render.hpp"

#include <algorithm>
#include <limits>

#include "support/catch.hpp"

using namespace hortator::observe;

namespace {

const Snapshot half_way = {.title = "epoch 0",
                           .done = 450,
                           .total = 1000,
                           .elapsed = 36,
                           .per_second = 12.34,
                           .values = {{"loss", 0.123456}, {"lr", 0.001}, {"tokens", 12345678}}};

int characters(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

TEST_CASE("items that do not fit are dropped from the right, and the bar takes the remaining room") {
  CHECK(bar_line(half_way, 200) ==
        "epoch 0  45% [=============>                ]  450/1000  12.3/s  0:36, 0:45 left  loss 0.1235  lr 0.001  "
        "tokens 12345678");
  CHECK(bar_line(half_way, 79) == "epoch 0  45% [==>   ]  450/1000  12.3/s  0:36, 0:45 left  loss 0.1235  lr 0.001");
  CHECK(bar_line(half_way, 60) == "epoch 0  45%  450/1000  12.3/s  0:36, 0:45 left  loss 0.1235");
  CHECK(bar_line(half_way, 40) == "epoch 0  45% [===>   ]  450/1000  12.3/s");
  CHECK(bar_line(half_way, 24) == "epoch 0  45%  450/1000");
  CHECK(bar_line(half_way, 10) == "epoch 0  4");
  CHECK(bar_line(half_way, 0).empty());
  CHECK(bar_line(half_way, -1).empty());
}

TEST_CASE("a log line has all items") {
  CHECK(log_line(half_way) ==
        "epoch 0: 450/1000 (45%), 12.3/s, 0:36, 0:45 left, loss 0.1235, lr 0.001, tokens 12345678");
  CHECK(log_line({.done = 1, .total = 2, .elapsed = 1}) == "1/2 (50%), 0:01");
}

TEST_CASE("an ended loop shows no remaining time, and 100% only when it is complete") {
  auto ended = half_way;
  ended.is_over = true;
  CHECK(log_line(ended) == "epoch 0: 450/1000 (45%), 12.3/s, 0:36, loss 0.1235, lr 0.001, tokens 12345678");
  CHECK(log_line({.done = 9999, .total = 10000, .elapsed = 1}) == "9999/10000 (99%), 0:01");
  CHECK(bar_line({.done = 5, .total = 5, .elapsed = 2, .is_over = true}, 40) ==
        "100% [======================]  5/5  0:02");
}

TEST_CASE("an empty loop is done, and a loop beyond its total stays at the end") {
  CHECK(bar_line({.title = "stream", .done = 7, .total = -1, .elapsed = 2, .per_second = 3.5}, 40) ==
        "stream   7  3.5/s  0:02");
  CHECK(log_line({.title = "stream", .done = 7, .total = -1, .elapsed = 2}) == "stream: 7, 0:02");
  CHECK(bar_line({}, 40) == "100% [======================]  0/0  0:00");
  CHECK(bar_line({.done = 7, .total = 5, .elapsed = 2, .per_second = 3.5}, 30) == "100% [=====]  7/5  3.5/s  0:02");
}

TEST_CASE("times and rates have a suitable unit") {
  const auto text = [](double elapsed, double per_second) {
    return log_line({.done = 1, .total = 2, .elapsed = elapsed, .per_second = per_second});
  };
  CHECK(text(3599, 0) == "1/2 (50%), 59:59");
  CHECK(text(3600, 0) == "1/2 (50%), 1:00:00");
  CHECK(text(100 * 3600 + 61, 0) == "1/2 (50%), 100:01:01");
  CHECK(text(1, 12345) == "1/2 (50%), 12345/s, 0:01, 0:00 left");
  CHECK(text(1, 99.99) == "1/2 (50%), 100/s, 0:01, 0:00 left");
  CHECK(text(8, 0.125) == "1/2 (50%), 8 s each, 0:08, 0:08 left");
  CHECK(text(1, 1e-12) == "1/2 (50%), 1e+12 s each, 0:01");
}

TEST_CASE("any number can be a value") {
  const auto value = [](double number) { return log_line({.total = 1, .values = {{"x", number}}}).substr(16); };
  CHECK(value(0) == "x 0");
  CHECK(value(-3) == "x -3");
  CHECK(value(1e8) == "x 100000000");
  CHECK(value(1e12) == "x 1e+12");
  CHECK(value(2.5e-7) == "x 2.5e-07");
  CHECK(value(std::numeric_limits<double>::quiet_NaN()) == "x nan");
  CHECK(value(-std::numeric_limits<double>::infinity()) == "x -inf");
}

TEST_CASE("no line exceeds its width or contains a line break") {
  const std::vector<std::string> titles = {
      "", "e", "epoch 0", "Ünïcödé títle", "two\nlines\r\x1b[31m\t", std::string(300, 'x')};
  const std::vector<std::int64_t> totals = {0, 1, 1000, std::numeric_limits<std::int64_t>::max()};
  for (const auto& title : titles) {
    for (const auto total : totals) {
      for (const std::int64_t done : {std::int64_t{0}, total / 3, total}) {
        for (const double per_second : {0.0, 1e-9, 0.3, 12.0, 1e9}) {
          Snapshot now = {.title = title,
                          .done = done,
                          .total = total,
                          .elapsed = 1e6,
                          .per_second = per_second,
                          .values = half_way.values};
          for (int columns = 0; columns < 180; ++columns) {
            const auto line = bar_line(now, columns);
            const bool fits = characters(line) <= columns;
            const bool is_one_line = std::none_of(line.begin(), line.end(), [](char c) { return c >= 0 && c < ' '; });
            if (!fits || !is_one_line) FAIL("'" << line << "' in " << columns);
          }
        }
      }
    }
  }
  CHECK(bar_line({.title = "Ünïcödé", .total = 1}, 3) == "Ünï");
}

TEST_CASE("the bar grows from empty to full") {
  int before = -1;
  for (int done = 0; done <= 100; ++done) {
    const auto line = bar_line({.done = done, .total = 100}, 60);
    const int full = static_cast<int>(std::count(line.begin(), line.end(), '='));
    CHECK(full >= before);
    CHECK(std::count(line.begin(), line.end(), '>') == (done < 100 ? 1 : 0));
    before = full;
  }
  CHECK(before == 30);
}
