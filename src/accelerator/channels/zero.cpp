#include "accelerator/channels/zero.hpp"

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "comm/decorators/checked_communicator.hpp"
#include "core/environment/environment.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator {
namespace {

struct Strategy {
  const char* name;
  ZeroConfig config;
};

const std::array<Strategy, 9>& strategies() {
  static const std::array<Strategy, 9> table = {
      {{"0", {.stage = 0}},
       {"1", {.stage = 1}},
       {"2", {.stage = 2}},
       {"3", {.stage = 3}},
       {"NO_SHARD", {.stage = 0}},
       {"SHARD_GRAD_OP", {.stage = 2}},
       {"FULL_SHARD", {.stage = 3}},
       {"HYBRID_SHARD", {.stage = 3, .shard_group = ZeroConfig::node}},
       {"HYBRID_SHARD_ZERO2", {.stage = 2, .shard_group = ZeroConfig::node}}}};
  return table;
}

}  // namespace

ZeroConfig zero_config(std::string_view strategy) {
  std::vector<std::string> names;
  for (const auto& [name, config] : strategies()) {
    if (strategy == name) return config;
    names.emplace_back(name);
  }
  throw UsageError({.what = text::concat("Unknown ZeRO stage or FSDP strategy ", text::quote(strategy)),
                    .hint = text::suggestion(std::string(strategy), names)});
}

namespace accelerator {
namespace {

/// Whether the ranks along shard can share one copy of the parameters in a node's memory. Each group lies within
/// consecutive ranks: those along the inner axes with it. @collective
bool groups_share_memory(const parallel::MeshShape& shape, const runtime::World& world, const comm::Traits& traits) {
  const auto& topology = world.topology();
  const int group =
      shape.size(parallel::Axis::shard) * shape.size(parallel::Axis::context) * shape.size(parallel::Axis::tensor);
  const bool within = topology.nodes == 1 ||
                      (topology.local_size % group == 0 && topology.size == topology.nodes * topology.local_size);
  return mpi::all_reduce(world.comm(), traits.shares_memory && within, mpi::Op::logical_and);
}

/// The folder of an offload option; empty if arrays stay in memory.
std::filesystem::path folder_of(const std::filesystem::path& offload) {
  return offload == "cpu" ? std::filesystem::path() : offload;
}

parallel::ArrayPlacement placement_of(const std::filesystem::path& offload, const ZeroConfig& config,
                                      c10::Device device) {
  return {.folder = folder_of(offload),
          .resident_bytes = config.resident_bytes,
          .device = device,
          .in_host = offload == "cpu" && !device.is_cpu()};
}

}  // namespace

void check(const ZeroConfig& config) {
  const int stage = config.stage.value_or(0);
  if (stage < 0 || stage > 3) {
    throw UsageError({.what = text::concat("zero.stage is ", stage), .hint = "the stages are 0, 1, 2 and 3"});
  }
  if (config.shard_group.value_or(1) < 0) {
    throw UsageError({.what = text::concat("zero.shard_group is ", *config.shard_group),
                      .why = "it is the number of ranks that share one set of shards",
                      .hint = "use a number that divides the number of ranks, or ZeroConfig::node"});
  }
  if (!config.offload_optimizer.empty() && stage == 0) {
    throw UsageError({.what = text::concat("zero.offload_optimizer is ", config.offload_optimizer, " at stage 0"),
                      .why = "each rank offloads its shard of the moments, and stage 0 has no shards",
                      .hint = "set zero.stage to 1, 2 or 3, also on one rank"});
  }
  if (!config.offload_parameters.empty() && stage != 3) {
    throw UsageError(
        {.what = text::concat("zero.offload_parameters is ", config.offload_parameters, " at stage ", stage),
         .why = "only stage 3 shards parameters; at lower stages they stay in memory",
         .hint = "set zero.stage to 3, also on one rank"});
  }
  if (config.int8_gathers && stage != 3) {
    throw UsageError({.what = text::concat("zero.int8_gathers is set at stage ", stage),
                      .why = "only stage 3 gathers parameters; at lower stages each node has all of them",
                      .hint = "set zero.stage to 3, or leave zero.int8_gathers out"});
  }
}

GatherSettings gather_settings() {
  const auto& variables = core::process_variables();
  return {.casts = core::yes_or_no(variables, "HORTATOR_GATHER_CAST",
                                   "set it to 0 to gather parameters in their own type, or unset it")
                       .value_or(true),
          .ahead = core::yes_or_no(variables, "HORTATOR_GATHER_AHEAD",
                                   "set it to 0 to gather parameters only when operators use them, or unset it")
                       .value_or(true)};
}

int ranks_of_a_node(const runtime::World& world) {
  const auto& topology = world.topology();
  const bool even = topology.size == topology.nodes * topology.local_size &&
                    world.comm().rank() / topology.local_size == topology.node;
  return mpi::all_reduce(world.comm(), even, mpi::Op::logical_and) ? topology.local_size : 0;
}

bool ZeroRanks::counts(int rank) const {
  const auto& shape = mesh_.shape();
  for (const auto axis : parallel::all_axes) {
    const auto first = axis == parallel::Axis::pipeline ? shape.index(axis, mesh_.all().index()) : 0;
    if (axis != parallel::Axis::shard && shape.index(axis, rank) != first) return false;
  }
  return true;
}

// @collective
bool ZeroRanks::shards_parameters(int stage, const runtime::World& world) const {
  if (stage < 3) return false;
  return world.device().is_cpu() ? !groups_share_memory(mesh_.shape(), world, mesh_.all().on_device.traits())
                                 : mesh_.shape().size(parallel::Axis::shard) > 1;  // devices share no memory
}

namespace {

// Where operators gather parameters, ranks whose programs diverge must notice it. On the CPU the group checks each call
// unless its back end does so itself; on devices the ranks compare their calls over the host. @collective
CheckedGroup checked_group(const parallel::RankGroup& ranks, bool shards_parameters, c10::Device device) {
  CheckedGroup group{.ranks = ranks};
  if (!shards_parameters) return group;
  if (!device.is_cpu()) {
    group.host.emplace(ranks.host.split(0, ranks.index()));
  } else if (!ranks.on_device.traits().finds_mismatch) {
    group.checked = std::make_unique<comm::CheckedCommunicator>(ranks.on_device.split(0, ranks.index()),
                                                                ranks.host.split(0, ranks.index()));
  }
  return group;
}

}  // namespace

// @collective
parallel::ShardRanks ZeroRanks::ranks() const {
  const auto& shape = mesh_.shape();
  const auto all = shape.ranks_along(parallel::Axis::shard, mesh_.all().index());
  return {.group = shard_.communicator(),
          .replicas = shape.replicas_size() == 1 ? nullptr : &mesh_.connect_replicas().on_device,
          .first_rank = all.front(),
          .rank_stride = all.size() > 1 ? all[1] - all[0] : 1,
          .host = shard_.host ? &*shard_.host : nullptr};
}

// @collective
parallel::ShardRanks ZeroRanks::ranks_of_experts() const {
  const auto& shape = mesh_.shape();
  const int ranks = shape.expert_shards_size();
  return {.group = experts_->communicator(),
          .replicas = ranks == shape.holders_size() ? nullptr : &mesh_.connect_expert_replicas().on_device,
          .first_rank = shape.expert_shards_group(mesh_.all().index()),
          .rank_stride = sharding_.ranks.rank_stride * shape.size(parallel::Axis::shard) / ranks,
          .host = experts_->host ? &*experts_->host : nullptr};
}

ZeroRanks::ZeroRanks(const ZeroConfig& config, const GatherSettings& gathers, const runtime::World& world,
                     parallel::Mesh& mesh)
    : mesh_(mesh),
      shards_parameters_(shards_parameters(*config.stage, world)),
      shard_(checked_group(mesh.connect(parallel::Axis::shard), shards_parameters_, world.device())),
      sharding_{.stage = *config.stage,
                .ranks = ranks(),
                .masters = config.fp32_masters ? parallel::Masters::fp32 : parallel::Masters::no,
                .parameters = placement_of(config.offload_parameters, config, world.device()),
                .moments = placement_of(config.offload_optimizer, config, world.device()),
                .shards_parameters = shards_parameters_,
                .keep_resident = config.keep_resident,
                .ignored = config.ignore,
                .casts_gathers = gathers.casts,
                .int8_gathers = config.int8_gathers,
                .gathers_ahead = gathers.ahead} {
  if (config.int8_gathers && !gathers_parameters() && mesh.all().index() == 0) {
    log::warn(
        "zero.int8_gathers has no effect in this run: the ranks of a shard group share one copy of the parameters, or "
        "are one rank, and gather none");
  }
  if (mesh.shape().experts() == 1) return;
  experts_.emplace(checked_group(mesh.connect_expert_shards(), shards_parameters_, world.device()));
  sharding_.experts.emplace(ranks_of_experts());
}

// Abandons both, also after one that fails: other ranks may wait in any.
bool ZeroRanks::abandon(std::string_view reason) noexcept {
  bool all_are_free = !shard_.checked || shard_.checked->abandon(reason);
  if (experts_ && experts_->checked) all_are_free &= experts_->checked->abandon(reason);
  return all_are_free;
}

std::string ZeroRanks::text() const {
  const auto offloaded = [](const char* what, const parallel::ArrayPlacement& placement) {
    if (placement.in_host) return text::concat(", ", what, " in the host's memory");
    return placement.folder.empty() ? std::string() : text::concat(", ", what, " in ", placement.folder);
  };
  return text::concat("ZeRO stage ", sharding_.stage, " over ", sharding_.ranks.replicas != nullptr ? "groups of " : "",
                      text::count(shard_.ranks.size(), "rank"),
                      shards_parameters_ ? ", parameters gathered when they are used" : "",
                      gathers_parameters() && sharding_.int8_gathers ? " (in int8)" : "",
                      offloaded("parameters", sharding_.parameters), offloaded("moments", sharding_.moments));
}

}  // namespace accelerator
}  // namespace hortator
