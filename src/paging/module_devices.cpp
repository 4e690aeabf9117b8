#include <ATen/core/grad_mode.h>

#include <exception>
#include <hortator/bigmodel/module_devices.hpp>
#include <hortator/error.hpp>
#include <vector>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "interception/claimed_operators.hpp"
#include "interception/claims.hpp"
#include "interception/weight_operators.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "paging/stores/paged_storages.hpp"

namespace hortator {

namespace {

void require_memory_on(c10::Device device) {
  if (!device.is_meta()) return;
  throw UsageError({.what = "A module was to be on the meta device",
                    .why = "LibTorch cannot move the tensors of a module there",
                    .hint = "init_empty_weights() makes a module whose parameters have no memory"});
}

}  // namespace

void detail::settle_on(torch::nn::Module& module, c10::Device device) {
  require_memory_on(device);
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : paging::named_tensors(module, {.buffers = true})) {
    if (!tensor.defined()) continue;
    paging::settle(tensor);
    tensor.set_data(tensor.to(device));
  }
  interception::refresh_weights();
}

class AlignedModule::Held {
 public:
  Held(const torch::nn::Module& module, std::optional<c10::Device> device) {
    const at::NoGradGuard no_grad;
    try {
      for (const auto& one : paging::named_tensors(module, {.buffers = true})) add(one, device);
      present_.emplace(paged_, interception::Access::read_exact);
    } catch (...) {
      put_back();
      throw;
    }
  }
  ~Held() {
    try {
      put_back();
    } catch (const std::exception& error) {
      log::warn("align_module_device: what was written to the module is lost: ", error.what());
    }
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  struct MovedTensor {
    at::Tensor tensor = {};
    at::Tensor home = {};  ///< with the memory that it had
  };

  static bool is_on(const at::Tensor& tensor, c10::Device device) {
    return tensor.device() == (device.is_cpu() || device.has_index() ? device : at::empty({0}, device).device());
  }

  void add(const paging::NamedTensor& one, std::optional<c10::Device> device) {
    const auto& [name, tensor] = one;
    if (!tensor.defined()) return;
    const bool stays = !device || is_on(tensor, *device);
    if (!interception::claim_of(tensor)) {
      if (!stays) move(tensor, *device);
      return;
    }
    if (!stays) {
      throw UsageError({.what = text::concat("The parameter ", text::quote(name), " was to be on ", device->str()),
                        .why = "it is offloaded, and can only be used where its module is",
                        .hint = "leave the device out, or remove the offloading first"});
    }
    paged_.push_back(tensor);
  }

  void move(const at::Tensor& tensor, c10::Device device) {
    require_memory_on(device);
    moved_.push_back({.tensor = tensor, .home = tensor.detach()});
    at::Tensor(tensor).set_data(tensor.detach().to(device));
    interception::refresh_weights();
  }

  void put_back() {
    const at::NoGradGuard no_grad;
    while (!moved_.empty()) {
      auto [tensor, home] = std::move(moved_.back());
      moved_.pop_back();
      const auto written = tensor.detach();
      tensor.set_data(home);
      home.copy_(written);
    }
    interception::refresh_weights();
  }

  std::vector<MovedTensor> moved_;
  std::vector<at::Tensor> paged_;
  std::optional<interception::Hold> present_;
};

AlignedModule::AlignedModule(torch::nn::Module& module, std::optional<c10::Device> device)
    : held_(std::make_unique<Held>(module, device)) {}
AlignedModule::~AlignedModule() = default;

}  // namespace hortator
