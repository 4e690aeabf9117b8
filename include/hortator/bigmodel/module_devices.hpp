#pragma once

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <concepts>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>
#include <optional>
#include <utility>

// The devices of modules.

namespace hortator {

namespace detail {
HORTATOR_API void settle_on(torch::nn::Module& module, c10::Device device);
}  // namespace detail

/// Constructs a module on a device:
///
///     auto net = hortator::init_on_device(at::kCUDA, [] { return Net(options); });
///
/// Parameters and buffers get the values that they get on the CPU, one after the other: no two of them are on the host
/// at a time. DeferredConstruction lists which initialisers are deferred.
template <std::invocable Make>
auto init_on_device(c10::Device device, Make&& make) {
  auto model = construct_deferred(std::forward<Make>(make));
  detail::settle_on(detail::module_of(model), device);
  return model;
}

/// Keeps a module on one device, as long as it lives.
class HORTATOR_API AlignedModule {
 public:
  AlignedModule(torch::nn::Module& module, std::optional<c10::Device> device);
  ~AlignedModule();
  AlignedModule(const AlignedModule&) = delete;
  AlignedModule& operator=(const AlignedModule&) = delete;

 private:
  class Held;
  std::unique_ptr<Held> held_;
};

/// Keeps the module's parameters and buffers on `device` as long as the result lives, and then puts them back with what
/// was written to them: `auto aligned = hortator::align_module_device(layer, at::kCUDA);`. Without a device they stay
/// where they are. Offloaded and dispatched parts on disk are in memory meanwhile, to be read; they cannot move.
template <Module M>
[[nodiscard]] AlignedModule align_module_device(M& model, std::optional<c10::Device> device = {}) {
  return AlignedModule(detail::module_of(model), device);
}

}  // namespace hortator
