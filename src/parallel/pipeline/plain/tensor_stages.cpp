#include "parallel/pipeline/plain/tensor_stages.hpp"

#include <algorithm>

namespace hortator::parallel {

TensorStages::TensorStages(const torch::nn::Module& module, const StageMap& map) {
  const auto add = [&](const auto& items, bool is_parameter) {
    for (const auto& item : items) {
      if (!item.value().defined()) continue;
      auto& entry = entries_[item.value().unsafeGetTensorImpl()];
      if (entry.stages.empty()) entry.name = item.key();
      entry.is_parameter = is_parameter;
      const auto& stages = map.stages_of.at(item.key());
      entry.stages.insert(entry.stages.end(), stages.begin(), stages.end());
    }
  };
  add(module.named_parameters(), true);
  add(module.named_buffers(), false);
}

const TensorStages::Entry* TensorStages::find(const at::Tensor& tensor) const {
  const auto found = entries_.find(tensor.unsafeGetTensorImpl());
  return found == entries_.end() ? nullptr : &found->second;
}

std::string TensorStages::name_in(int stage) const {
  std::string first;
  for (const auto& [tensor, entry] : entries_) {
    const bool is_in = std::ranges::find(entry.stages, stage) != entry.stages.end();
    if (is_in && (first.empty() || entry.name < first)) first = entry.name;
  }
  return first;
}

int ReadsInTurn::stage_of_next(const TensorStages::Entry& entry, int now) {
  auto& count = reads_[&entry];
  const int stage = entry.stages[std::min(count, entry.stages.size() - 1)];
  ++count;
  const bool has_now = std::ranges::find(entry.stages, now) != entry.stages.end();
  return stage < now && has_now ? now : stage;
}

}  // namespace hortator::parallel
