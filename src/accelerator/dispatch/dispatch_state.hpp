#pragma once

#include <filesystem>
#include <hortator/bigmodel/dispatch.hpp>
#include <hortator/bigmodel/offload.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "accelerator/dispatch/dispatch_plan.hpp"
#include "bigmodel/operand_placement.hpp"
#include "paging/pager.hpp"
#include "weights/filling.hpp"
#include "weights/weight_source.hpp"

namespace hortator {

/// The parts of a dispatched model that are on disk or on several devices.
class detail::Dispatch::State {
 public:
  State(DeviceMap map, const std::vector<accelerator::PlacedTensor>& tensors);

  /// Pages the parts on disk in from the files that they were stored in. `stored`: the same tensors, by their names
  /// there.
  void page(const std::vector<accelerator::PlacedTensor>& on_disk, const std::vector<weights::Filling>& stored,
            const std::shared_ptr<const weights::WeightSource>& source, const accelerator::DispatchPlan& plan,
            const std::filesystem::path& scratch);
  /// Writes the parts on disk among `tensors` to the offload folder; `paged` are on disk already.
  void offload(const torch::nn::Module& module, const std::vector<accelerator::PlacedTensor>& tensors,
               const std::vector<accelerator::PlacedTensor>& paged, const DispatchOptions& options);

  const DeviceMap& map() const { return map_; }
  DispatchCounters counters() const;
  void remove();
  std::shared_ptr<void> begin_use();

 private:
  DeviceMap map_;
  std::uint64_t in_memory_ = 0;
  std::uint64_t on_disk_ = 0;
  std::optional<bigmodel::ResidentStorages> residents_;  ///< where parts lie on devices
  std::optional<paging::Pager> pager_;
  std::optional<Offload> offload_;
};

}  // namespace hortator
