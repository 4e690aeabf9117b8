#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "packed/formats/layout.hpp"
#include "weights/gguf_weights.hpp"
#include "weights/weight_source.hpp"

namespace hortator::packed {

/// A GGUF file whose matrices of the types Q8_0, Q4_0 and Q4_1 keep their bits: as int8_groups and int4 with groups of
/// 32. Others are floating-point numbers.
class GgufLayers final : public weights::WeightSource {
 public:
  explicit GgufLayers(std::unique_ptr<weights::GgufWeights> source);

  const std::map<std::string, PackedLayout>& layers() const { return layers_; }  ///< by the names of their weights

  const std::filesystem::path& path() const override { return source_->path(); }
  const std::vector<std::string>& names() const override { return source_->names(); }
  formats::TensorSpec spec(const std::string& name) const override;
  void read(const std::string& name, core::Range elements, std::byte* to) const override;
  std::optional<weights::FileSpan> span(const std::string& name) const override;
  at::Tensor tensor(const std::string& name) const override;
  void require_unchanged() const override { source_->require_unchanged(); }

 private:
  at::Tensor packed(const std::string& name) const;

  std::unique_ptr<weights::GgufWeights> source_;
  std::map<std::string, PackedLayout> layers_;
  mutable std::mutex mutex_;
  mutable std::string current_;
  mutable at::Tensor current_bytes_;  ///< of the weight that is being read
};

}  // namespace hortator::packed
