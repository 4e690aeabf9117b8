#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/work.hpp"
#include "parallel/data_parallel/data_parallel.hpp"
#include "parallel/zero/flat_parameters.hpp"

namespace hortator::parallel {

/// The gradients of one flat array's parameters. As backward brings them they are whole; they travel together, and then
/// this rank has the mean of its part, in a shard whose places become the gradients of its slices.
class GradientArray {
 public:
  struct Member {
    std::string name;
    at::Tensor tensor;
    at::Tensor place = {};   ///< in the shard: what becomes its slice's gradient
    std::size_t number = 0;  ///< among the flat parameters
    bool waits = false;      ///< has a gradient that was not sent
    bool reached = false;    ///< in this pass
    bool used = false;       ///< since gradients had to be complete
  };

  /// `shard`: this rank's part of the flat array number `flat`.
  GradientArray(const parallel::FlatParameters& parameters, std::size_t flat, at::Tensor shard,
                const DataParallel& parallel);

  std::vector<Member>& members() { return members_; }
  const std::vector<Member>& members() const { return members_; }
  std::int64_t elements() const { return elements_; }
  at::ScalarType travel_type() const { return travel_type_; }
  /// The gradient of a parameter's slice.
  at::Tensor& gradient(const Member& member) const { return parameters_.slice(member.number).mutable_grad(); }

  /// Its gradient has come. True: all have now, and may go.
  bool note(Member& member);
  bool is_full() const { return arrived_ >= members_.size(); }
  bool has_leftovers() const;
  /// Gradients came after it was sent: it waits for the end of each pass from now on.
  bool is_late() const { return is_late_; }
  void set_late() { is_late_ = true; }

  /// Moves what has come into the buffer that it travels in; what has not is zero there.
  void pack(const at::Tensor& buffer);
  /// Begins to deal the buffer out. @collective
  void start(const at::Tensor& buffer);
  bool is_on_the_way() const { return is_on_the_way_; }
  void wait();  ///< @collective
  /// After wait(): the shard has this round's mean, or has it added to what it had.
  void unpack();
  /// Its part of the shard becomes the gradient of the member's slice.
  void publish(const Member& member) const;
  void end_pass(bool complete);

 private:
  bool has_gradients() const;
  void bring_gradients_in() const;

  const parallel::FlatParameters& parameters_;
  const Sharding& sharding_;
  const std::int64_t elements_;
  const at::ScalarType travel_type_;
  const at::Tensor shard_;
  std::vector<Member> members_;
  at::Tensor incoming_;      ///< while it travels: the shard itself, or memory aside
  std::size_t arrived_ = 0;  ///< gradients in this pass
  bool was_sent_ = false;    ///< in this pass
  bool is_on_the_way_ = false;
  bool adds_ = false;  ///< this round's sum goes to what the shard holds, not in its place
  bool is_late_ = false;
  comm::Work work_;
};

}  // namespace hortator::parallel
