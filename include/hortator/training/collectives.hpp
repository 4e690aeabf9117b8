#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/detail/call_site.hpp>
#include <hortator/detail/leaves.hpp>
#include <hortator/export.hpp>
#include <hortator/state.hpp>
#include <hortator/training/accelerator_options.hpp>
#include <hortator/training/objects.hpp>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hortator {

/// The collectives of a program that has a State but no Accelerator (inference, tools): `hortator::Collectives
/// collectives(state);`. They are those of the Accelerator, and accept tensors and structures of tensors alike. The
/// object owns connections between the ranks; its end closes them, and MPI stays usable. Construction is @collective.
class HORTATOR_API Collectives {
 public:
  explicit Collectives(const State& state);
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  /// Returns the ranks' tensors of one shape, joined along dimension 0 in rank order; single numbers become a vector.
  /// @collective
  template <typename T>
  T gather(T tensors);
  /// Returns the reduction over all ranks. @collective
  template <typename T>
  T reduce(T tensors, Reduce operation = Reduce::sum);
  /// Overwrites the tensors with those of `from_process`, in place, and returns them. @collective
  template <typename T>
  T broadcast(T tensors, int from_process = 0);
  /// Returns the tensors padded to the largest size of all ranks along one dimension (PadOptions::dim). @collective
  template <typename T>
  T pad_across_processes(T tensors, const PadOptions& options = {});

  /// Returns the objects of all ranks on every rank, in rank order: vectors are joined to one vector, other objects
  /// become a vector with one element per rank. Objects must be hortator::Serializable. @collective
  template <typename T>
  auto gather_object(const T& object) const;
  /// Replaces `objects` by those of `from_process`, in place and whatever their number, and returns them. @collective
  template <typename T>
  std::vector<T>& broadcast_object_list(std::vector<T>& objects, int from_process = 0) const;

 private:
  class Connections;

  at::Tensor gather_one(const at::Tensor& tensor);
  at::Tensor reduce_one(const at::Tensor& tensor, Reduce operation);
  void broadcast_one(const at::Tensor& tensor, int from_process);
  at::Tensor pad_one(const at::Tensor& tensor, const PadOptions& options);
  void gather_leaves(const std::vector<detail::Leaf>& leaves);
  void reduce_leaves(const std::vector<detail::Leaf>& leaves, Reduce operation);
  void broadcast_leaves(const std::vector<detail::Leaf>& leaves, int from_process);
  void pad_leaves(const std::vector<detail::Leaf>& leaves, const PadOptions& options);
  std::vector<std::string> gather_encoded(const std::function<std::string()>& encode) const;
  std::string broadcast_encoded(const std::function<std::string()>& encode, int from_process) const;
  void decode_together(const std::function<void()>& decode) const;

  std::unique_ptr<Connections> connections_;
};

}  // namespace hortator

#include <hortator/detail/state_collectives.hpp>
