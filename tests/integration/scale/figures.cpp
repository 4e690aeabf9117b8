#include "figures.hpp"

#include <algorithm>
#include <bit>
#include <iomanip>
#include <map>
#include <sstream>
#include <stdexcept>

namespace hortator::scale {
namespace {

constexpr std::int64_t calls_a_doubling = 2;
constexpr std::int64_t bytes_a_rank_on_first = 100;
constexpr std::int64_t longer_digits = 64;

/// The most that rank 0, and that any other rank, has in one phase of one job.
struct Most {
  Figure first = {};
  Figure others = {};
};

using Sizes = std::map<int, Most>;

std::map<std::string, Sizes> summarise(const std::vector<Figure>& figures) {
  std::map<std::string, Sizes> phases;
  for (const auto& figure : figures) {
    auto& most = phases[figure.phase][figure.ranks];
    auto& kept = figure.rank == 0 ? most.first : most.others;
    kept.calls = std::max(kept.calls, figure.calls);
    kept.bytes = std::max(kept.bytes, figure.bytes);
  }
  return phases;
}

int doublings(int from, int to) {
  return std::bit_width(static_cast<unsigned>((to + from - 1) / from - 1));  // rounded up
}

std::string words(const std::string& phase, const char* who, const char* what, std::int64_t before, std::int64_t after,
                  int least, int ranks) {
  std::ostringstream line;
  line << phase << ": " << who << ' ' << what << " grow from " << before << " at " << least << " ranks to " << after
       << " at " << ranks;
  return line.str();
}

}  // namespace

std::vector<Figure> read_figures(std::istream& lines) {
  std::vector<Figure> figures;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    Figure figure;
    std::string rest;
    parts >> figure.phase >> figure.ranks >> figure.rank >> figure.calls >> figure.bytes;
    if (!parts || parts >> rest) throw std::runtime_error("not a figure: " + line);
    figures.push_back(figure);
  }
  return figures;
}

std::string to_line(const Figure& figure) {
  std::ostringstream line;
  line << figure.phase << ' ' << figure.ranks << ' ' << figure.rank << ' ' << figure.calls << ' ' << figure.bytes;
  return line.str();
}

std::vector<std::string> breaches(const std::vector<Figure>& figures) {
  std::vector<std::string> lines;
  for (const auto& [phase, sizes] : summarise(figures)) {
    const auto& [least, small] = *sizes.begin();
    if (small.first.calls == 0) lines.push_back(phase + ": rank 0 made no calls: are they counted?");
    if (sizes.size() < 2) lines.push_back(phase + ": measured at one size only");
    for (const auto& [ranks, large] : sizes) {
      const auto more_calls = calls_a_doubling * doublings(least, ranks);
      const auto more_on_first = longer_digits + bytes_a_rank_on_first * (ranks - least);
      const auto check = [&](const char* who, const char* what, std::int64_t before, std::int64_t after,
                             std::int64_t more) {
        if (after > before + more) lines.push_back(words(phase, who, what, before, after, least, ranks));
      };
      check("rank 0's", "calls", small.first.calls, large.first.calls, more_calls);
      check("rank 0's", "bytes", small.first.bytes, large.first.bytes, more_on_first);
      check("another rank's", "calls", small.others.calls, large.others.calls, more_calls);
      check("another rank's", "bytes", small.others.bytes, large.others.bytes, longer_digits);
    }
  }
  return lines;
}

std::string table(const std::vector<Figure>& figures) {
  std::ostringstream text;
  text << std::left << std::setw(26) << "phase" << std::right << std::setw(6) << "ranks" << std::setw(14)
       << "rank 0 calls" << std::setw(9) << "bytes" << std::setw(14) << "others' calls" << std::setw(9) << "bytes"
       << '\n';
  for (const auto& [phase, sizes] : summarise(figures)) {
    for (const auto& [ranks, most] : sizes) {
      text << std::left << std::setw(26) << phase << std::right << std::setw(6) << ranks << std::setw(14)
           << most.first.calls << std::setw(9) << most.first.bytes << std::setw(14) << most.others.calls << std::setw(9)
           << most.others.bytes << '\n';
    }
  }
  return text.str();
}

}  // namespace hortator::scale
