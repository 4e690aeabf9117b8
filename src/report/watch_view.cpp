#include "report/watch_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/column.hpp"
#include "report/print.hpp"

namespace hortator::report {
namespace {

constexpr int label_columns = 11;
constexpr double long_silence = 10;  // rows that are missing

enum class Ink { plain, faint, good, bad, warning, bold };

const char* escape_of(Ink colour) {
  switch (colour) {
    case Ink::faint:
      return "\x1b[2m";
    case Ink::good:
      return "\x1b[32m";
    case Ink::bad:
      return "\x1b[31m";
    case Ink::warning:
      return "\x1b[33m";
    case Ink::bold:
      return "\x1b[1m";
    case Ink::plain:
      break;
  }
  return "";
}

/// Lines that never grow wider than the terminal.
class Page {
 public:
  explicit Page(const ViewOptions& options) : options_(options) {}

  void add(const std::string& text, Ink colour = Ink::plain) {
    const auto fitting = cut(one_line(text), std::max(options_.columns - used_, 0));
    used_ += width_of(fitting);
    const bool bare = !options_.colour || colour == Ink::plain || fitting.empty();
    text_ += bare ? fitting : escape_of(colour) + fitting + "\x1b[0m";
  }
  void label(std::string name) {
    name.resize(label_columns, ' ');
    add(name, Ink::faint);
  }
  void end_line() {
    text_ += '\n';
    used_ = 0;
  }
  void row(const std::string& name, const std::string& text, Ink colour = Ink::plain) {
    label(name);
    add(text, colour);
    end_line();
  }
  int room() const { return options_.columns - used_; }
  std::string text() && { return std::move(text_); }

 private:
  const ViewOptions& options_;
  std::string text_;
  int used_ = 0;
};

std::string ago(double seconds) {
  return units::duration(std::chrono::duration<double>(std::max(seconds < 60 ? std::round(seconds) : seconds, 0.0)));
}

std::string percent(double share) { return print("%.0f %%", 100 * share); }

std::string value_text(double value) {
  const bool is_whole = std::abs(value) < 1e9 && value == std::floor(value);
  return print(is_whole ? "%.0f" : "%.4g", value);
}

std::string rate_text(double per_second) {
  if (per_second >= 1 || per_second <= 0) return print("%.3g/s", per_second);
  return print("%.3g s each", 1 / per_second);
}

std::string who(const RankStatus& rank) { return text::concat("rank ", rank.rank, " (", rank.host, ")"); }

const RankStatus* main_rank(const WatchFacts& facts) {
  const auto found =
      std::find_if(facts.ranks.begin(), facts.ranks.end(), [](const RankStatus& one) { return one.rank == 0; });
  return found == facts.ranks.end() ? nullptr : &*found;
}

bool is_silent(const RankStatus& rank, double now) {
  return !rank.is_over && now - rank.time > std::max(long_silence * rank.every, 10.0);
}

void put_state(Page& page, const WatchFacts& facts, const ViewOptions& options) {
  page.add(facts.folder, Ink::bold);
  page.add("  ");
  const auto* main = main_rank(facts);
  if (facts.failure) {
    page.add("failed", Ink::bad);
  } else if (facts.outcome) {
    page.add(*facts.outcome, *facts.outcome == "finished" ? Ink::good : Ink::warning);
  } else if (main == nullptr) {
    page.add("nothing is known of it", Ink::warning);
  } else if (main->is_over) {
    page.add("over", Ink::good);
  } else if (is_silent(*main, options.now)) {
    page.add("no sign of life for " + ago(options.now - main->time), Ink::bad);
  } else {
    page.add(main->phase, Ink::good);
  }
  if (main != nullptr) {
    std::set<std::string> hosts;
    for (const auto& rank : facts.ranks) hosts.insert(rank.host);
    page.add(text::concat("  ", text::count(main->world, "rank"), " on ",
                          text::count(static_cast<long long>(hosts.size()), "node")));
    if (!main->job.empty()) page.add("  " + main->job);
    const auto end = main->is_over || facts.outcome || facts.failure ? main->time : options.now;
    page.add("  for " + ago(end - main->started), Ink::faint);
  }
  page.end_line();
  if (facts.failure) page.row("", *facts.failure, Ink::bad);
}

std::string bar(double share, int width) {
  const int full = static_cast<int>(share * width);
  std::string cells = "[";
  for (int i = 0; i < width; ++i) cells += i < full ? '=' : i == full ? '>' : ' ';
  return cells + ']';
}

void put_loop(Page& page, const LoopStatus& loop, bool is_over) {
  page.label(loop.title.empty() ? "loop" : cut(loop.title, label_columns - 1));
  auto words = loop.total >= 0 ? text::concat(loop.done, '/', loop.total) : std::to_string(loop.done);
  if (loop.per_second > 0) words += "  " + rate_text(loop.per_second);
  const auto left = static_cast<double>(loop.total - loop.done) / loop.per_second;
  if (!is_over && loop.total >= 0 && loop.per_second > 0 && left >= 0) words += "  " + ago(left) + " left";
  if (loop.total > 0) {
    const double share = std::clamp(static_cast<double>(loop.done) / static_cast<double>(loop.total), 0.0, 1.0);
    page.add(print("%3d%% ", static_cast<int>(100 * share)));
    const int room = page.room() - width_of(words) - 4;
    if (room >= 5) page.add(bar(share, std::min(room, 40)) + "  ");
  }
  page.add(words);
  page.end_line();
}

std::vector<double> history(const WatchFacts& facts, const std::string& name, std::size_t most) {
  Curve curve;
  for (const auto& row : facts.rows) {
    const auto value = row.find(name);
    if (!value || !std::isfinite(*value)) continue;
    curve.x.push_back(static_cast<double>(row.step));
    curve.y.push_back(*value);
  }
  return thinned(curve, most).y;
}

std::string sparkline(const std::vector<double>& values, bool utf8) {
  static constexpr std::array<const char*, 8> blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> marks = {"_", ".", "-", "~", "=", "+", "*", "#"};
  if (values.size() < 2) return "";
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const double span = *greatest - *least;
  std::string line;
  for (const double value : values) {
    const double height = span > 0 ? (value - *least) / span : 0.5;
    const auto level = std::min<std::size_t>(static_cast<std::size_t>(height * 8), 7);
    line += utf8 ? blocks[level] : marks[level];
  }
  return line;
}

/// What was logged last, by the main rank's word or by the last row.
std::vector<std::pair<std::string, double>> latest_values(const WatchFacts& facts) {
  const auto* main = main_rank(facts);
  if (main != nullptr && !main->values.empty()) return main->values;
  return facts.rows.empty() ? decltype(MetricRow::values)() : facts.rows.back().values;
}

void put_values(Page& page, const WatchFacts& facts, const ViewOptions& options) {
  constexpr std::size_t most = 6;
  const auto values = latest_values(facts);
  std::size_t shown = 0;
  for (const auto& [name, value] : values) {
    if (shown++ == most) {
      page.row("", text::concat("and ", values.size() - most, " more"), Ink::faint);
      break;
    }
    page.label(cut(name, label_columns - 1));
    auto words = value_text(value);
    words.resize(std::max<std::size_t>(words.size(), 12), ' ');
    page.add(words, std::isfinite(value) ? Ink::plain : Ink::bad);
    const int room = std::min(page.room(), 60);
    if (room >= 10) page.add(sparkline(history(facts, name, static_cast<std::size_t>(room)), options.utf8));
    page.end_line();
  }
}

/// "1.2 of 2 a rank (least: 0.3, rank 3 (n2))" for what all ranks have.
template <typename Of>
const RankStatus& extreme(const std::vector<RankStatus>& ranks, const Of& of, bool greatest) {
  return *std::max_element(ranks.begin(), ranks.end(), [&](const RankStatus& a, const RankStatus& b) {
    return greatest ? of(a) < of(b) : of(a) > of(b);
  });
}

template <typename Of>
double mean_of(const std::vector<RankStatus>& ranks, const Of& of) {
  double sum = 0;
  for (const auto& rank : ranks) sum += static_cast<double>(of(rank));
  return sum / static_cast<double>(ranks.size());
}

std::string aside(const std::vector<RankStatus>& ranks, const char* word, const std::string& value,
                  const RankStatus& rank) {
  return ranks.size() == 1 ? "" : text::concat(", ", word, ' ', value, " on ", who(rank));
}

std::string bytes(double count) { return units::bytes(static_cast<std::uint64_t>(std::max(count, 0.0))); }

std::string each_of(const std::vector<RankStatus>& ranks) { return ranks.size() == 1 ? "" : " a rank"; }

/// What this run has of them, what all have, and how busy they are: what is known of it.
void put_devices(Page& page, const std::vector<RankStatus>& ranks) {
  const auto tensors = [](const RankStatus& one) { return one.device_bytes; };
  const auto used = [](const RankStatus& one) { return one.device_used_bytes; };
  const auto busy = [](const RankStatus& one) { return one.device_busy.value_or(0); };
  const auto size = [](std::int64_t count) { return bytes(static_cast<double>(count)); };
  const auto& largest = extreme(ranks, tensors, true);
  const auto& fullest = extreme(ranks, used, true);
  const auto& peak = extreme(
      ranks, [](const RankStatus& one) { return one.device_peak_bytes; }, true);
  const auto highest =
      peak.device_peak_bytes > 0 ? text::concat(" (", size(peak.device_peak_bytes), " at the most)") : std::string();
  const auto mean = bytes(mean_of(ranks, tensors)) + each_of(ranks) + highest;
  if (fullest.device_total_bytes > 0) {
    const bool is_one = ranks.size() == 1;
    page.row("GPU memory",
             text::concat(mean, is_one ? ", " : ", at most ", size(fullest.device_used_bytes), " of ",
                          size(fullest.device_total_bytes), " in use", is_one ? "" : " on " + who(fullest)));
  } else if (largest.device_bytes > 0) {
    page.row("GPU memory", mean + aside(ranks, "most", size(largest.device_bytes), largest));
  }
  const bool all_known =
      std::all_of(ranks.begin(), ranks.end(), [](const RankStatus& one) { return one.device_busy.has_value(); });
  if (!all_known) return;
  const auto& idlest = extreme(ranks, busy, false);
  page.row("GPU", percent(mean_of(ranks, busy)) + " of the time busy" +
                      aside(ranks, "least", percent(*idlest.device_busy), idlest));
}

void put_use(Page& page, const std::vector<RankStatus>& ranks) {
  const auto memory = [](const RankStatus& one) { return one.memory_bytes; };
  const auto cpu = [](const RankStatus& one) { return one.cpus_used; };
  const auto sharing = [](const RankStatus& one) { return one.communication; };
  const auto data = [](const RankStatus& one) { return one.data_wait; };
  const auto each = each_of(ranks);

  const auto& largest = extreme(ranks, memory, true);
  page.row("memory", bytes(mean_of(ranks, memory)) + each +
                         aside(ranks, "most", bytes(static_cast<double>(largest.memory_bytes)), largest));
  put_devices(page, ranks);
  const auto& idlest = extreme(ranks, cpu, false);
  page.row("CPU", print("%.1f of %d%s", mean_of(ranks, cpu), ranks.front().cpus, each.c_str()) +
                      aside(ranks, "least", print("%.1f", idlest.cpus_used), idlest));
  if (ranks.front().world > 1) {
    const auto& busiest = extreme(ranks, sharing, true);
    page.row("gradients", percent(mean_of(ranks, sharing)) + " of the time goes into averaging them" +
                              aside(ranks, "most", percent(busiest.communication), busiest));
  }
  const auto& hungriest = extreme(ranks, data, true);
  page.row("data",
           percent(mean_of(ranks, data)) + " of the time waits for it" +
               aside(ranks, "most", percent(hungriest.data_wait), hungriest),
           hungriest.data_wait > 0.2 ? Ink::warning : Ink::plain);
}

void put_saves(Page& page, const WatchFacts& facts, const RankStatus* main, double now) {
  std::string words;
  if (!facts.checkpoints.empty()) {
    const auto& newest = facts.checkpoints.front();
    words = text::concat(newest.name, ", ", ago(now - newest.at), " old");
    if (facts.checkpoints.size() > 1) words += text::concat("; ", facts.checkpoints.size(), " in all");
  }
  if (main != nullptr && main->save) {
    words += text::concat(words.empty() ? "" : "; ", "the last save took ", ago(main->save->seconds));
    if (main->save->longest > main->save->seconds) words += ", the longest " + ago(main->save->longest);
  }
  page.row("saved", words.empty() ? "nothing yet" : words);
}

void put_slow(Page& page, const WatchFacts& facts, double now) {
  const auto slow = slowest(facts.ranks);
  if (!slow.empty()) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < std::min<std::size_t>(slow.size(), 3); ++i) words.push_back(who(slow[i]));
    page.row("slowest", text::join(words) + ": the others wait", Ink::warning);
  }
  std::vector<std::string> silent;
  for (const auto& rank : facts.ranks) {
    if (is_silent(rank, now)) silent.push_back(who(rank) + " for " + ago(now - rank.time));
  }
  if (!silent.empty() && silent.size() < facts.ranks.size()) page.row("silent", text::join(silent), Ink::bad);
}

void put_restarts(Page& page, const WatchFacts& facts) {
  if (facts.sessions.size() < 2) return;
  std::vector<std::string> places;
  for (std::size_t i = 1; i < facts.sessions.size(); ++i) {
    const auto& after = facts.sessions[i].resumed_after;
    places.push_back(after ? text::concat("after step ", *after) : "from the beginning");
  }
  if (places.size() > 3) places.erase(places.begin(), places.end() - 3);
  const auto count = facts.sessions.size() - 1;
  page.row("restarts", text::concat(count, count > places.size() ? ", the last ones " : ": ", text::join(places)));
}

}  // namespace

std::vector<RankStatus> slowest(const std::vector<RankStatus>& ranks) {
  constexpr double clearly = 0.15;
  if (ranks.size() < 2) return {};
  std::vector<double> shares;
  for (const auto& rank : ranks) shares.push_back(rank.communication);
  std::sort(shares.begin(), shares.end());
  const double usual = shares[shares.size() / 2];
  std::vector<RankStatus> slow;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(slow),
               [&](const RankStatus& rank) { return rank.communication < usual - clearly; });
  std::sort(slow.begin(), slow.end(),
            [](const RankStatus& a, const RankStatus& b) { return a.communication < b.communication; });
  return slow;
}

std::string watch_view(const WatchFacts& facts, const ViewOptions& options) {
  Page page(options);
  put_state(page, facts, options);
  const auto* main = main_rank(facts);
  if (main != nullptr) {
    const bool is_over = main->is_over || facts.outcome || facts.failure;
    for (const auto& loop : main->loops) put_loop(page, loop, is_over);
    page.row("updates", text::concat(main->updates, "  ", rate_text(main->updates_per_second)));
    const auto deadline = main->deadline ? main->deadline : facts.deadline;
    if (deadline && !is_over) {
      const double left = *deadline - options.now;
      page.row("job", left > 0 ? "ends in " + ago(left) : std::string("its time is over"),
               left < 300 ? Ink::warning : Ink::plain);
    }
  }
  put_values(page, facts, options);
  if (main != nullptr) put_use(page, facts.ranks);
  put_saves(page, facts, main, options.now);
  put_slow(page, facts, options.now);
  put_restarts(page, facts);
  return std::move(page).text();
}

}  // namespace hortator::report
