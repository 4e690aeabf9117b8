#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/work.hpp"
#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/zero/flat_parameters.hpp"
#include "parallel/zero/sharding.hpp"

namespace hortator::parallel {

/// The gradients of one flat array's parameters. Backward makes them whole; they travel together, and then this rank
/// has the mean of its part in a shard, whose ranges become the gradients of its slices.
class GradientArray {
 public:
  struct Member {
    std::string name;
    at::Tensor tensor;
    at::Tensor in_shard = {};  ///< range of the shard that becomes its slice's gradient
    std::size_t number = 0;    ///< among the flat parameters
    bool waits = false;        ///< it has a gradient that was not sent
    bool reached = false;      ///< by backward in this pass
    bool used = false;         ///< since the last pass in which gradients had to be complete
  };

  /// `shard`: this rank's part of the flat array number `flat`. `ranks`: those that share the parameters.
  GradientArray(const parallel::FlatParameters& parameters, std::size_t flat, at::Tensor shard,
                const DataParallel& parallel, const ShardRanks& ranks);

  std::vector<Member>& members() { return members_; }
  const std::vector<Member>& members() const { return members_; }
  std::int64_t elements() const { return elements_; }
  /// The ranks that share it.
  comm::Communicator& group() const { return ranks_.group; }
  at::ScalarType travel_type() const { return travel_type_; }
  /// The gradient of a parameter's slice.
  at::Tensor& gradient(const Member& member) const { return parameters_.slice(member.number).mutable_grad(); }

  /// Must be called when a member's gradient has arrived. Returns true when all have, so that the array can be sent.
  bool note(Member& member);
  bool is_full() const { return arrived_ >= members_.size(); }
  bool has_leftovers() const;
  /// Whether gradients have arrived after it was sent. From then on it is sent at the end of each pass.
  bool is_late() const { return is_late_; }
  void set_late(bool late) { is_late_ = late; }

  /// Moves the gradients that have arrived into the buffer in which they travel; sets the others to zero there.
  void pack(const at::Tensor& buffer);
  /// Starts to reduce and scatter the buffer, over the array's replicas as well or not. @collective
  void start(const at::Tensor& buffer, bool with_replicas = true);
  bool is_on_the_way() const { return is_on_the_way_; }
  void wait();  ///< @collective
  /// After wait(): sets the shard to this round's mean, or adds it.
  void unpack();
  /// Makes the member's range of the shard the gradient of its slice.
  void publish(const Member& member) const;
  void end_pass(bool complete);
  /// Forgets a pass that was interrupted. Nothing may be on the way.
  void drop_pass();

 private:
  bool queues_behind() const;
  bool has_gradients() const;
  void load_gradients() const;

  const parallel::FlatParameters& parameters_;
  const ShardRanks& ranks_;
  const std::int64_t elements_;
  const at::ScalarType travel_type_;
  const at::Tensor shard_;
  std::vector<Member> members_;
  at::Tensor incoming_;      ///< while it travels: the shard itself, or temporary memory
  std::size_t arrived_ = 0;  ///< gradients in this pass
  bool was_sent_ = false;    ///< in this pass
  bool is_on_the_way_ = false;
  bool adds_ = false;  ///< this round's result is added to the shard instead of replacing it
  bool is_late_ = false;
  comm::Communicator* replicas_ = nullptr;  ///< that average what is under way; null: none
  comm::Work work_;
  comm::Work between_groups_;  ///< under way only where it may queue behind the other one
};

}  // namespace hortator::parallel
