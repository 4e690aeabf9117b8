#include "parallel/pipeline/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <map>
#include <tuple>

#include "core/text/text.hpp"

namespace hortator::parallel {
namespace {

using Kind = StageAction::Kind;

/// The ends of what has run, by stage and micro-batch.
class Done {
 public:
  explicit Done(const PipelineShape& shape) : shape_(shape) {}

  /// The earliest begin of an action; negative while what it needs has not run.
  double ready(const StageAction& action) const {
    const auto& [kind, stage, micro] = action;
    if (kind == Kind::forward) return stage == 0 ? 0 : end_of(Kind::forward, stage - 1, micro);
    if (kind == Kind::weights) return end_of(Kind::inputs, stage, micro);
    const auto own = end_of(Kind::forward, stage, micro);
    if (own < 0 || stage + 1 == shape_.stages()) return own;
    const auto next = std::max(end_of(Kind::backward, stage + 1, micro), end_of(Kind::inputs, stage + 1, micro));
    return next < 0 ? next : std::max(own, next);
  }

  void add(const StageAction& action, double end) {
    const bool is_new = ends_.emplace(std::tuple(action.kind, action.stage, action.micro_batch), end).second;
    if (!is_new)
      throw Error(
          {.what = text::concat("Stage ", action.stage, " computes micro-batch ", action.micro_batch, " twice")});
  }

  std::size_t size() const { return ends_.size(); }

 private:
  double end_of(Kind kind, int stage, int micro) const {
    const auto found = ends_.find(std::tuple(kind, stage, micro));
    return found == ends_.end() ? -1 : found->second;
  }

  PipelineShape shape_;
  std::map<std::tuple<Kind, int, int>, double> ends_;
};

/// Every micro-batch passes each stage forward, and backward either as a whole or in halves.
void require_complete(const std::vector<std::vector<StageAction>>& plans, const PipelineShape& shape) {
  std::map<std::tuple<int, int>, int> backward, forward;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (const auto& [kind, stage, micro] : plans[static_cast<std::size_t>(rank)]) {
      if (shape.rank_of(stage) != rank)
        throw Error({.what = text::concat("Rank ", rank, " computes stage ", stage, " of another rank")});
      if (kind == Kind::forward) ++forward[{stage, micro}];
      if (kind != Kind::forward) backward[{stage, micro}] += kind == Kind::backward ? 2 : 1;
    }
  }
  for (int stage = 0; stage < shape.stages(); ++stage) {
    for (int micro = 0; micro < shape.micro_batches; ++micro) {
      if (forward[{stage, micro}] == 1 && backward[{stage, micro}] == 2) continue;
      throw Error({.what = text::concat("Stage ", stage, " does not compute micro-batch ", micro, " once")});
    }
  }
}

std::string label(const StageAction& action, const PipelineShape& shape) {
  const auto stage =
      shape.stages_per_rank > 1 ? std::string(1, static_cast<char>('a' + action.stage / shape.ranks)) : std::string();
  const auto number = text::concat(stage, action.micro_batch);
  switch (action.kind) {
    case Kind::forward:
      return number;
    case Kind::inputs:
      return "<" + number + ">";
    case Kind::weights:
      return "{" + number + "}";
    default:
      return "[" + number + "]";
  }
}

}  // namespace

double StageCosts::of(StageAction::Kind kind) const {
  switch (kind) {
    case Kind::forward:
      return forward;
    case Kind::inputs:
      return inputs;
    case Kind::weights:
      return weights;
    default:
      return inputs + weights;
  }
}

double Timeline::length() const {
  double length = 0;
  for (const auto& entries : ranks) length = std::max(length, entries.empty() ? 0.0 : entries.back().end);
  return length;
}

double Timeline::idle_share() const {
  double busy = 0;
  for (const auto& entries : ranks) {
    for (const auto& entry : entries) busy += entry.end - entry.begin;
  }
  const auto all = length() * static_cast<double>(ranks.size());
  return all > 0 ? 1 - busy / all : 0;
}

Timeline run_plans(const std::vector<std::vector<StageAction>>& plans, const PipelineShape& shape,
                   const StageCosts& costs) {
  require_complete(plans, shape);
  Timeline timeline{.ranks = std::vector<std::vector<Timeline::Entry>>(plans.size()),
                    .peaks = std::vector<int>(plans.size(), 0)};
  Done done(shape);
  std::vector<int> held(plans.size(), 0);
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      auto& entries = timeline.ranks[rank];
      while (entries.size() < plans[rank].size()) {
        const auto& action = plans[rank][entries.size()];
        const auto ready = done.ready(action);
        if (ready < 0) break;
        const auto begin = std::max(ready, entries.empty() ? 0.0 : entries.back().end);
        const auto end = begin + costs.of(action.kind);
        done.add(action, end);
        entries.push_back({.action = action, .begin = begin, .end = end});
        held[rank] += action.kind == Kind::forward ? 1 : action.kind == Kind::inputs ? 0 : -1;
        timeline.peaks[rank] = std::max(timeline.peaks[rank], held[rank]);
        moves = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    if (timeline.ranks[rank].size() == plans[rank].size()) continue;
    const auto& next = plans[rank][timeline.ranks[rank].size()];
    throw Error({.what = text::concat("The ranks of a pipeline wait for each other: rank ", rank, " at micro-batch ",
                                      next.micro_batch, " of stage ", next.stage)});
  }
  return timeline;
}

std::string chart(const Timeline& timeline) {
  PipelineShape shape{.ranks = static_cast<int>(timeline.ranks.size())};
  int stages = 0;
  std::size_t width = 1;
  for (const auto& entries : timeline.ranks) {
    for (const auto& entry : entries) stages = std::max(stages, entry.action.stage + 1);
  }
  shape.stages_per_rank = std::max(1, stages / std::max(1, shape.ranks));
  for (const auto& entries : timeline.ranks) {
    for (const auto& entry : entries) width = std::max(width, label(entry.action, shape).size());
  }
  const auto columns = static_cast<std::size_t>(std::lround(timeline.length()));
  std::string lines;
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    std::vector<std::string> cells(columns, ".");
    for (const auto& entry : timeline.ranks[rank]) {
      for (auto at = std::lround(entry.begin); at < std::lround(entry.end); ++at)
        cells[static_cast<std::size_t>(at)] = label(entry.action, shape);
    }
    lines += text::concat("rank ", rank, ":");
    for (const auto& cell : cells) lines += " " + std::string(width - cell.size(), ' ') + cell;
    lines += "\n";
  }
  return lines;
}

}  // namespace hortator::parallel
