#include "figures.hpp"

#include <sstream>

#include "support/catch.hpp"

using namespace hortator::scale;

namespace {

/// Figures of rank 0 and rank 1 in a phase at 2 ranks, and at 32 ranks with growth on one of them.
std::vector<Figure> grown(Figure first, Figure other, std::int64_t more_calls, std::int64_t more_bytes, bool on_first) {
  first.phase = other.phase = "step";
  first.ranks = other.ranks = 2;
  other.rank = 1;
  std::vector<Figure> figures = {first, other};
  first.ranks = other.ranks = 32;
  auto& changed = on_first ? first : other;
  changed.calls += more_calls;
  changed.bytes += more_bytes;
  figures.insert(figures.end(), {first, other});
  return figures;
}

std::size_t count_of(std::int64_t more_calls, std::int64_t more_bytes, bool on_first) {
  return breaches(grown({.calls = 10, .bytes = 1000}, {.calls = 12, .bytes = 500}, more_calls, more_bytes, on_first))
      .size();
}

}  // namespace

TEST_CASE("figures that do not grow break no rule") {
  CHECK(count_of(0, 0, true) == 0);
  CHECK(count_of(-3, -300, false) == 0);
}

TEST_CASE("bytes may grow only on rank 0, by 100 per rank") {
  CHECK(count_of(0, 3000, true) == 0);
  CHECK(count_of(0, 3065, true) == 1);
  CHECK(count_of(0, 64, false) == 0);
  // as with an all_gather of four bytes
  CHECK(count_of(0, 120, false) == 1);
}

TEST_CASE("calls may grow with the logarithm of the ranks") {
  for (const bool on_first : {true, false}) {
    CHECK(count_of(8, 0, on_first) == 0);
    CHECK(count_of(9, 0, on_first) == 1);
  }
}

TEST_CASE("a message has what grows, and its values and sizes") {
  const auto lines = breaches(grown({.calls = 1}, {.calls = 3, .bytes = 40}, 60, 0, false));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == "step: another rank's calls grow from 3 at 2 ranks to 63 at 32");
}

TEST_CASE("growth on one of the other ranks is detected") {
  auto figures = grown({.calls = 1}, {.calls = 3, .bytes = 40}, 0, 0, false);
  figures.push_back({.phase = "step", .ranks = 32, .rank = 31, .calls = 3, .bytes = 4000});
  CHECK(breaches(figures).size() == 1);
}

TEST_CASE("a phase measured at only one size is an error") {
  CHECK(breaches({{.phase = "step", .ranks = 2, .rank = 0, .calls = 1}, {.phase = "step", .ranks = 2, .rank = 1}})
            .size() == 1);
}

TEST_CASE("missing counts are detected") { CHECK(breaches(grown({}, {}, 0, 0, false)).size() == 1); }

TEST_CASE("figures are written and read back unchanged") {
  const Figure figure{.phase = "mpi:step", .ranks = 8, .rank = 3, .calls = 17, .bytes = std::int64_t{1} << 40};
  std::istringstream lines(to_line(figure) + "\n");
  const auto read = read_figures(lines);
  REQUIRE(read.size() == 1);
  CHECK(to_line(read[0]) == to_line(figure));
  for (const auto* wrong : {"", "mpi:step 8 3 17", "mpi:step 8 3 17 x", "mpi:step 8 3 17 1 2"}) {
    std::istringstream text(std::string(wrong) + "\n");
    CHECK_THROWS(read_figures(text));
  }
}
