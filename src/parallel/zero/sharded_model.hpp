#pragma once

#include <memory>
#include <vector>

#include "parallel/zero/flat_parameters.hpp"
#include "parallel/zero/sharding.hpp"

namespace hortator::parallel {

/// One parameter among flat ones.
struct FlatParameter {
  FlatParameters* flat = nullptr;  ///< null: it is not among them
  std::size_t number = 0;          ///< in `flat`

  explicit operator bool() const { return flat != nullptr; }
  core::Range owned() const { return flat->owned(number); }
  const at::Tensor& slice() const { return flat->slice(number); }
  at::Tensor published_slice() const { return flat->published_slice(number); }
  bool is_sharded() const { return flat->is_sharded(number); }
};

/// The parameters of one model in flat arrays. Each group of ranks that shares parameters has arrays of its own: all
/// ranks along shard those of the parameters that all ranks have, and holders of the same experts those of the experts.
class ShardedModel {
 public:
  struct Group {
    std::unique_ptr<FlatParameters> parameters;
    const ShardRanks& ranks;
  };
  /// Begins with no parameters.
  ShardedModel() = default;
  /// Call it on all ranks in the same order. `ranks` must outlive this.
  void add(std::unique_ptr<FlatParameters> parameters, const ShardRanks& ranks);

  const std::vector<Group>& groups() const { return groups_; }
  FlatParameter find(const at::Tensor& parameter) const;
  bool is_any_sharded() const;
  bool is_lent() const;
  void check_untouched() const;
  bool is_stepped() const;
  void guard_slices();

  /// Each of these calls the function of FlatParameters of the same name for all groups.
  void arrive();       ///< @collective
  void publish_all();  ///< @collective
  void publish_alone(bool in_common_memory);
  /// If one rank of `host` fails, all throw and nothing has changed. @collective
  void lend_together(const mpi::Communicator& host, const FlatParameters::Choice& choice = {});
  void take_back(bool keep_changes);  ///< @collective if changes are kept
  void release(
      FlatParameters::ReleaseMode mode = FlatParameters::ReleaseMode::collective);  ///< @collective where the mode is

 private:
  std::vector<Group> groups_;
};

}  // namespace hortator::parallel
