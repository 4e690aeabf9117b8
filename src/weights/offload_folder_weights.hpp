#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/file/fixed_file.hpp"
#include "formats/safetensors/source.hpp"
#include "weights/weight_source.hpp"

namespace hortator::weights {

/// A folder to which Hugging Face Accelerate offloaded weights: index.json with the tensors' types and shapes, and
/// NAME.dat with the bytes of each, or the name of a safetensors file that holds it.
class OffloadFolderWeights : public WeightSource {
 public:
  static constexpr const char* index_file = "index.json";

  /// Throws FileError if the index is invalid, or if a file is missing or of another size.
  explicit OffloadFolderWeights(std::filesystem::path folder);

  const std::filesystem::path& path() const override { return folder_; }
  const std::vector<std::string>& names() const override { return names_; }
  formats::TensorSpec spec(const std::string& name) const override;
  void read(const std::string& name, core::Range elements, std::byte* to) const override;
  void require_unchanged() const override;

 private:
  struct Entry {
    formats::TensorSpec spec;
    const formats::SafetensorsSource* source = nullptr;  ///< null: the tensor has a file of its own
    std::string name_there = {};
    formats::FixedFile::FileVersion found = {};  ///< of a file of its own, when the index was read
  };
  Entry in_safetensors(const std::string& file, const std::string& name);
  Entry in_own_file(const std::string& name, const formats::TensorSpec& spec) const;
  const Entry& entry(const std::string& name) const;
  std::filesystem::path file_of(const std::string& name) const { return folder_ / (name + ".dat"); }

  std::filesystem::path folder_;
  std::vector<std::string> names_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::unique_ptr<formats::SafetensorsSource>> sources_;
};

}  // namespace hortator::weights
