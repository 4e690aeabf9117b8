#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <hortator/parallel/axis.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::parallel {

inline constexpr std::size_t axis_count = 5;
inline constexpr std::array<Axis, axis_count> all_axes = {Axis::pipeline, Axis::replicate, Axis::shard, Axis::context,
                                                          Axis::tensor};

/// "pipeline", "replicate", "shard", "context" or "tensor".
std::string_view name_of(Axis axis);

/// How the ranks of a run are arranged: the number of ranks along each axis. Their product is the number of all ranks.
/// Pure.
class MeshShape {
 public:
  /// Ranks along each axis, as they are asked for. `replicate` may be 0: all ranks that the other axes leave.
  struct Request {
    int pipeline = 1;
    int replicate = 0;
    int shard = 1;
    int context = 1;
    int tensor = 1;
    int experts = 1;  ///< ranks among which experts are divided: a group of the ranks with different batches
  };

  /// Arranges `ranks` ranks. Throws UsageError, naming the axes, unless their product is `ranks`, `experts` divides
  /// the ranks that get different batches, and each rank along shard has as many others there with its experts.
  MeshShape(const Request& request, int ranks);

  int size(Axis axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  int ranks() const { return ranks_; }

  /// The position of `rank` along `axis`.
  int index(Axis axis, int rank) const;
  /// A number that exactly the ranks share which differ from `rank` only along `axis`: the color for splitting.
  int group(Axis axis, int rank) const;
  /// The ranks that differ from `rank` only along `axis`, in ascending order; `rank` is one of them.
  std::vector<int> ranks_along(Axis axis, int rank) const;

  /// Ranks that get different batches: the product of replicate and shard.
  int data_size() const { return size(Axis::replicate) * size(Axis::shard); }
  /// Which of the data_size() parts of a batch belongs to `rank`. Ranks of one pipeline, context or tensor group have
  /// the same.
  int data_index(int rank) const;
  /// A number that exactly the ranks share which differ from `rank` only in their batches: the color for splitting.
  int data_group(int rank) const { return group(Axis::shard, group(Axis::replicate, rank)); }

  /// The product of replicate, shard and context: ranks that average their gradients.
  int averaging_size() const { return data_size() * size(Axis::context); }
  /// A number that exactly the ranks share which average their gradients with `rank`.
  int averaging_group(int rank) const { return group(Axis::context, data_group(rank)); }
  /// The product of replicate and context: ranks that hold the same shards.
  int replicas_size() const { return size(Axis::replicate) * size(Axis::context); }
  int replicas_group(int rank) const { return group(Axis::context, group(Axis::replicate, rank)); }

  /// Ranks that together hold each expert once: neighbours among those that get different batches.
  int experts() const { return experts_; }
  /// Which part of the experts `rank` holds.
  int expert_index(int rank) const { return data_index(rank) % experts_; }
  /// A number that exactly the ranks share which hold all experts together with `rank`.
  int expert_group(int rank) const;
  /// A number that exactly the ranks share which hold the same experts as `rank` and average their gradients with it.
  int holders_group(int rank) const;
  int holders_size() const { return averaging_size() / experts_; }
  /// A number that exactly those ranks share which share ZeRO's shards of the same experts with `rank`: the holders
  /// among the ranks along shard.
  int expert_shards_group(int rank) const;
  int expert_shards_size() const { return size(Axis::shard) / neighbours_along_shard(); }

  /// "replicate 2 x shard 4"; axes of one rank are left out, "1 rank" where all are.
  std::string text() const;

 private:
  int stride(Axis axis) const;  ///< between neighbours along it
  /// How many ranks along shard follow each other with different experts.
  int neighbours_along_shard() const { return std::min(experts_, size(Axis::shard)); }
  /// The rank that differs from `rank` only in its batches, and has the part `index` of them.
  int with_data_index(int rank, int index) const;

  std::array<int, axis_count> sizes_;
  int ranks_;
  int experts_;
};

}  // namespace hortator::parallel
