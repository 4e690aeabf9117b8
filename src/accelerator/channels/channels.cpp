#include "accelerator/channels/channels.hpp"

#include "accelerator/channels/random_state.hpp"
#include "comm/backends/make_communicator.hpp"
#include "core/log.hpp"
#include "mpi/rehearsed_world.hpp"
#include "parallel/mesh/mesh_plan.hpp"
#include "runtime/draw_together.hpp"

namespace hortator::accelerator {

namespace {

// Ranks that compute the same batches of the newest run draw the same numbers.
void draw_as_newest_mesh() {
  const auto* mesh = parallel::find_current_mesh();
  const int together = mesh != nullptr ? mesh->shape().size(parallel::Axis::tensor) : 1;
  runtime::draw_with(together == 1 ? std::nullopt : std::optional<std::uint64_t>(mesh->all().index() / together));
}

}  // namespace

Channels::~Channels() {
  current_.reset();
  draw_as_newest_mesh();
}

void Channels::connect(const ParallelConfig& axes, const ZeroConfig& zero) {
  const auto checks = comm::checks_from_environment();
  on_cpu_ = comm::make_communicator(world_.comm(), at::kCPU, checks, world_.collective_timeout());
  if (!device().is_cpu())
    on_device_ = comm::make_communicator(world_.comm(), device(), checks, world_.collective_timeout());
  const bool is_sharded = zero.stage.value_or(0) > 0;
  const auto gathers = is_sharded ? gather_settings() : GatherSettings();
  const int of_a_node = ranks_of_a_node(world_);
  const auto shape = parallel::plan_mesh(axes, zero, host().size(), of_a_node);
  if (const auto warning = parallel::warning_of_nodes(shape, of_a_node); !warning.empty() && host().rank() == 0)
    log::warn(warning);
  mesh_ = std::make_unique<parallel::Mesh>(
      shape, parallel::RankGroup{.on_device = device_communicator(), .on_cpu = *on_cpu_, .host = host()}, device());
  mesh_->connect_layers();
  current_.emplace(*mesh_);
  draw_as_newest_mesh();
  share_random_numbers();
  if (shape.size(parallel::Axis::tensor) > 1) {
    const auto& group = mesh_->connect(parallel::Axis::tensor);
    tensor_ = std::make_shared<parallel::TensorRanks>(group);
    tensor_->set_strict(axes.strict);
  }
  connect_experts();
  connect_stages(axes);
  if (is_sharded) zero_ = std::make_unique<ZeroRanks>(zero, gathers, world_, *mesh_);
}

// @collective
void Channels::connect_experts() {
  if (const auto& ranks = mesh_->averaging(); ranks.size() > 1)
    counted_ = std::make_shared<parallel::TensorRanks>(ranks);
  if (mesh_->shape().experts() == 1) return;
  const auto& group = mesh_->connect_experts();
  mesh_->connect_holders();
  experts_ = std::make_shared<parallel::TensorRanks>(group);
}

namespace {

// The ranks with the same layers. @collective
mpi::Communicator of_stage(const mpi::Communicator& host, const parallel::MeshShape& shape) {
  const auto stage_of = [&shape](int rank) { return shape.index(parallel::Axis::pipeline, rank); };
  const mpi::ColorsOfAll colors(stage_of);
  return host.split(stage_of(host.rank()), host.rank());
}

}  // namespace

// @collective
void Channels::connect_stages(const ParallelConfig& axes) {
  if (mesh_->shape().size(parallel::Axis::pipeline) == 1) return;
  const auto& group = mesh_->connect(parallel::Axis::pipeline);
  const auto schedule = axes.pipeline_schedule.value_or(PipelineSchedule::one_f_one_b);
  const bool takes_turns = schedule == PipelineSchedule::interleaved;
  int stages = axes.stages_per_rank.value_or(1);
  if (takes_turns && stages == 1) stages = 2;
  stages_.reset(new parallel::StageRanks{.schedule = schedule,
                                         .shape = {.ranks = group.size(), .stages_per_rank = stages},
                                         .ranks = group,
                                         .with_same_layers = of_stage(host(), mesh_->shape()),
                                         .links = parallel::StageLinks(group.host, device())});
}

// All ranks of a group take its first rank's state, or none: afterwards every generator has drawn the same numbers.
void Channels::share_random_numbers() {
  if (mesh_->shape().size(parallel::Axis::tensor) == 1) return;
  synchronise(mesh_->connect(parallel::Axis::tensor).host, default_generators(device()));
}

step::NormRanks Channels::ranks_of_norms() {
  auto* parts = experts_ ? &mesh_->connect_experts().on_device : nullptr;
  if (tensor_) parts = &mesh_->connect(parallel::Axis::tensor).on_device;
  auto* const stages = stages_ ? &stages_->ranks.on_device : nullptr;
  if (!zero_) return {.parts = parts, .stages = stages, .device = device()};
  const auto& sharding = zero_->sharding();
  return {.shards = &sharding.ranks.group,
          .parts = parts,
          .shards_of_parts = sharding.experts ? &sharding.experts->group : nullptr,
          .stages = stages,
          .device = device()};
}

void Channels::disconnect() {
  shared_statistics_.reset();
  zero_.reset();
  for (auto* ranks : {&tensor_, &experts_, &counted_}) {
    if (*ranks) (*ranks)->close();  // tensors that users hold outlive the communicators
    ranks->reset();
  }
  stages_.reset();
  current_.reset();
  draw_as_newest_mesh();
  mesh_.reset();
  on_device_.reset();
  on_cpu_.reset();
}

const mpi::Communicator& Channels::first_ranks(int count) {
  const auto known = first_ranks_.find(count);
  return known != first_ranks_.end() ? known->second
                                     : first_ranks_.emplace(count, mesh().data().host.first(count)).first->second;
}

std::shared_ptr<parallel::SharedStatistics> Channels::shared_statistics() {
  if (!shared_statistics_) {
    const auto& data = mesh().averaging();
    shared_statistics_ = std::make_shared<parallel::SharedStatistics>(data.on_device.split(0, data.index()));
  }
  return shared_statistics_;
}

// Abandons all of them, also after one that fails: other ranks may wait in any.
bool Channels::abandon(std::string_view reason) noexcept {
  bool all_are_free = true;
  const auto leave = [&](auto* left) { all_are_free &= left == nullptr || left->abandon(reason); };
  leave(on_cpu_.get());
  leave(on_device_.get());
  leave(mesh_.get());
  leave(shared_statistics_.get());
  leave(zero_.get());
  // Ranks of ZeRO on devices meet in MPI as well, and cannot leave a collective of MPI.
  return all_are_free && (!on_device_ || !zero_);
}

}  // namespace hortator::accelerator
