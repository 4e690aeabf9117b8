#include "accelerator/rehearsal/rehearsal.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/rehearsal/memory_at_peak.hpp"
#include "accelerator/training/training.hpp"
#include "comm/rehearsed/traffic.hpp"
#include "core/environment/environment.hpp"
#include "core/environment/setting_key.hpp"
#include "core/log.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "machine/shapes/counted_memory.hpp"
#include "machine/shapes/shape_operators.hpp"
#include "mpi/rehearsed_world.hpp"
#include "observe/profile/flop_counter.hpp"
#include "parallel/pipeline/rehearsed_stages.hpp"
#include "runtime/ending/early_end.hpp"

namespace hortator::accelerator {
namespace {

using Json = nlohmann::ordered_json;

/// Between the first update and the second.
struct Rehearsal {
  int updates = 0;
  std::optional<observe::FlopCounter> flops;
  std::vector<comm::Traffic> before;  ///< until the first update
};

Rehearsal& rehearsal() {
  static auto& rehearsal = *new Rehearsal;
  return rehearsal;
}

// "tensor", or all axes along which the members of a group differ, such as "replicate+shard".
std::string axes_of(const parallel::MeshShape& shape, const std::vector<int>& members) {
  std::vector<std::string> names;
  for (const auto axis : parallel::all_axes) {
    const auto differs = [&](int rank) { return shape.index(axis, rank) != shape.index(axis, members.front()); };
    if (std::ranges::any_of(members, differs)) names.emplace_back(parallel::name_of(axis));
  }
  return names.empty() ? "none" : text::join(names, "+");
}

Json traffic_json(const parallel::MeshShape& shape, const std::vector<comm::Traffic>& all) {
  std::map<std::pair<std::string, std::string>, comm::Traffic> by_axis;
  for (const auto& one : all) {
    auto& sum = by_axis[{axes_of(shape, one.members), one.verb}];
    sum.members = one.members;
    sum.calls += one.calls;
    sum.bytes += one.bytes;
    sum.sent += one.sent;
  }
  auto rows = Json::array();
  for (const auto& [key, sum] : by_axis) {
    if (sum.bytes == 0) continue;
    rows.push_back({{"axis", key.first},
                    {"verb", key.second},
                    {"ranks", sum.members.size()},
                    {"calls", sum.calls},
                    {"bytes", sum.bytes},
                    {"sent", sum.sent}});
  }
  return rows;
}

Json groups_json(const parallel::MeshShape& shape) {
  auto rows = Json::array();
  for (const auto& members : mpi::rehearsed_groups()) {
    const int stride = members.size() > 1 ? members[1] - members[0] : 1;
    rows.push_back(
        {{"axis", axes_of(shape, members)}, {"ranks", members.size()}, {"first", members.front()}, {"stride", stride}});
  }
  return rows;
}

Json memory_json(const PeakByOwner& peak) {
  auto operators = Json::array();
  for (const auto& one : peak.activations_by_operator)
    operators.push_back({{"operator", one.name}, {"bytes", one.bytes}, {"largest", one.largest}});
  return {{"peak", peak.total},
          {"parameters", peak.parameters},
          {"gradients", peak.gradients},
          {"optimizers", peak.optimizers},
          {"buffers", peak.buffers},
          {"activations", peak.activations},
          {"activations_by_operator", operators}};
}

Json axes_json(const parallel::MeshShape& shape, int rank) {
  auto sizes = Json::object();
  for (const auto axis : parallel::all_axes)
    sizes[std::string(parallel::name_of(axis))] = {{"ranks", shape.size(axis)}, {"index", shape.index(axis, rank)}};
  return sizes;
}

std::int64_t parameters_here(const Training& training) {
  std::int64_t count = 0;
  for (const auto& model : training.prepared.models()) {
    for (const auto& [name, parameter] : model->parameters()) count += parameter.numel();
  }
  return count;
}

Json report(const Training& training, double flops) {
  const auto& shape = training.channels.mesh().shape();
  const int rank = training.host().rank();
  return {{"rank", rank},
          {"ranks", training.host().size()},
          {"mesh", shape.text()},
          {"axes", axes_json(shape, rank)},
          {"parameters_here", parameters_here(training)},
          {"flops", flops},
          {"memory", memory_json(peak_by_owner(training))},
          {"traffic", traffic_json(shape, comm::noted_traffic())},
          {"set_up_traffic", traffic_json(shape, rehearsal().before)},
          {"groups", groups_json(shape)},
          {"stage_outputs", parallel::noted_stage_messages()},
          {"computed_in_full", machine::operators_computed_in_full()}};
}

void write_report(const Training& training, double flops) {
  const auto asked = core::variable("HORTATOR_MEMORY_REPORT");
  if (!asked) return;
  auto file = std::filesystem::path(*asked);
  if (!mpi::rehearsed_world()) file += text::concat('.', training.host().rank());
  if (!core::write_whole(file, file.string() + ".new", report(training, flops).dump(1) + '\n'))
    log::warn("The report of this rank's memory could not be written to ", file.string());
}

// The update with whose begin the run ends; 0: with none. All ranks have the same.
int end_of_run() {
  if (mpi::rehearsed_world()) return 2;
  static const int measured =
      core::parse_whole_number(core::variable("HORTATOR_MEASURE_UPDATES").value_or(""), 1).value_or(-1);
  return measured + 1;
}

}  // namespace

void end_rehearsal_before_writing() {
  if (mpi::rehearsed_world()) throw runtime::EarlyEnd();
}

void note_update_in_rehearsal(Training& training) {
  if (!machine::counts_memory()) return;
  auto& now = rehearsal();
  ++now.updates;
  if (now.updates == 1) {
    now.before = comm::noted_traffic();
    comm::forget_traffic();
    now.flops.emplace();
  }
  if (now.updates == 2) {
    const double flops = now.flops->count();
    now.flops.reset();
    write_report(training, flops);
  }
  if (now.updates != end_of_run()) return;
  if (!mpi::rehearsed_world()) training.publish_end();
  throw runtime::EarlyEnd();
}

}  // namespace hortator::accelerator
