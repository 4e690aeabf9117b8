#pragma once

#include <c10/core/Device.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "parallel/mesh/mesh_shape.hpp"
#include "parallel/mesh/rank_group.hpp"

namespace hortator::parallel {

/// The mesh of a run: its shape, and the groups of ranks along its axes. A group of all ranks uses the communicators of
/// all ranks, and a rank that is alone computes; others are split off when they are first asked for.
class Mesh {
 public:
  /// `all` are the ranks of `shape`; its communicators must outlive this. `device` is that of all.on_device.
  /// @collective
  Mesh(const MeshShape& shape, const RankGroup& all, c10::Device device);

  const MeshShape& shape() const { return shape_; }
  /// The shape's text for people; empty where all ranks get different batches and hold the same.
  std::string text() const { return is_plain() ? "" : shape_.text(); }
  const RankGroup& all() const { return all_; }
  /// The ranks that get different batches: those along replicate and shard together.
  const RankGroup& data() const { return data_.ranks; }
  /// The ranks that average their gradients: those along replicate, shard and context, which compute other tokens with
  /// the same part of the model.
  const RankGroup& averaging() const { return averaging_ ? averaging_->ranks : data_.ranks; }
  /// The ranks that hold the same shards: those along replicate and context. @collective
  const RankGroup& connect_replicas();
  /// The ranks that together hold each expert once, on communicators of their own. @collective the first time
  const RankGroup& connect_experts();
  /// The ranks that hold the same experts and average their gradients. @collective the first time
  const RankGroup& connect_holders();
  /// The ranks that share ZeRO's shards of the same experts. @collective the first time
  const RankGroup& connect_expert_shards();
  /// The ranks that hold the same shards of experts, one of each group that shares a set of them. @collective
  const RankGroup& connect_expert_replicas();
  /// The ranks that differ from this one only along `axis`. @collective the first time
  const RankGroup& connect(Axis axis);
  /// The same ranks on communicators of their own, for layers of the program: a layer may communicate between buckets
  /// of gradients, which start in another order on other ranks. @collective the first time, over all ranks unless
  /// connect_layers() was called.
  const RankGroup& connect_layer(Axis axis);
  /// Calls connect_layer() for the axes of more than one rank, if ranks compute batches together: layers may then use
  /// an axis on some ranks only. @collective
  void connect_layers();

  /// Takes this rank out of the groups' own communicators: comm::Communicator::abandon. Returns whether the other ranks
  /// are free.
  bool abandon(std::string_view reason) noexcept;

 private:
  struct Group {
    RankGroup ranks;
    std::unique_ptr<mpi::Communicator> host = {};        ///< null if `ranks` are all ranks
    std::unique_ptr<comm::Communicator> on_device = {};  ///< the same
    std::unique_ptr<comm::Communicator> on_cpu = {};     ///< null if the device is the CPU as well
  };
  enum class Sharing { with_all, no };
  bool is_plain() const { return shape_.data_size() == shape_.ranks() && shape_.experts() == 1; }
  /// A number that exactly the ranks of a group share, for each rank.
  using GroupNumber = std::function<int(const MeshShape& shape, int rank)>;
  Group make_group(int size, const GroupNumber& number_of, Sharing sharing = Sharing::with_all) const;

  MeshShape shape_;
  RankGroup all_;
  c10::Device device_;
  Group data_;
  std::optional<Group> averaging_;  ///< empty: data_
  std::optional<Group> replicas_;
  std::optional<Group> experts_;
  std::optional<Group> holders_;
  std::optional<Group> expert_shards_;
  std::array<std::optional<Group>, axis_count> along_;
  std::array<std::optional<Group>, axis_count> layers_;
};

}  // namespace hortator::parallel
