#include "observe/status/metrics_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <utility>

#include "core/text/text.hpp"
#include "observe/status/rank_facts.hpp"

namespace hortator::observe {
namespace {

constexpr std::size_t max_groups = 64;

using Labels = std::vector<std::pair<std::string, std::string>>;

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return text::print("%.17g", value);
}

/// Collects the samples of a metric; writes nothing for a metric without samples.
class Writer {
 public:
  explicit Writer(Labels common) : common_(std::move(common)) {}

  /// Begins a metric.
  Writer& metric(const char* name, const char* help) {
    name_ = text::concat("hortator_", name);
    heading_ = text::concat("# HELP ", name_, ' ', help, "\n# TYPE ", name_, " gauge\n");
    return *this;
  }
  Writer& sample(double value, const Labels& labels = {}) {
    text_ += std::exchange(heading_, "");
    std::vector<std::string> pairs;
    for (const auto* list : std::initializer_list<const Labels*>{&common_, &labels}) {
      for (const auto& [name, content] : *list) pairs.push_back(text::concat(name, "=\"", escaped(content), '"'));
    }
    text_ += text::concat(name_, '{', text::join(pairs, ","), "} ", number(value), '\n');
    return *this;
  }
  template <typename T>
  Writer& optional(const std::optional<T>& value) {
    return value ? sample(static_cast<double>(*value)) : *this;
  }
  std::string text() && { return std::move(text_) + "# EOF\n"; }

 private:
  Labels common_;
  std::string name_;
  std::string heading_;
  std::string text_;
};

/// Neighbouring ranks whose figures are put together.
struct Group {
  std::vector<const RankStatus*> ranks;
  int hosts = 0;

  Labels labels(const char* statistic) const {
    const auto first = ranks.front()->rank;
    const auto last = ranks.back()->rank;
    const auto host = hosts == 1 ? ranks.front()->host : text::concat(ranks.front()->host, " and ", hosts - 1, " more");
    return {{"host", host},
            {"ranks", first == last ? text::concat(first) : text::concat(first, '-', last)},
            {"stat", statistic}};
  }
};

std::vector<Group> nodes_of(const std::vector<RankStatus>& ranks) {
  std::vector<Group> nodes;
  for (const auto& rank : ranks) {
    if (nodes.empty() || nodes.back().ranks.back()->host != rank.host) nodes.push_back({.ranks = {}, .hosts = 1});
    nodes.back().ranks.push_back(&rank);
  }
  return nodes;
}

std::vector<Group> groups_of(const std::vector<RankStatus>& ranks) {
  auto nodes = nodes_of(ranks);
  if (nodes.size() <= max_groups) return nodes;
  const std::size_t each = (nodes.size() + max_groups - 1) / max_groups;
  std::vector<Group> groups;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i % each == 0) groups.emplace_back();
    auto& group = groups.back();
    group.ranks.insert(group.ranks.end(), nodes[i].ranks.begin(), nodes[i].ranks.end());
    ++group.hosts;
  }
  return groups;
}

using Figure = std::function<double(const RankStatus&)>;

void put_groups(Writer& writer, const std::vector<Group>& groups, const Figure& figure) {
  for (const auto& group : groups) {
    double sum = 0;
    double low = INFINITY;
    double high = -INFINITY;
    for (const auto* rank : group.ranks) {
      const double value = figure(*rank);
      sum += value;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    writer.sample(sum / static_cast<double>(group.ranks.size()), group.labels("mean"));
    if (group.ranks.size() == 1) continue;
    writer.sample(low, group.labels("min")).sample(high, group.labels("max"));
  }
}

void put_ranks(Writer& writer, const std::vector<RankStatus>& ranks) {
  struct RankMetric {
    const char* name;
    const char* help;
    Figure figure;
  };
  const std::vector<RankMetric> of_all = {
      {"memory_bytes", "Resident memory of a rank", [](const RankStatus& rank) { return rank.memory_bytes; }},
      {"cpus_used", "CPUs that a rank keeps busy", [](const RankStatus& rank) { return rank.cpus_used; }},
      {"cpus", "CPUs that a rank may use", [](const RankStatus& rank) { return rank.cpus; }},
      {"communication_ratio", "Share of the time that a rank spends on averaging gradients",
       [](const RankStatus& rank) { return rank.communication; }},
      {"data_wait_ratio", "Share of the time that a rank waits for data",
       [](const RankStatus& rank) { return rank.data_wait; }}};
  const std::vector<RankMetric> of_devices = {
      {"gpu_memory_bytes", "GPU memory of a rank's tensors", [](const RankStatus& rank) { return rank.device_bytes; }},
      {"gpu_memory_peak_bytes", "Maximum of the GPU memory of a rank's tensors",
       [](const RankStatus& rank) { return rank.device_peak_bytes; }},
      {"gpu_memory_used_bytes", "GPU memory in use by all processes",
       [](const RankStatus& rank) { return rank.device_used_bytes; }},
      {"gpu_memory_total_bytes", "GPU memory of a rank's device",
       [](const RankStatus& rank) { return rank.device_total_bytes; }},
      {"gpu_busy_ratio", "Share of the recent time in which a rank's GPU computed",
       [](const RankStatus& rank) { return rank.device_busy.value_or(0); }}};
  const auto groups = groups_of(ranks);
  const bool has_devices = std::ranges::any_of(ranks, [](const RankStatus& rank) { return rank.device_bytes > 0; });
  for (const auto& metric : of_all) put_groups(writer.metric(metric.name, metric.help), groups, metric.figure);
  if (!has_devices) return;
  for (const auto& metric : of_devices) put_groups(writer.metric(metric.name, metric.help), groups, metric.figure);
}

void put_state(Writer& writer, const std::string& state) {
  constexpr std::array<const char*, 8> states = {"running", "silent", "over",   "finished",
                                                 "stopped", "failed", "killed", "unknown"};
  writer.metric("run_state", "1 for the state that the run is in, 0 for all others");
  for (const char* each : states) writer.sample(state == each ? 1 : 0, {{"state", each}});
}

void put_main(Writer& writer, const RankStatus& main) {
  writer.metric("run_info", "1, with facts of the run as labels");
  writer.sample(1, {{"run_id", main.run_id}, {"mesh", main.mesh}, {"host", main.host}, {"phase", main.phase}});
  writer.metric("ranks", "Ranks of the run").sample(main.world);
  writer.metric("start_time_seconds", "When the run was started, in seconds since 1970").sample(main.started);
  writer.metric("status_time_seconds", "When the main rank last wrote its status").sample(main.time);
  writer.metric("updates", "Updates of the model, also those before a resumption")
      .sample(static_cast<double>(main.updates));
  writer.metric("updates_per_second", "Updates per second since the last status").sample(main.updates_per_second);
  const auto of_loops = [&](const char* name, const char* help, const auto& figure) {
    writer.metric(name, help);
    for (const auto& loop : main.loops) {
      const double value = figure(loop);
      if (value >= 0) writer.sample(value, {{"loop", loop.title.empty() ? "loop" : loop.title}});
    }
  };
  of_loops("loop_done", "Rounds of a loop that are done",
           [](const LoopStatus& loop) { return static_cast<double>(loop.done); });
  of_loops("loop_length", "Rounds of a loop in total",
           [](const LoopStatus& loop) { return static_cast<double>(loop.total); });
  of_loops("loop_rounds_per_second", "Rounds of a loop per second",
           [](const LoopStatus& loop) { return loop.per_second; });
  writer.metric("value", "The value that the program last logged under a name");
  for (const auto& [name, value] : main.values) writer.sample(value, {{"name", name}});
  if (!main.save) return;
  writer.metric("last_save_time_seconds", "When the last save ended").sample(main.save->at);
  writer.metric("last_save_duration_seconds", "How long the last save held up the program").sample(main.save->seconds);
  writer.metric("longest_save_duration_seconds", "How long the longest save held up the program")
      .sample(main.save->longest);
}

void put_energy(Writer& writer, const std::vector<RankStatus>& ranks) {
  const auto energy = energy_of(ranks);
  if (energy.samples > 0)
    writer.metric("samples", "Samples that loaders have handed out").sample(static_cast<double>(energy.samples));
  if (energy.source.empty()) return;
  writer.metric("energy_joules", "Energy of the run's nodes and GPUs since its start")
      .sample(energy.joules, {{"source", energy.source}});
  if (energy.samples > 0) {
    writer.metric("energy_joules_per_sample", "Energy for each sample")
        .sample(energy.joules / static_cast<double>(energy.samples));
  }
}

void put_outliers(Writer& writer, const std::vector<RankStatus>& ranks, double now) {
  constexpr std::size_t max_named = 3;
  writer.metric("silent_ranks", "Ranks whose status is overdue")
      .sample(static_cast<double>(
          std::ranges::count_if(ranks, [&](const RankStatus& rank) { return is_silent(rank, now); })));
  const auto slow = slowest(ranks);
  writer.metric("slow_ranks", "Ranks that the others wait for").sample(static_cast<double>(slow.size()));
  writer.metric("slowest_rank_communication_ratio",
                "The slowest ranks, by the share of the time that they spend on averaging gradients");
  for (std::size_t i = 0; i < std::min(slow.size(), max_named); ++i)
    writer.sample(slow[i].communication, {{"rank", text::concat(slow[i].rank)}, {"host", slow[i].host}});
}

}  // namespace

std::string metrics_text(const MetricsFacts& facts, double now) {
  const auto found = std::ranges::find(facts.ranks, 0, &RankStatus::rank);
  const auto* main = found == facts.ranks.end() ? nullptr : &*found;
  Writer writer({{"run", facts.run}, {"job", main == nullptr ? "" : main->job}});
  put_state(writer, facts.state);
  if (main != nullptr) put_main(writer, *main);
  const auto deadline = main != nullptr && main->deadline ? main->deadline : facts.deadline;
  writer.metric("deadline_time_seconds", "When the job's time is over").optional(deadline);
  writer.metric("checkpoints", "Checkpoints in the run's folder").optional(facts.checkpoints);
  writer.metric("checkpoint_time_seconds", "When the newest checkpoint was written").optional(facts.checkpoint_at);
  writer.metric("restarts", "How often the run has been resumed").optional(facts.restarts);
  writer.metric("failed_attempts", "Attempts that failed under hortator launch").optional(facts.failed_attempts);
  if (!facts.ranks.empty()) {
    writer.metric("nodes", "Nodes of the ranks that have written a status")
        .sample(static_cast<double>(nodes_of(facts.ranks).size()));
    put_ranks(writer, facts.ranks);
    put_energy(writer, facts.ranks);
    put_outliers(writer, facts.ranks, now);
  }
  return std::move(writer).text();
}

}  // namespace hortator::observe
