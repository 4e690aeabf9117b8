#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "packed/formats/layout.hpp"
#include "weights/weight_source.hpp"

namespace hortator::packed {

/// A packed weight in files.
struct StoredLayer {
  PackedLayout layout = {};
  at::ScalarType type = at::kFloat;  ///< of the weight before it was packed
  at::Tensor scales = {};            ///< as bytes
};

/// A source with the tensors of packed weights joined.
class StoredWeights final : public weights::WeightSource {
 public:
  explicit StoredWeights(std::unique_ptr<weights::WeightSource> source);

  const std::map<std::string, StoredLayer>& layers() const { return layers_; }  ///< by the names of their weights

  const std::filesystem::path& path() const override { return source_->path(); }
  const std::vector<std::string>& names() const override { return names_; }
  formats::TensorSpec spec(const std::string& name) const override;
  void read(const std::string& name, core::Range elements, std::byte* to) const override;
  std::optional<weights::FileSpan> span(const std::string& name) const override;
  std::string identity(const std::string& name) const override { return source_->identity(name); }
  at::Tensor tensor(const std::string& name) const override;
  void require_unchanged() const override { source_->require_unchanged(); }

 private:
  void add_groups(const std::string& weight, const std::string& state, WeightFormat format);
  void add_int8(const std::string& layer);

  std::unique_ptr<weights::WeightSource> source_;
  std::map<std::string, StoredLayer> layers_;
  std::vector<std::string> names_;
};

}  // namespace hortator::packed
