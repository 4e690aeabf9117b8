#include "parallel/mesh/mesh.hpp"

#include <utility>

#include "comm/self/self_communicator.hpp"
#include "mpi/rehearsed_world.hpp"

namespace hortator::parallel {
namespace {

std::function<int(const MeshShape& shape, int rank)> along(Axis axis) {
  return [axis](const MeshShape& shape, int rank) { return shape.group(axis, rank); };
}

}  // namespace

Mesh::Mesh(const MeshShape& shape, const RankGroup& all, c10::Device device)
    : shape_(shape), all_(all), device_(device), data_(make_group(shape.data_size(), &MeshShape::data_group)) {
  if (shape.size(Axis::context) > 1)
    averaging_.emplace(make_group(shape.averaging_size(), &MeshShape::averaging_group));
}

const RankGroup& Mesh::connect_replicas() {
  if (shape_.size(Axis::context) == 1) return connect(Axis::replicate);
  if (!replicas_) replicas_.emplace(make_group(shape_.replicas_size(), &MeshShape::replicas_group));
  return replicas_->ranks;
}

const RankGroup& Mesh::connect_experts() {
  if (!experts_) experts_.emplace(make_group(shape_.experts(), &MeshShape::expert_group, Sharing::no));
  return experts_->ranks;
}

const RankGroup& Mesh::connect_holders() {
  if (!holders_) holders_.emplace(make_group(shape_.holders_size(), &MeshShape::holders_group));
  return holders_->ranks;
}

const RankGroup& Mesh::connect_expert_shards() {
  if (shape_.expert_shards_size() == shape_.holders_size()) return connect_holders();
  if (!expert_shards_) expert_shards_.emplace(make_group(shape_.expert_shards_size(), &MeshShape::expert_shards_group));
  return expert_shards_->ranks;
}

// Where a rank has its experts for itself along shard, all of their holders are replicas.
const RankGroup& Mesh::connect_expert_replicas() {
  return shape_.expert_shards_size() == 1 ? connect_holders() : connect_replicas();
}

const RankGroup& Mesh::connect(Axis axis) {
  auto& group = along_[static_cast<std::size_t>(axis)];
  if (!group) group.emplace(make_group(shape_.size(axis), along(axis)));
  return group->ranks;
}

const RankGroup& Mesh::connect_layer(Axis axis) {
  auto& group = layers_[static_cast<std::size_t>(axis)];
  if (!group) group.emplace(make_group(shape_.size(axis), along(axis), Sharing::no));
  return group->ranks;
}

void Mesh::connect_layers() {
  if (shape_.data_size() == shape_.ranks()) return;
  for (const auto axis : all_axes) {
    if (shape_.size(axis) > 1) connect_layer(axis);
  }
}

// Ranks with the same number are in one group. @collective
Mesh::Group Mesh::make_group(int size, const GroupNumber& number_of, Sharing sharing) const {
  if (size == all_.size() && (size == 1 || sharing == Sharing::with_all)) return {.ranks = all_};
  const bool is_alone = size == 1;
  const int number = number_of(shape_, all_.index());
  const mpi::ColorsOfAll colors([this, &number_of](int rank) { return number_of(shape_, rank); });
  const auto part_of = [&](const comm::Communicator& all, c10::Device device) {
    return is_alone ? std::make_unique<comm::SelfCommunicator>(device) : all.split(number, all_.index());
  };
  auto host =
      std::make_unique<mpi::Communicator>(is_alone ? mpi::Communicator::self() : all_.host.split(number, all_.index()));
  auto on_device = part_of(all_.on_device, device_);
  auto on_cpu = device_.is_cpu() ? nullptr : part_of(all_.on_cpu, at::kCPU);
  const RankGroup ranks{.on_device = *on_device, .on_cpu = on_cpu ? *on_cpu : *on_device, .host = *host};
  return {.ranks = ranks, .host = std::move(host), .on_device = std::move(on_device), .on_cpu = std::move(on_cpu)};
}

// Abandons all of them, also after one that fails: other ranks may wait in any.
bool Mesh::abandon(std::string_view reason) noexcept {
  bool all_are_free = true;
  const auto leave = [&](Group& group) {
    for (auto* left : {group.on_device.get(), group.on_cpu.get()})
      all_are_free &= left == nullptr || left->abandon(reason);
  };
  leave(data_);
  if (averaging_) leave(*averaging_);
  for (auto* group : {&replicas_, &experts_, &holders_, &expert_shards_}) {
    if (*group) leave(**group);
  }
  for (auto* groups : {&along_, &layers_}) {
    for (auto& group : *groups) {
      if (group) leave(*group);
    }
  }
  return all_are_free;
}

}  // namespace hortator::parallel
