#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <hortator/detail/each_tensor.hpp>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Arguments of a model's forward whose tensors hooks may replace.
namespace hortator::detail {

/// How an argument is held: as a copy, which is the hooks' own, where there can be one and forward does not write to
/// the caller's object.
template <typename Argument>
using HeldArgument =
    std::conditional_t<std::is_lvalue_reference_v<Argument>,
                       std::conditional_t<std::is_same_v<std::remove_cvref_t<Argument>, at::Tensor> ||
                                              (std::is_const_v<std::remove_reference_t<Argument>> &&
                                               std::is_class_v<std::remove_cvref_t<Argument>> &&
                                               std::is_copy_constructible_v<std::remove_cvref_t<Argument>>),
                                          std::remove_cvref_t<Argument>, Argument>,
                       std::conditional_t<std::is_move_constructible_v<std::remove_cvref_t<Argument>>,
                                          std::remove_cvref_t<Argument>, Argument&&>>;

template <typename... Arguments>
class HookedArguments {
 public:
  explicit HookedArguments(Arguments&&... arguments) : held_(std::forward<Arguments>(arguments)...) {
    each_tensor(held_, [&](at::Tensor& tensor) { before_.push_back(tensor); });
  }
  /// Gives objects of the caller's their tensors back, unless forward has written others.
  ~HookedArguments() {
    std::size_t i = 0;
    each_tensor(held_, [&](at::Tensor& tensor) {
      if (i < now_.size() && tensor.is_same(now_[i])) tensor = before_[i];
      ++i;
    });
  }
  HookedArguments(const HookedArguments&) = delete;
  HookedArguments& operator=(const HookedArguments&) = delete;

  const std::vector<at::Tensor>& tensors() const { return before_; }
  /// Replaces the tensors by as many others.
  void replace(std::vector<at::Tensor> tensors) {
    now_ = std::move(tensors);
    std::size_t i = 0;
    each_tensor(held_, [&](at::Tensor& tensor) { tensor = now_[i++]; });
  }
  template <typename Call>
  decltype(auto) apply(const Call& call) {
    return std::apply([&](auto&... held) -> decltype(auto) { return call(static_cast<Arguments&&>(held)...); }, held_);
  }

 private:
  std::tuple<HeldArgument<Arguments>...> held_;
  std::vector<at::Tensor> before_, now_;
};

}  // namespace hortator::detail
