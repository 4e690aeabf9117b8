#pragma once

#include <hortator/parallel/mesh.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "accelerator/channels/zero.hpp"
#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "parallel/batch_norm/shared_statistics.hpp"
#include "parallel/mesh/current_mesh.hpp"
#include "parallel/mesh/mesh.hpp"
#include "parallel/pipeline/stage_ranks.hpp"
#include "parallel/tensor/tensor_ranks.hpp"
#include "runtime/world.hpp"
#include "step/gradients/sharded_norm.hpp"

namespace hortator::accelerator {

/// All communicators of a run. Members are destroyed before those that they were split from.
class Channels {
 public:
  /// `world` must outlive this. Call connect() before anything else.
  explicit Channels(runtime::World& world) : world_(world) {}
  ~Channels();
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  /// Makes the communicators and the mesh, with ZeRO's groups along the axis shard. @collective
  void connect(const ParallelConfig& axes, const ZeroConfig& zero);
  /// Gives the ranks along the axis tensor equal random numbers. @collective
  void share_random_numbers();
  /// Destroys what connect() has made. Does not communicate.
  void disconnect();

  const mpi::Communicator& host() const { return world_.comm(); }
  c10::Device device() const { return world_.device(); }
  const mpi::Communicator& node() const { return world_.node(); }
  /// How the ranks are arranged, with the groups for code that works over some of them.
  const parallel::Mesh& mesh() const { return *mesh_; }
  /// The ranks that differ from this one only along `axis`. @collective the first time
  const parallel::RankGroup& along(parallel::Axis axis) { return mesh_->connect(axis); }
  /// The first `count` ranks of mesh().data(). @collective over these ranks, the first time
  const mpi::Communicator& first_ranks(int count);
  /// RankGroup::communicator_of() of all ranks.
  comm::Communicator& communicator_of(const at::Tensor& tensor) { return mesh_->all().communicator_of(tensor); }
  comm::Communicator& device_communicator() { return on_device_ ? *on_device_ : *on_cpu_; }
  /// What synchronised normalisation layers share over mesh().averaging(), on a communicator of its own. @collective
  /// the first time
  std::shared_ptr<parallel::SharedStatistics> shared_statistics();
  void forget_shared_statistics() { shared_statistics_.reset(); }
  const ZeroRanks* zero() const { return zero_.get(); }  ///< null at stage 0
  /// The ranks that have the other slices of parameters, and the other parts of divided ones.
  step::NormRanks ranks_of_norms();
  /// The ranks among which models are divided; null if the axis tensor has one rank.
  const std::shared_ptr<parallel::TensorRanks>& tensor_ranks() const { return tensor_; }
  /// The ranks among which experts are divided; null if each rank has all.
  const std::shared_ptr<parallel::TensorRanks>& expert_ranks() const { return experts_; }
  /// The ranks that have the same experts; null if each rank has all. Does not communicate after connect().
  const parallel::RankGroup* holders() { return experts_ ? &mesh_->connect_holders() : nullptr; }
  /// The ranks that have the stages of models; null if each rank has all layers.
  parallel::StageRanks* stages() const { return stages_.get(); }
  /// The ranks whose tokens count in balance losses; null if this is the only one.
  const std::shared_ptr<parallel::TensorRanks>& counted_ranks() const { return counted_; }

  /// Takes this rank out of the collectives of all communicators: comm::Communicator::abandon. Returns whether the
  /// other ranks are free as well.
  bool abandon(std::string_view reason) noexcept;

 private:
  void connect_experts();
  void connect_stages(const ParallelConfig& axes);

  runtime::World& world_;
  std::map<int, mpi::Communicator> first_ranks_;
  std::unique_ptr<comm::Communicator> on_cpu_;
  std::unique_ptr<comm::Communicator> on_device_;  ///< null when the device is the CPU
  std::unique_ptr<parallel::Mesh> mesh_;
  std::optional<parallel::CurrentMesh> current_;
  std::shared_ptr<parallel::SharedStatistics> shared_statistics_;  ///< null until a model uses them
  std::unique_ptr<ZeroRanks> zero_;
  std::unique_ptr<parallel::StageRanks> stages_;
  std::shared_ptr<parallel::TensorRanks> tensor_;
  std::shared_ptr<parallel::TensorRanks> experts_;
  std::shared_ptr<parallel::TensorRanks> counted_;
};

}  // namespace hortator::accelerator
