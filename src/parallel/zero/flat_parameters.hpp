#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "parallel/zero/disk_arrays.hpp"
#include "parallel/zero/peer_arrays.hpp"
#include "parallel/zero/shard_plan.hpp"

namespace hortator::parallel {

/// Are 16-bit parameters stepped as copies in fp32, of which each rank has its part?
enum class Masters { no, fp32 };

/// Where parameters, and fp32 copies of them, are between their uses.
struct Residences {
  Residence parameters = {};
  Residence masters = {};
  std::vector<std::string> keep_resident = {};  ///< parameters, or modules with all of theirs, that stay in memory
  /// Each rank has its part of the parameters, in memory or elsewhere, and nobody has all of them
  /// (peer_arrays.hpp).
  bool sharded = false;
  int first_rank = 0;  ///< of these ranks among all, for messages about parameters that are dealt out
  const mpi::Communicator* host = nullptr;  ///< the same ranks, where parameters are dealt out between devices

  bool pages_parameters() const { return sharded || parameters.is_elsewhere(); }
};

/// How the ranks make them together.
struct Together {
  mpi::AllOrNone all_or_none = [](const auto& work) {
    work();
  };  ///< as it is, each is on its own: not for ranks with files
  /// Called with each parameter when it has its values, in the same order on all ranks: they become the same.
  std::function<void(const at::Tensor& parameter)> settle = [](const at::Tensor&) {};
};

/// The parameters of one model in flat arrays that the ranks hold in common: one copy a node, in memory that its ranks
/// share or in a file; or each rank has its part of them, in memory or in a file. They stay the tensors that they were
/// (leaves, with their hooks and gradients), their elements lie in an array. Each rank has a slice of each, mostly an
/// empty one: what its optimizer steps. What a slice gets, all have after publish().
///
/// Arrays are on the device of `homes.parameters`. Parameters may come from the host, one after the other, and go back
/// there: those that are paged for a device never have to be on it together.
class FlatParameters {
 public:
  struct Parameter {
    std::string name = {};
    at::Tensor tensor = {};
  };

  /// Takes over parameters that are the same on all ranks, each once; frozen ones, too. Those that were not made yet
  /// (DeferredConstruction) are made one after the other, in the module's order; none is in memory with the next one.
  /// If a disk has no room, all parameters have their memory again. @collective
  FlatParameters(comm::Communicator& communicator, std::vector<Parameter> parameters, const Limits& limits,
                 Masters masters, const Residences& homes = {}, const Together& together = {});

  comm::Communicator& communicator() const { return communicator_; }
  c10::Device came_from() const { return came_from_; }  ///< the parameters, and they go back there
  const ShardPlan& plan() const { return plan_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Nothing for a tensor that is none of these.
  std::optional<std::size_t> find(const at::Tensor& parameter) const;
  bool is_trained(std::size_t parameter) const { return kind_of(plan_.places[parameter].flat).trained; }
  /// Does no rank have all of it? To read it is then @collective, also for operators.
  bool is_sharded(std::size_t parameter) const { return parts_[plan_.places[parameter].flat].defined(); }
  bool is_any_sharded() const { return peers_ != nullptr; }

  /// What this rank owns of a parameter, in its elements and as a tensor of one dimension: a part of the array, or a
  /// copy in fp32. The same tensor for as long as this lives.
  core::Range owned(std::size_t parameter) const { return plan_.owned(parameter, communicator_.rank()); }
  const at::Tensor& slice(std::size_t parameter) const { return slices_[parameter]; }
  /// Somebody keeps a slice in the place of a parameter of the user's, and has put it there in the user's object, too.
  void note_keeper(std::size_t parameter) { ++keepers_[parameter]; }
  void forget_keeper(std::size_t parameter) { --keepers_[parameter]; }
  /// Do the user's objects still have it?
  bool is_kept(std::size_t parameter) const { return slices_[parameter].use_count() > 2 * keepers_[parameter]; }
  bool has_master(std::size_t parameter) const { return masters_[parameter]; }
  /// The same elements where all ranks see them.
  at::Tensor published_slice(std::size_t parameter) const;

  /// Returns when all ranks are here: none reads any more what is about to be written. Throws while they are lent.
  /// @collective
  void arrive();
  /// All ranks get what the slices of these arrays hold. @collective
  void publish(const std::vector<std::size_t>& flats);
  void publish_all();  ///< @collective
  /// Of one that was written where all ranks see it: its slice becomes that.
  void take_published(std::size_t parameter);

  /// From now on each parameter has this rank's own copy as its memory, to read and write at will... @collective
  void lend();
  /// The same on all ranks of `host`, or all throw and it is as before. @collective
  void lend_together(const mpi::Communicator& host);
  bool is_lent() const { return lent_; }
  void check_can_lend() const;  ///< throws where it cannot: before all ranks lend
  /// ...until now. What ranks have written to what they own becomes everybody's (@collective), or nothing does.
  void take_back(bool keep_changes);

  /// Throws, naming the parameter, where its memory is no longer in its array (to(), set_data()), or where it was
  /// written past the optimizer: each of a node's ranks would have written to the one copy.
  void check_untouched() const;

  enum class Ending {
    together,  ///< all ranks come to it
    alone      ///< they may not: what is dealt out has no values any more, and says so
  };
  /// Each parameter that is in use elsewhere gets memory of its own, with its present values. @collective together
  void release(Ending ending = Ending::together);

 private:
  struct Kind {
    bool trained = true;
    bool paged = false;  ///< on disk, or dealt out
  };
  Kind kind_of(std::size_t flat) const {
    const auto number = static_cast<unsigned>(plan_.flats[flat].kind);
    return {.trained = (number & 1U) == 0, .paged = (number & 2U) != 0};
  }
  void check_movable() const;
  void make_plan(const Limits& limits, bool with_masters, const Residences& homes);
  at::ScalarType type_of(std::size_t flat) const;
  void move_in(const Residences& homes, const Together& together);
  void make_arrays_in_common(const std::vector<std::size_t>& flats, const Together& together);
  void make_paged_arrays(std::vector<std::size_t> flats, const Residences& homes, const Together& together);
  void make_home(const std::vector<ArraySpec>& specs, const Residences& homes, const Together& together);
  void deal_out(const std::vector<std::size_t>& flats, const Residences& homes);
  void fill_paged_arrays(const std::vector<std::size_t>& flats, const Together& together);
  void bring(std::size_t flat, const at::Tensor& memory, std::int64_t begin, const Together& together);
  std::string names_in(std::size_t flat) const;
  std::vector<std::size_t> items_of(const std::vector<std::size_t>& flats) const;
  void put_in_arrays(std::size_t flat);
  void write_slice(std::size_t parameter);
  void make_slices(const Residence& masters, const Together& together);
  void make_masters_on_disk(const Residence& home);
  std::vector<ArraySpec> specs_of(const std::vector<std::size_t>& flats, int parts) const;
  comm::Work gather(std::size_t flat);
  void exchange_through_file();
  bool is_in_use_elsewhere(std::size_t parameter) const;
  void give_own_memory(std::size_t flat);
  std::vector<std::size_t> flats_to_give_back(Ending ending);
  at::Tensor in_array(std::size_t parameter, core::Range elements) const;
  bool is_in_array(std::size_t parameter) const;
  void note_versions(const std::vector<std::size_t>& flats);
  std::vector<std::size_t> all_flats() const;

  comm::Communicator& communicator_;
  std::vector<Parameter> parameters_;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::unordered_map<const void*, std::size_t> numbers_;  ///< by TensorImpl
  ShardPlan plan_;
  std::unique_ptr<DiskArrays> on_disk_;  ///< paged arrays, or this rank's parts of them; null: those are in memory
  std::unique_ptr<DiskArrays> masters_on_disk_;
  std::unique_ptr<PeerArrays> peers_;  ///< null: nothing is dealt out
  c10::Device came_from_ = at::kCPU;
  std::vector<at::Tensor> arrays_;
  std::vector<at::Tensor> parts_;  ///< this rank's of each array that is dealt out; undefined for the others
  std::vector<at::Tensor> slices_;
  std::vector<bool> masters_;
  std::vector<std::size_t> keepers_;
  std::vector<std::int64_t> versions_;
  bool lent_ = false;
};

}  // namespace hortator::parallel
