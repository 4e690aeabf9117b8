#pragma once

#include <torch/nn/module.h>

#include "parallel/pipeline/stage_map.hpp"
#include "parallel/pipeline/stage_ranks.hpp"

namespace hortator::parallel {

/// Lets detail::forward_through_stages() find the stages of a module while it lives. All must outlive it.
class StagesOfModule {
 public:
  StagesOfModule(const torch::nn::Module& module, const StageMap& map, StageRanks& ranks);
  ~StagesOfModule();
  StagesOfModule(const StagesOfModule&) = delete;
  StagesOfModule& operator=(const StagesOfModule&) = delete;

 private:
  const torch::nn::Module* module_;
};

/// Throws on all ranks if one of them has failed in `work`. @collective over `host`
void agree(const class StageWork& work, const mpi::Communicator& host);
/// Gives all ranks the last one's tensor, whole and without history. @collective
at::Tensor from_last(const at::Tensor& tensor, const RankGroup& ranks, c10::Device device);

}  // namespace hortator::parallel
