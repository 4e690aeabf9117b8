#include "accelerator/dispatch/placed_loading.hpp"

#include <ATen/core/grad_mode.h>

#include "accelerator/dispatch/placing.hpp"
#include "core/text/text.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "weights/offload_folder_writer.hpp"

namespace hortator::accelerator {
namespace {

void write_parts(const Division& division, const weights::WeightSource& source, const std::filesystem::path& folder) {
  std::vector<weights::TensorToOffload> parts;
  for (std::size_t i = 0; i < division.on_disk.size(); ++i) {
    const auto& one = division.on_disk[i];
    parts.push_back({.name = one.name,
                     .stored = division.later[i].stored,
                     .spec = {.type = one.type, .shape = one.tensor.sizes().vec()}});
  }
  weights::write_offload_folder(folder, source, parts);
  for (const auto& one : division.on_disk) {
    paging::drop_values(one.tensor, text::concat("The tensor ", text::quote(one.name), " is offloaded to ", folder,
                                                 ": call dispatch_model() with that folder to use it"));
  }
}

}  // namespace

void load_in_places(const Loading& loading, torch::nn::Module& module, const LoadWeightsOptions& options) {
  check_device_map(module, options.device_map);
  require_devices(options.device_map);
  auto tensors = tensors_to_place(
      module, [&](const std::string& name, const at::Tensor& tensor) { return loading.type_for(name, tensor); });
  place(tensors, module, options.device_map, /*offload_buffers=*/false);
  require_offload_folder(tensors, options.offload_folder);

  const at::NoGradGuard no_grad;
  const auto division = divide(tensors, loading.fillings());
  for (const auto& one : division.on_disk) require_own_memory(one);
  prepare_all(tensors, division);
  weights::fill(loading.source(), division.now);
  loading.require_tied();
  if (!division.on_disk.empty()) write_parts(division, loading.source(), options.offload_folder);
}

}  // namespace hortator::accelerator
