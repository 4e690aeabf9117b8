#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/communicator.hpp"
#include "interception/claimed_operators.hpp"
#include "mpi/communicator.hpp"
#include "parallel/zero/disk_arrays.hpp"
#include "parallel/zero/peer_arrays.hpp"
#include "parallel/zero/shard_plan.hpp"

namespace hortator::parallel {

/// Whether 16-bit parameters are stepped as copies in fp32 (master weights). Each rank has its slice of these.
enum class Masters { no, fp32 };

/// Where a model's parameters, and fp32 copies of them, are between their uses.
struct ParameterPlacement {
  ArrayPlacement parameters = {};
  ArrayPlacement masters = {};
  /// Parameters, or modules with all of theirs, that stay in memory; others are allowed.
  std::vector<std::string> keep_resident = {};
  /// Each rank has its part of the parameters, in memory or offloaded, and no rank has all of them (peer_arrays.hpp).
  bool sharded = false;
  int first_rank = 0;                       ///< of these ranks among all, for messages about sharded parameters
  int rank_stride = 1;                      ///< between these ranks among all
  const mpi::Communicator* host = nullptr;  ///< the same ranks, where parameters are sharded between devices
  /// Whether sharded parameters in fp32 are gathered in a 16-bit type for operators that cast them to it.
  bool casts = false;
  /// Whether sharded matrices, and parameters of more dimensions, are gathered in int8 blocks, where they are only
  /// read.
  bool int8 = false;
  bool gathers_ahead = false;  ///< whether the next sharded array is gathered while one is in use

  bool pages_parameters() const { return sharded || parameters.is_offloaded(); }
};

/// What the ranks do together while the arrays are made.
struct RankCoordination {
  /// Runs the work; if one rank fails, all throw. The default runs it on each rank alone, which is not enough for ranks
  /// with files.
  mpi::AllOrNone all_or_none = [](const auto& work) { work(); };
  /// Called with each parameter before it moves, in the same order on all ranks: gives all rank 0's deferred values.
  std::function<void(const at::Tensor& parameter)> settle = [](const at::Tensor&) {};
};

/// Where a model's paged arrays are between their uses.
enum class ArrayHome {
  memory,       ///< there are none: all arrays are in memory that the node's ranks share
  common_file,  ///< one file a node, in which each rank writes its part
  parts         ///< each rank has its part, in memory or in a file of its own, and no rank has all of them
};

/// The parameters of one model in flat arrays that the ranks share: one copy a node, in shared memory or in a file; or
/// each rank has its part of them, in memory or in a file. Parameters stay the same tensors (leaves, with their hooks
/// and gradients), but their elements lie in an array. Each rank has a slice of each parameter, usually an empty one:
/// what its optimizer steps. publish() gives all ranks what the slices hold.
///
/// Arrays are on the device of `placement.parameters`. Parameters may come from the host, one after the other, and go
/// back there: those that are paged for a device are never on it all at once.
class FlatParameters {
 public:
  struct Parameter {
    std::string name = {};
    at::Tensor tensor = {};
  };

  /// Takes over parameters that are the same on all ranks, each once, frozen ones included. Those whose construction is
  /// deferred (DeferredConstruction) are made one after the other, in the module's order; two of them are never in
  /// memory at once. If a disk is full, throws, and all parameters have their memory again. @collective
  FlatParameters(comm::Communicator& communicator, std::vector<Parameter> parameters, const ShardLimits& limits,
                 Masters masters, const ParameterPlacement& placement = {}, const RankCoordination& ranks = {});

  comm::Communicator& communicator() const { return communicator_; }
  c10::Device came_from() const { return came_from_; }  ///< where the parameters were before, and return to
  const ShardPlan& plan() const { return plan_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Nothing for a tensor that is not one of the parameters.
  std::optional<std::size_t> find(const at::Tensor& parameter) const;
  bool is_trained(std::size_t parameter) const { return !kind_of(plan_.positions[parameter].flat).frozen; }
  /// Whether no rank has all of it. Reading it is then @collective, for operators as well.
  bool is_sharded(std::size_t parameter) const { return parts_[plan_.positions[parameter].flat].defined(); }
  bool is_any_sharded() const { return home_ == ArrayHome::parts; }

  /// What this rank owns of a parameter, as a range of its elements.
  core::Range owned(std::size_t parameter) const { return plan_.owned(parameter, communicator_.rank()); }
  /// The same as a tensor of one dimension: a range of the array, or a copy in fp32. The same tensor until release().
  const at::Tensor& slice(std::size_t parameter) const { return slices_[parameter]; }
  /// Must be called by each optimizer that replaces a parameter of the user's by its slice: it keeps one reference to
  /// the slice, and puts another one into the user's object.
  void note_keeper(std::size_t parameter) { ++keepers_[parameter]; }
  void forget_keeper(std::size_t parameter) { --keepers_[parameter]; }
  /// Whether all user's objects that got the slice still exist. These are borrowed, and do not report their end, so the
  /// slice's references are counted: one here, one for each keeper, and one for each object that exists.
  bool is_kept(std::size_t parameter) const {
    const auto expected = 1 + 2 * keepers_[parameter];
    return slices_[parameter].use_count() >= expected;
  }
  bool has_master(std::size_t parameter) const { return masters_[parameter]; }
  /// The tensor with the parameter's sizes of whose elements each rank has its slice, `mine`. @collective
  at::Tensor join(std::size_t parameter, const at::Tensor& mine) const;
  /// The slice's elements where all ranks see them.
  at::Tensor published_slice(std::size_t parameter) const;

  /// Waits until all ranks are here: no rank still reads what is about to be written. Throws while parameters are lent.
  /// With a flag, whose reading waits for the device, returns whether any rank has raised it. @collective
  bool arrive(std::optional<bool> flag = {});
  /// Gives all ranks what the slices of these arrays hold. @collective
  void publish(const std::vector<std::size_t>& flats);
  void publish_all();  ///< @collective
  /// publish_all() where the other ranks may not come: they see what this rank publishes if the arrays are in memory
  /// common to all of them; otherwise the parameters are refused until publish_all(). Local.
  void publish_alone(bool in_common_memory);
  /// Sets the slice of a parameter to what was written where all ranks see it.
  void take_published(std::size_t parameter);

  /// Which parameters are lent, the same on all ranks; one that is empty means all.
  using Choice = std::function<bool(const at::Tensor& parameter)>;
  /// Gives each chosen parameter a copy of this rank's own as its memory, to be read and written freely. @collective
  void lend(const Choice& choice = {});
  /// lend() on all ranks of `host`; if one fails, all throw and nothing has changed. @collective
  void lend_together(const mpi::Communicator& host, const Choice& choice = {});
  bool is_lent() const { return lent_; }
  void check_can_lend() const;  ///< throws where lend() would: to be called before all ranks lend
  /// Ends lend(). What ranks have written to their slices is given to all (@collective), or nothing is. `replicas`: the
  /// ranks that have the same slices; the first one's count. Null if there are none.
  void take_back(bool keep_changes, comm::Communicator* replicas = nullptr);

  /// Throws, naming the parameter, if its memory is no longer in its array (to(), set_data()), or if it, or its slice,
  /// was written past the optimizer: each of a node's ranks would have written to the one copy, or the other ranks do
  /// not get the slice.
  void check_untouched() const;
  /// Whether some optimizer has slices of the parameters.
  bool is_stepped() const {
    return std::ranges::any_of(keepers_, [](std::size_t keepers) { return keepers > 0; });
  }
  /// Gives slices that have no gradient one of zeros, so that a step of the user's own optimizer, which would do
  /// nothing else, writes to them: check_untouched() then finds it. Take it away before a step.
  void guard_slices();

  enum class ReleaseMode {
    collective,  ///< all ranks call it
    local        ///< they may not: sharded parameters lose their values, and using one throws
  };
  /// Gives each parameter that is in use elsewhere memory of its own, with its present values. @collective where the
  /// mode is
  void release(ReleaseMode mode = ReleaseMode::collective);

 private:
  const ArrayKind& kind_of(std::size_t flat) const { return plan_.flats[flat].kind; }
  void check_movable() const;
  static ArrayKind kind_for(const Parameter& parameter, const ParameterPlacement& placement);
  void make_plan(const ShardLimits& limits, bool with_masters, const ParameterPlacement& placement);
  at::ScalarType type_of(std::size_t flat) const;
  void make_arrays(const ParameterPlacement& placement, const RankCoordination& ranks);
  /// @collective
  void make_shared_arrays(const std::vector<std::size_t>& flats, const RankCoordination& ranks);
  void make_paged_arrays(std::vector<std::size_t> flats, const ParameterPlacement& placement,
                         const RankCoordination& ranks);
  /// @collective
  void make_offloaded_arrays(const std::vector<ArraySpec>& specs, const ParameterPlacement& placement,
                             const RankCoordination& ranks);
  /// @collective
  void shard(const std::vector<std::size_t>& flats, const ParameterPlacement& placement, const RankCoordination& ranks);
  void fill_paged_arrays(const std::vector<std::size_t>& flats, const RankCoordination& ranks);
  void fill_owned(std::size_t flat, const at::Tensor& memory, std::int64_t begin, const RankCoordination& ranks);
  std::string names_in(std::size_t flat) const;
  std::vector<std::size_t> items_of(const std::vector<std::size_t>& flats) const;
  void put_in_array(std::size_t flat);
  void copy_out(const std::vector<std::size_t>& items);
  std::vector<std::size_t> chosen_in(std::size_t flat, const Choice& choice) const;
  std::vector<std::size_t> lent_flats() const;
  void take_from_first(std::size_t parameter, comm::Communicator& replicas);  ///< @collective
  void write_owned(std::size_t parameter);
  void make_slices(const ArrayPlacement& masters, const RankCoordination& ranks);
  void make_masters_on_disk(const ArrayPlacement& placement);
  std::vector<ArraySpec> specs_of(const std::vector<std::size_t>& flats, int parts) const;
  comm::Work gather(std::size_t flat);                                     ///< @collective
  void exchange_by_file();                                                 ///< @collective
  std::unique_ptr<interception::Hold> hold_exact(std::size_t flat) const;  ///< @collective for sharded arrays
  bool is_in_use_elsewhere(std::size_t parameter) const;
  void give_own_memory(std::size_t flat);                       ///< @collective for sharded arrays
  std::vector<std::size_t> flats_to_release(ReleaseMode mode);  ///< @collective where the mode is
  at::Tensor in_array(std::size_t parameter, core::Range elements) const;
  bool is_in_array(std::size_t parameter) const;
  void write_masters(std::size_t flat);
  void bump_versions(const std::vector<std::size_t>& flats);
  void note_versions(const std::vector<std::size_t>& flats);
  std::vector<std::size_t> all_flats() const;

  comm::Communicator& communicator_;
  std::vector<Parameter> parameters_;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::unordered_map<const void*, std::size_t> numbers_;  ///< by TensorImpl
  ShardPlan plan_;
  ArrayHome home_ = ArrayHome::memory;
  std::unique_ptr<DiskArrays> on_disk_;  ///< the common file, or this rank's parts where they are in a file
  std::unique_ptr<DiskArrays> masters_on_disk_;
  std::unique_ptr<PeerArrays> peers_;  ///< the arrays that are gathered from the parts of all ranks
  c10::Device came_from_ = at::kCPU;
  std::vector<at::Tensor> arrays_;
  std::vector<at::Tensor> parts_;  ///< this rank's part of each sharded array; undefined for the others
  std::vector<at::Tensor> slices_;
  std::vector<bool> masters_;
  std::vector<std::size_t> keepers_;
  std::vector<std::int64_t> versions_;
  std::vector<std::int64_t> slice_versions_;
  std::vector<at::Tensor> guards_;  ///< gradients of zeros for the slices, in one element each; empty until needed
  bool lent_ = false;
  std::vector<std::size_t> lent_items_;  ///< the parameters that are lent
  bool is_stale_ = false;                ///< this rank may not have what the others' slices hold
};

}  // namespace hortator::parallel
