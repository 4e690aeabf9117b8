#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/read/reader.hpp"
#include "weights/weight_source.hpp"

namespace hortator::tools::checkpoints {

/// All tensors of a checkpoint as weights, under their full names.
class WholeCheckpoint final : public weights::WeightSource {
 public:
  explicit WholeCheckpoint(const std::filesystem::path& folder) : reader_(folder) {
    for (const auto& [name, spec] : reader_.tensors()) names_.push_back(name);
  }
  const std::filesystem::path& path() const override { return reader_.folder(); }
  const std::vector<std::string>& names() const override { return names_; }
  formats::TensorSpec spec(const std::string& name) const override { return reader_.tensors().at(name); }
  void read(const std::string& name, core::Range elements, std::byte* to) const override {
    reader_.read_elements(name, elements, to);
  }
  const StateDict& values() const { return reader_.values(); }

 private:
  checkpoint::Reader reader_;
  std::vector<std::string> names_;
};

}  // namespace hortator::tools::checkpoints
