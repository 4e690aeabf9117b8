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

/// The figures of rank 0, and the maxima over the other ranks, in one phase of one job.
struct Peak {
  Figure first = {};
  Figure others = {};
};

using Sizes = std::map<int, Peak>;

std::map<std::string, Sizes> summarise(const std::vector<Figure>& figures) {
  std::map<std::string, Sizes> phases;
  for (const auto& figure : figures) {
    auto& peak = phases[figure.phase][figure.ranks];
    auto& maximum = figure.rank == 0 ? peak.first : peak.others;
    maximum.calls = std::max(maximum.calls, figure.calls);
    maximum.bytes = std::max(maximum.bytes, figure.bytes);
  }
  return phases;
}

int doublings(int from, int to) {
  return std::bit_width(static_cast<unsigned>((to + from - 1) / from - 1));  // rounded up
}

std::string describe_growth(const std::string& phase, const char* who, const char* what, std::int64_t before,
                            std::int64_t after, int min_ranks, int ranks) {
  std::ostringstream line;
  line << phase << ": " << who << ' ' << what << " grow from " << before << " at " << min_ranks << " ranks to " << after
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
    const auto& [min_ranks, small] = *sizes.begin();
    if (small.first.calls == 0) lines.push_back(phase + ": rank 0 made no calls: are they counted?");
    if (sizes.size() < 2) lines.push_back(phase + ": measured at one size only");
    for (const auto& [ranks, large] : sizes) {
      const auto more_calls = calls_a_doubling * doublings(min_ranks, ranks);
      const auto more_on_first = longer_digits + bytes_a_rank_on_first * (ranks - min_ranks);
      const auto check = [&](const char* who, const char* what, std::int64_t before, std::int64_t after,
                             std::int64_t more) {
        if (after > before + more) lines.push_back(describe_growth(phase, who, what, before, after, min_ranks, ranks));
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
    for (const auto& [ranks, peak] : sizes) {
      text << std::left << std::setw(26) << phase << std::right << std::setw(6) << ranks << std::setw(14)
           << peak.first.calls << std::setw(9) << peak.first.bytes << std::setw(14) << peak.others.calls << std::setw(9)
           << peak.others.bytes << '\n';
    }
  }
  return text.str();
}

}  // namespace hortator::scale
