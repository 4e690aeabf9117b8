#include "tools/watch/watch_view.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

#include "core/text/terminal.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "core/time.hpp"
#include "observe/status/progress_text.hpp"
#include "tools/watch/watch_ranks.hpp"

namespace hortator::tools {
namespace {

void put_state(core::Page& page, const WatchFacts& facts, const ViewOptions& options) {
  page.add(facts.folder, core::Ink::bold);
  page.add("  ");
  const auto* main = main_rank(facts);
  if (facts.failure) {
    page.add("failed", core::Ink::bad);
  } else if (facts.outcome) {
    page.add(*facts.outcome, *facts.outcome == "finished" ? core::Ink::good : core::Ink::warning);
  } else if (facts.is_killed) {
    page.add("killed", core::Ink::bad);
  } else if (main == nullptr) {
    page.add("no status", core::Ink::warning);
  } else if (main->is_over) {
    page.add("over", core::Ink::good);
  } else if (is_silent(*main, options.now)) {
    page.add("no status for " + ago(options.now - main->time), core::Ink::bad);
  } else {
    page.add(main->phase, core::Ink::good);
  }
  if (main != nullptr) {
    std::set<std::string> hosts;
    for (const auto& rank : facts.ranks) hosts.insert(rank.host);
    const auto mesh = main->mesh.empty() ? std::string() : text::concat(" (", main->mesh, ")");
    page.add(text::concat("  ", text::count(main->world, "rank"), mesh, " on ",
                          text::count(static_cast<long long>(hosts.size()), "node")));
    if (!main->job.empty()) page.add("  " + main->job);
    const auto end = main->is_over || has_ended(facts) ? main->time : options.now;
    page.add("  for " + ago(end - main->started), core::Ink::faint);
  }
  page.end_line();
  if (facts.failure) page.long_row("", *facts.failure, core::Ink::bad);
  std::vector<std::string> arguments;
  for (const auto& [name, value] : facts.arguments) arguments.push_back(name + "=" + value);
  if (!arguments.empty()) page.row("arguments", text::join(arguments, " "));
}

void put_loop(core::Page& page, const observe::LoopStatus& loop, bool is_over) {
  page.label(loop.title.empty() ? "loop" : core::cut(loop.title, core::Page::label_columns - 1));
  auto line = loop.total >= 0 ? text::concat(loop.done, '/', loop.total) : std::to_string(loop.done);
  if (loop.per_second > 0) line += "  " + observe::rate_text(loop.per_second);
  const auto left = static_cast<double>(loop.total - loop.done) / loop.per_second;
  if (!is_over && loop.total >= 0 && loop.per_second > 0 && left >= 0) line += "  " + ago(left) + " left";
  if (loop.total > 0) {
    const double share = std::clamp(static_cast<double>(loop.done) / static_cast<double>(loop.total), 0.0, 1.0);
    page.add(text::print("%3d%% ", static_cast<int>(100 * share)));
    const int room = page.room() - core::width_of(line) - 4;
    if (room >= 5) page.add(observe::bar(share, std::min(room, 40)) + "  ");
  }
  page.add(line);
  page.end_line();
}

std::vector<double> history(const WatchFacts& facts, const std::string& name, std::size_t max_points) {
  Curve curve;
  for (const auto& row : facts.rows) {
    const auto value = row.find(name);
    if (!value || !std::isfinite(*value)) continue;
    curve.x.push_back(static_cast<double>(row.step));
    curve.y.push_back(*value);
  }
  return thinned(curve, max_points).y;
}

void put_values(core::Page& page, const WatchFacts& facts, const ViewOptions& options) {
  constexpr std::size_t max_values = 6;
  const auto values = latest_values(facts);
  std::size_t shown = 0;
  for (const auto& [name, value] : values) {
    if (shown++ == max_values) {
      page.row("", text::concat("and ", values.size() - max_values, " more"), core::Ink::faint);
      break;
    }
    page.label(core::cut(name, core::Page::label_columns - 1));
    auto line = observe::value_text(value);
    line.resize(std::max<std::size_t>(line.size(), 12), ' ');
    page.add(line, std::isfinite(value) ? core::Ink::plain : core::Ink::bad);
    const int room = std::min(page.room(), 60);
    if (room >= 10) page.add(core::sparkline(history(facts, name, static_cast<std::size_t>(room)), options.utf8));
    page.end_line();
  }
}

std::string took(double seconds) { return units::duration(std::chrono::duration<double>(seconds)); }

void put_saves(core::Page& page, const WatchFacts& facts, const observe::RankStatus* main, double now) {
  std::string line;
  if (!facts.checkpoints.empty()) {
    const auto& newest = facts.checkpoints.front();
    line = text::concat(newest.name, ", ", ago(now - newest.at), " old");
    if (facts.checkpoints.size() > 1) line += text::concat("; ", facts.checkpoints.size(), " in total");
  }
  if (main != nullptr && main->save) {
    line += text::concat(line.empty() ? "" : "; ", "the last save took ", took(main->save->seconds));
    if (main->save->longest > main->save->seconds) line += ", the longest " + took(main->save->longest);
  }
  page.long_row("saved", line.empty() ? "nothing yet" : line);
}

void put_restarts(core::Page& page, const WatchFacts& facts) {
  if (facts.sessions.size() < 2) return;
  std::vector<std::string> points;
  for (std::size_t i = 1; i < facts.sessions.size(); ++i) {
    const auto& after = facts.sessions[i].resumed_after;
    points.push_back(after ? text::concat("after step ", *after) : "from scratch");
  }
  if (points.size() > 3) points.erase(points.begin(), points.end() - 3);
  const auto count = facts.sessions.size() - 1;
  page.row("restarts", text::concat(count, count > points.size() ? ", the last ones " : ": ", text::join(points)));
}

// The last failed attempts: where, why, and what followed.
void put_attempts(core::Page& page, const WatchFacts& facts) {
  constexpr std::size_t max_shown = 3;
  const auto count = facts.attempts.size();
  for (std::size_t i = count > max_shown ? count - max_shown : 0; i < count; ++i) {
    const auto& attempt = facts.attempts[i];
    auto line = text::concat(core::utc(static_cast<std::time_t>(attempt.time)), " exit code ", attempt.exit_code);
    if (attempt.rank >= 0)
      line += text::concat(", rank ", attempt.rank, " (", attempt.host, ") at step ", attempt.step);
    line += text::concat(", ", attempt.error_class, ": ",
                         attempt.is_restarted ? "restarted" : "not restarted: " + attempt.refused);
    if (!attempt.left_out.empty()) line += "; left out: " + text::join(attempt.left_out, "; ");
    if (!attempt.kept.empty()) line += "; kept: " + text::join(attempt.kept, "; ");
    page.long_row("failed", core::one_line(line), attempt.is_restarted ? core::Ink::warning : core::Ink::bad);
  }
}

}  // namespace

const observe::RankStatus* main_rank(const WatchFacts& facts) {
  const auto found = std::find_if(facts.ranks.begin(), facts.ranks.end(),
                                  [](const observe::RankStatus& rank) { return rank.rank == 0; });
  return found == facts.ranks.end() ? nullptr : &*found;
}

std::vector<std::pair<std::string, double>> latest_values(const WatchFacts& facts) {
  const auto* main = main_rank(facts);
  if (main != nullptr && !main->values.empty()) return main->values;
  return facts.rows.empty() ? decltype(MetricRow::values)() : facts.rows.back().values;
}

std::string state_of(const WatchFacts& facts, double now) {
  if (facts.failure) return "failed";
  if (facts.outcome) return *facts.outcome;
  if (facts.is_killed) return "killed";
  const auto* main = main_rank(facts);
  if (main == nullptr) return "unknown";
  if (main->is_over) return "over";
  return is_silent(*main, now) ? "silent" : "running";
}

bool has_ended(const WatchFacts& facts) { return facts.outcome || facts.failure || facts.is_killed; }

std::string watch_view(const WatchFacts& facts, const ViewOptions& options) {
  core::Page page(options.columns, options.colour);
  put_state(page, facts, options);
  const auto* main = main_rank(facts);
  if (main != nullptr) {
    const bool is_over = main->is_over || has_ended(facts);
    for (const auto& loop : main->loops) put_loop(page, loop, is_over);
    page.row("updates", text::concat(main->updates, "  ", observe::rate_text(main->updates_per_second)));
    const auto deadline = main->deadline ? main->deadline : facts.deadline;
    if (deadline && !is_over) {
      const double left = *deadline - options.now;
      page.row("job", left > 0 ? "ends in " + ago(left) : std::string("its time limit has passed"),
               left < 300 ? core::Ink::warning : core::Ink::plain);
    }
  }
  put_values(page, facts, options);
  if (main != nullptr) put_use(page, facts.ranks);
  put_saves(page, facts, main, options.now);
  if (!has_ended(facts)) put_stragglers(page, facts.ranks, options.now);
  put_restarts(page, facts);
  put_attempts(page, facts);
  return std::move(page).text();
}

}  // namespace hortator::tools
