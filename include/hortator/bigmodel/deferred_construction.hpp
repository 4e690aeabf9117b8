#pragma once

#include <hortator/export.hpp>
#include <memory>
#include <utility>

namespace hortator {

/// While it lives, modules that this thread constructs use no memory: the initialisation of their parameters and
/// buffers is recorded, and run when their values are needed, with bitwise the same result, random numbers included.
/// The offloading and sharding functions initialise them page by page, so that only one page of the module is in memory
/// at a time; any other parameter gets its values when an operator reads it. Modules' code does not change.
///
///     Net net{nullptr};
///     {
///       hortator::DeferredConstruction deferred;
///       net = Net(100'000);
///     }
///     auto offload = hortator::disk_offload(net, "/scratch");
///
/// Random numbers that the program draws before the values are made are those that it would get without the module.
/// Only LibTorch's own initialisers are deferred (those that set values in place: uniform_, normal_, fill_, zero_,
/// ...). Computations with such tensors (an orthogonal matrix) run immediately, after all recorded initialisation that
/// they depend on.
class HORTATOR_API DeferredConstruction {
 public:
  DeferredConstruction();
  ~DeferredConstruction();
  DeferredConstruction(const DeferredConstruction&) = delete;
  DeferredConstruction& operator=(const DeferredConstruction&) = delete;

 private:
  class Scope;
  std::unique_ptr<Scope> scope_;
};

/// `auto net = hortator::construct_deferred([] { return Net(100'000); });`
template <typename Make>
auto construct_deferred(Make&& make) {
  const DeferredConstruction deferred;
  return std::forward<Make>(make)();
}

}  // namespace hortator
