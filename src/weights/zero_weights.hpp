#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weights/deepspeed/zero_states.hpp"
#include "weights/weight_source.hpp"

namespace hortator::weights {

/// The model of a checkpoint that DeepSpeed's ZeRO wrote: trained parameters in fp32, put together from the ranks'
/// files; everything else as it is stored. Only what is read is in memory.
class ZeroWeights final : public WeightSource {
 public:
  /// `folder` holds *_model_states.pt.
  explicit ZeroWeights(const std::filesystem::path& folder) : states_(folder) {}

  const std::filesystem::path& path() const override { return states_.path(); }
  const std::vector<std::string>& names() const override { return states_.names(); }
  formats::TensorSpec spec(const std::string& name) const override { return states_.tensor(name).spec; }
  void read(const std::string& name, core::Range elements, std::byte* to) const override {
    states_.read(states_.tensor(name), elements, to);
  }
  std::string identity(const std::string& name) const override { return states_.first_name(name); }
  void require_unchanged() const override { states_.require_unchanged(); }

 private:
  ZeroStates states_;
};

}  // namespace hortator::weights
