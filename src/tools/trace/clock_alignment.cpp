#include "tools/trace/clock_alignment.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <limits>
#include <map>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double hundredth = 0.01;  // of a microsecond: less is noise of the times' format

/// The last begin and the first end of a collective's ranks on one host.
struct StayOfHost {
  double begin = -infinite;
  double end = infinite;
};

/// later[a][b]: the clock of b may be ahead of that of a by at most that number of microseconds.
using Bounds = std::vector<std::vector<double>>;

struct HostNames {
  std::vector<std::string> names = {};
  std::vector<std::size_t> of_rank = {};
};

HostNames hosts_of(const std::vector<ClockOfRank>& ranks) {
  HostNames hosts;
  for (const auto& rank : ranks) {
    const auto found = std::ranges::find(hosts.names, rank.host);
    hosts.of_rank.push_back(static_cast<std::size_t>(found - hosts.names.begin()));
    if (found == hosts.names.end()) hosts.names.push_back(rank.host);
  }
  return hosts;
}

using Stays = std::map<std::pair<std::string, std::uint64_t>, std::map<std::size_t, StayOfHost>>;

Stays stays_of(const std::vector<ClockOfRank>& ranks, const HostNames& hosts) {
  Stays stays;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& meeting : ranks[rank].meetings) {
      auto& stay = stays[{meeting.group, meeting.sequence}][hosts.of_rank[rank]];
      stay.begin = std::max(stay.begin, meeting.begin);
      stay.end = std::min(stay.end, meeting.end);
    }
  }
  return stays;
}

// b enters before a leaves, in a common time: begin_b + offset_b <= end_a + offset_a.
Bounds bounds_of(const Stays& stays, std::size_t hosts) {
  Bounds later(hosts, std::vector<double>(hosts, infinite));
  for (const auto& [key, of_hosts] : stays) {
    for (const auto& [a, stay_a] : of_hosts) {
      for (const auto& [b, stay_b] : of_hosts) later[a][b] = std::min(later[a][b], stay_a.end - stay_b.begin);
    }
  }
  for (std::size_t host = 0; host < hosts; ++host) later[host][host] = 0;
  return later;
}

/// The shortest paths between all hosts; nothing if there is a circle of negative length: the bounds contradict each
/// other.
bool shorten(Bounds& later) {
  const auto hosts = later.size();
  for (std::size_t over = 0; over < hosts; ++over) {
    for (std::size_t a = 0; a < hosts; ++a) {
      for (std::size_t b = 0; b < hosts; ++b) later[a][b] = std::min(later[a][b], later[a][over] + later[over][b]);
    }
  }
  for (std::size_t host = 0; host < hosts; ++host) {
    if (later[host][host] < 0) return false;
  }
  return true;
}

Bounds widened(Bounds later, double slack) {
  for (std::size_t a = 0; a < later.size(); ++a) {
    for (std::size_t b = 0; b < later.size(); ++b) {
      if (a != b) later[a][b] += slack;
    }
  }
  return later;
}

/// The bounds, widened as little as possible so that they do not contradict each other, and shortened.
Bounds consistent(const Bounds& later) {
  auto exact = later;
  if (shorten(exact)) return exact;
  double low = 0;
  double high = 1;
  for (auto wide = widened(later, high); !shorten(wide); wide = widened(later, high)) high *= 2;
  while (high - low > hundredth) {
    const double middle = (low + high) / 2;
    auto tried = widened(later, middle);
    (shorten(tried) ? high : low) = middle;
  }
  auto wide = widened(later, high);
  shorten(wide);
  return wide;
}

double contradiction_of(const Stays& stays, const std::vector<double>& offsets) {
  double most = 0;
  for (const auto& [key, of_hosts] : stays) {
    double begin = -infinite;
    double end = infinite;
    for (const auto& [host, stay] : of_hosts) {
      begin = std::max(begin, stay.begin + offsets[host]);
      end = std::min(end, stay.end + offsets[host]);
    }
    most = std::max(most, begin - end);
  }
  return most;
}

}  // namespace

ClockAlignment align_clocks(const std::vector<ClockOfRank>& ranks) {
  const auto hosts = hosts_of(ranks);
  const auto stays = stays_of(ranks, hosts);
  const auto later = consistent(bounds_of(stays, hosts.names.size()));
  ClockAlignment alignment;
  std::vector<double> of_hosts;
  for (std::size_t host = 0; host < hosts.names.size(); ++host) {
    const double most = later[0][host];
    const double least = -later[host][0];
    if (std::isinf(most) || std::isinf(least)) {
      throw Error({.what = text::concat("The clock of ", hosts.names[host], " cannot be compared with that of ",
                                        hosts.names[0]),
                   .why = "their traces have no collective in common that waits for all of its ranks",
                   .hint = "record some complete steps on all ranks"});
    }
    // The middle of two sets of offsets that fulfil all bounds fulfils them as well.
    of_hosts.push_back((most + least) / 2);
    alignment.uncertainty = std::max(alignment.uncertainty, most - least);
  }
  for (const auto host : hosts.of_rank) alignment.offsets.push_back(of_hosts[host]);
  alignment.contradiction = contradiction_of(stays, of_hosts);
  return alignment;
}

}  // namespace hortator::tools
