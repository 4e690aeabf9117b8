#pragma once

#include <hortator/export.hpp>
#include <memory>
#include <utility>

namespace hortator {

/// While it lives, modules that this thread constructs take no memory: how their parameters and buffers are initialised
/// is noted, and done when their values are needed, bitwise as it would have been, random numbers included. What the
/// offloading and sharding functions take over is initialised page by page, so that no more than a page of the module
/// is in memory at a time; a parameter that an operator reads otherwise gets its values then. No code of modules
/// changes.
///
///     Net net{nullptr};
///     {
///       hortator::DeferredConstruction deferred;
///       net = Net(100'000);
///     }
///     auto offload = hortator::disk_offload(net, "/scratch");
///
/// Random numbers that the program draws before the values are made are those that it would get without the module.
/// Only LibTorch's own initialisers are put off (those that set values in place: uniform_, normal_, fill_, zero_, ...);
/// computations with tensors that were made meanwhile (an orthogonal matrix) are done at once, with all that must be
/// done before.
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
