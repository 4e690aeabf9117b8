#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <string>
#include <vector>

#include "interception/dispatch_keys.hpp"
#include "parallel/tensor/conjugates.hpp"
#include "parallel/tensor/division.hpp"
#include "parallel/tensor/shared_gather.hpp"

/// Divided tensors. User code sees an activation as a tensor of the whole sizes, without memory: it holds this rank's
/// part, which has autograd's graph. A divided parameter is an ordinary tensor, this rank's part, that knows its
/// division. Both carry interception::divided_key, by which operators are intercepted.
namespace hortator::parallel {

/// An argument of an operator.
struct Operand {
  at::Tensor tensor;                      ///< this rank's part, or the whole tensor
  std::optional<Division> division = {};  ///< nothing if all ranks have the whole tensor
  SharedRanks ranks = {};                 ///< null without division
  at::Tensor shared = {};                 ///< an activation that layers may share; otherwise undefined

  std::int64_t dims() const { return tensor.dim(); }
  bool is_divided() const { return division.has_value(); }
  bool is_divided_along(std::int64_t dim) const { return division && division->dim == dim; }
  Sizes whole_sizes() const {
    return division ? parallel::whole_sizes(tensor.sizes(), *division, ranks->size()) : tensor.sizes().vec();
  }
  /// The whole tensor. @collective if it is divided
  at::Tensor whole() const { return division ? join(tensor, *division, ranks) : tensor; }
  /// The whole tensor for computations that differ by rank, as spread() and gather(). @collective if it is divided
  at::Tensor whole_for_ranks(const SharedRanks& of) const;
  /// The product of a shared activation, whole, with this rank's columns; backward keeps the part only. @collective
  at::Tensor times_shared(const at::Tensor& columns) const;
  /// "[2, 8, 64] along dimension 2"
  std::string text() const;
};

/// Whether the tensor is divided: an activation or a parameter.
bool is_divided(const at::Tensor& tensor);

/// A tensor as an operand; its part, without the key, if it is divided. Keeps autograd's graph.
Operand operand_of(const at::Tensor& tensor);

/// The values of a tensor that may be divided, whole and without history. @collective if it is divided
at::Tensor whole_values(const at::Tensor& tensor);

/// A tensor of the whole sizes whose part is `part`.
at::Tensor divided_tensor(at::Tensor part, const Division& division, const SharedRanks& ranks);

/// After an operator has changed `part`, that of `tensor`, in place: `tensor` and its graph follow it.
void follow_part(const at::Tensor& tensor, const at::Tensor& part);

/// Whether the tensor is a divided parameter, not an activation.
bool is_divided_parameter(const at::Tensor& tensor);

/// Makes `parameter`, which holds this rank's part, a divided parameter. Replacing its data (set_data) ends that. One
/// rank has the whole parameter, which stays an ordinary tensor.
void mark_divided(const at::Tensor& parameter, const Division& division, const SharedRanks& ranks);
/// Makes a divided parameter an ordinary tensor.
void unmark_divided(const at::Tensor& parameter);
/// Gives a parameter other memory. A divided one stays divided: `data` is this rank's part.
void replace_data(const at::Tensor& parameter, const at::Tensor& data);

/// While it lives, operators of this thread see divided parameters as ordinary tensors: this rank's parts. For code
/// that works on each rank's parameters, such as optimizers.
class PartsOnly {
 public:
  PartsOnly() = default;

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_{interception::divided_key};
};

}  // namespace hortator::parallel
