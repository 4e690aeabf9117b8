#include "tools/watch/watch_ranks.hpp"

#include <algorithm>
#include <cmath>

#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::tools {
namespace {

std::string percent(double share) { return text::print("%.0f %%", 100 * share); }

std::string rank_text(const observe::RankStatus& rank) {
  return text::concat("rank ", rank.rank, " (", rank.host, ")");
}

template <typename Of>
const observe::RankStatus& extreme(const std::vector<observe::RankStatus>& ranks, const Of& of, bool is_max) {
  return *std::max_element(ranks.begin(), ranks.end(), [&](const observe::RankStatus& a, const observe::RankStatus& b) {
    return is_max ? of(a) < of(b) : of(a) > of(b);
  });
}

template <typename Of>
double mean_of(const std::vector<observe::RankStatus>& ranks, const Of& of) {
  double sum = 0;
  for (const auto& rank : ranks) sum += static_cast<double>(of(rank));
  return sum / static_cast<double>(ranks.size());
}

std::string outlier(const std::vector<observe::RankStatus>& ranks, const char* label, const std::string& value,
                    const observe::RankStatus& rank) {
  return ranks.size() == 1 ? "" : text::concat(", ", label, ' ', value, " on ", rank_text(rank));
}

std::string bytes(double count) { return units::bytes(static_cast<std::uint64_t>(std::max(count, 0.0))); }

std::string each_of(const std::vector<observe::RankStatus>& ranks) { return ranks.size() == 1 ? "" : " per rank"; }

/// GPU memory of this run and of all processes, and utilisation, as far as they are known.
void put_devices(core::Page& page, const std::vector<observe::RankStatus>& ranks) {
  const auto tensors = [](const observe::RankStatus& rank) { return rank.device_bytes; };
  const auto used = [](const observe::RankStatus& rank) { return rank.device_used_bytes; };
  const auto busy = [](const observe::RankStatus& rank) { return rank.device_busy.value_or(0); };
  const auto size = [](std::int64_t count) { return bytes(static_cast<double>(count)); };
  const auto& largest = extreme(ranks, tensors, true);
  const auto& fullest = extreme(ranks, used, true);
  const auto& peak = extreme(
      ranks, [](const observe::RankStatus& rank) { return rank.device_peak_bytes; }, true);
  const auto highest =
      peak.device_peak_bytes > 0 ? text::concat(" (", size(peak.device_peak_bytes), " peak)") : std::string();
  const auto mean = bytes(mean_of(ranks, tensors)) + each_of(ranks) + highest;
  if (fullest.device_total_bytes > 0) {
    const bool is_one = ranks.size() == 1;
    page.row("GPU memory",
             text::concat(mean, is_one ? ", " : ", max ", size(fullest.device_used_bytes), " of ",
                          size(fullest.device_total_bytes), " in use", is_one ? "" : " on " + rank_text(fullest)));
  } else if (largest.device_bytes > 0) {
    page.row("GPU memory", mean + outlier(ranks, "max", size(largest.device_bytes), largest));
  }
  const bool all_known = std::all_of(ranks.begin(), ranks.end(),
                                     [](const observe::RankStatus& rank) { return rank.device_busy.has_value(); });
  if (!all_known) return;
  const auto& idlest = extreme(ranks, busy, false);
  page.row("GPU", percent(mean_of(ranks, busy)) + " of the time busy" +
                      outlier(ranks, "min", percent(*idlest.device_busy), idlest));
}

void put_energy(core::Page& page, const observe::RunEnergy& energy) {
  if (energy.source.empty()) return;
  constexpr double joules_of_kwh = 3.6e6;
  auto line = text::print("%.4g kWh", energy.joules / joules_of_kwh);
  if (energy.samples > 0)
    line += text::print(", %.4g J per sample", energy.joules / static_cast<double>(energy.samples));
  page.row("energy", text::concat(line, " (", energy.source, ')'));
}

}  // namespace

std::string ago(double seconds) {
  if (seconds < 60) return text::print("%.0f s", std::max(seconds, 0.0));
  return units::duration(std::chrono::duration<double>(seconds));
}

void put_use(core::Page& page, const std::vector<observe::RankStatus>& ranks) {
  const auto memory = [](const observe::RankStatus& rank) { return rank.memory_bytes; };
  const auto cpu = [](const observe::RankStatus& rank) { return rank.cpus_used; };
  const auto sharing = [](const observe::RankStatus& rank) { return rank.communication; };
  const auto data = [](const observe::RankStatus& rank) { return rank.data_wait; };
  const auto each = each_of(ranks);

  const auto& largest = extreme(ranks, memory, true);
  page.row("memory", bytes(mean_of(ranks, memory)) + each +
                         outlier(ranks, "max", bytes(static_cast<double>(largest.memory_bytes)), largest));
  put_devices(page, ranks);
  const auto& idlest = extreme(ranks, cpu, false);
  page.row("CPU", text::print("%.1f of %d%s", mean_of(ranks, cpu), ranks.front().cpus, each.c_str()) +
                      outlier(ranks, "min", text::print("%.1f", idlest.cpus_used), idlest));
  if (ranks.front().world > 1) {
    const auto& busiest = extreme(ranks, sharing, true);
    page.row("gradients", percent(mean_of(ranks, sharing)) + " of the time spent on averaging" +
                              outlier(ranks, "max", percent(busiest.communication), busiest));
  }
  const auto& hungriest = extreme(ranks, data, true);
  page.row("data",
           percent(mean_of(ranks, data)) + " of the time spent waiting" +
               outlier(ranks, "max", percent(hungriest.data_wait), hungriest),
           hungriest.data_wait > 0.2 ? core::Ink::warning : core::Ink::plain);
  put_energy(page, energy_of(ranks));
}

void put_stragglers(core::Page& page, const std::vector<observe::RankStatus>& ranks, double now) {
  const auto slow = slowest(ranks);
  if (!slow.empty()) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min<std::size_t>(slow.size(), 3); ++i) names.push_back(rank_text(slow[i]));
    page.row("slowest", text::join(names) + ": the others wait", core::Ink::warning);
  }
  std::vector<std::string> silent;
  for (const auto& rank : ranks) {
    if (is_silent(rank, now)) silent.push_back(rank_text(rank) + " for " + ago(now - rank.time));
  }
  if (!silent.empty() && silent.size() < ranks.size()) page.row("silent", text::join(silent), core::Ink::bad);
}

}  // namespace hortator::tools
