#include "accelerator/pipeline/step_times.hpp"

#include <cstring>
#include <fstream>
#include <hortator/error.hpp>
#include <map>
#include <string_view>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::accelerator {
namespace {

using Entries = std::vector<parallel::Timeline::Entry>;
using Kind = parallel::StageAction::Kind;

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return "forward";
    case Kind::inputs:
      return "inputs";
    case Kind::weights:
      return "weights";
    default:
      return "backward";
  }
}

std::string row_of_time(std::string_view what, std::size_t rank, const parallel::Timeline::Entry& entry) {
  const nlohmann::ordered_json row = {{"times", what},
                                      {"rank", rank},
                                      {"action", kind_name(entry.action.kind)},
                                      {"stage", entry.action.stage},
                                      {"micro_batch", entry.action.micro_batch},
                                      {"begin", entry.begin},
                                      {"end", entry.end}};
  return row.dump() + '\n';
}

/// The mean time of each kind of action.
parallel::StageCosts mean_costs(const std::vector<Entries>& measured) {
  std::map<Kind, std::pair<double, int>> sums;
  for (const auto& entries : measured) {
    for (const auto& entry : entries) {
      auto& [sum, count] = sums[entry.action.kind];
      sum += entry.end - entry.begin;
      ++count;
    }
  }
  const auto mean = [&](Kind kind) {
    const auto found = sums.find(kind);
    return found == sums.end() ? 0 : found->second.first / found->second.second;
  };
  const auto whole = mean(Kind::backward) / 2;
  return {.forward = mean(Kind::forward),
          .inputs = whole > 0 ? whole : mean(Kind::inputs),
          .weights = whole > 0 ? whole : mean(Kind::weights)};
}

}  // namespace

std::string rows_of_times(PipelineSchedule schedule, const parallel::PipelineShape& shape,
                          const std::vector<Entries>& measured) {
  const auto planned = run_plans(plan_ranks(schedule, shape), shape, mean_costs(measured));
  std::string rows;
  for (const auto& [what, ranks] : {std::pair("planned", planned.ranks), std::pair("measured", measured)}) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (const auto& entry : ranks[rank]) rows += row_of_time(what, rank, entry);
    }
  }
  return rows;
}

void write_times(const std::filesystem::path& file, PipelineSchedule schedule, const parallel::PipelineShape& shape,
                 const Entries& mine, const parallel::RankGroup* stages, const mpi::Communicator& all) {
  std::vector<Entries> measured = {mine};
  if (stages != nullptr) {
    const std::string_view bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(Entries::value_type));
    measured.clear();
    for (const auto& part : mpi::all_gather(stages->host, bytes)) {
      measured.emplace_back(part.size() / sizeof(Entries::value_type));
      std::memcpy(measured.back().data(), part.data(), part.size());
    }
  }
  mpi::all_or_none(all, [&] {
    if (all.rank() != 0) return;
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file);
    out << rows_of_times(schedule, shape, measured);
    if (!out.flush())
      throw Error({.what = text::concat("The times of a pipeline could not be written to ", text::quote(file.string())),
                   .hint = "check the folder's permissions and free space"});
  });
}

}  // namespace hortator::accelerator
