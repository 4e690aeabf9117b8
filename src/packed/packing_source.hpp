#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "formats/safetensors/source.hpp"
#include "packed/packed_layers.hpp"
#include "weights/weight_source.hpp"

namespace hortator::packed {

/// Weights of files, some of them packed while they are read: with the memory of one weight at a time. Thread-safe if
/// the other source is.
class PackingSource final : public weights::WeightSource {
 public:
  /// `layers`: by the names of their weights in `source`.
  PackingSource(std::shared_ptr<const weights::WeightSource> source, std::map<std::string, PackableLayer> layers);

  /// Packs weights now, and writes them to an unnamed file in a folder, from which they are read from now on.
  void keep_on_disk(const std::vector<std::string>& names, const std::filesystem::path& folder);

  const std::filesystem::path& path() const override { return source_->path(); }
  const std::vector<std::string>& names() const override { return source_->names(); }
  formats::TensorSpec spec(const std::string& name) const override;
  void read(const std::string& name, core::Range elements, std::byte* to) const override;
  std::optional<weights::FileSpan> span(const std::string& name) const override;
  std::string identity(const std::string& name) const override;
  at::Tensor tensor(const std::string& name) const override;
  void require_unchanged() const override { source_->require_unchanged(); }

 private:
  at::Tensor packed(const std::string& name) const;
  bool is_kept(const std::string& name) const { return kept_ && kept_->contains(name); }

  std::shared_ptr<const weights::WeightSource> source_;
  std::map<std::string, PackableLayer> layers_;
  std::unique_ptr<const formats::SafetensorsSource> kept_;
  mutable std::mutex mutex_;
  mutable std::string current_;       ///< the weight of `bytes_`: read piece by piece
  mutable at::Tensor current_bytes_;  ///< of the weight that is being read
};

}  // namespace hortator::packed
