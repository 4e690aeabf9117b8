#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/reader.hpp"
#include "io/weight_source.hpp"

namespace hortator::cli::checkpoints {

/// Everything in a checkpoint, under its full names.
class WholeCheckpoint final : public io::WeightSource {
 public:
  explicit WholeCheckpoint(const std::filesystem::path& folder) : reader_(folder) {
    for (const auto& [name, spec] : reader_.tensors()) names_.push_back(name);
  }
  const std::filesystem::path& path() const override { return reader_.folder(); }
  const std::vector<std::string>& names() const override { return names_; }
  io::TensorSpec spec(const std::string& name) const override { return reader_.tensors().at(name); }
  void read(const std::string& name, shard::Range elements, std::byte* to) const override {
    reader_.read_elements(name, elements, to);
  }
  const StateDict& values() const { return reader_.values(); }

 private:
  checkpoint::Reader reader_;
  std::vector<std::string> names_;
};

}  // namespace hortator::cli::checkpoints
