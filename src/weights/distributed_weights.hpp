#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/file/file_pool.hpp"
#include "formats/torch/distributed/metadata.hpp"
#include "formats/torch/pickle/value.hpp"
#include "weights/weight_source.hpp"

namespace hortator::weights {

/// A folder that torch.distributed.checkpoint wrote, such as FSDP's SHARDED_STATE_DICT: each rank's file has parts of
/// tensors. Only what is read is in memory.
class DistributedWeights : public WeightSource {
 public:
  static constexpr auto metadata_file = ".metadata";

  explicit DistributedWeights(std::filesystem::path folder);

  const std::filesystem::path& path() const override { return folder_; }
  const std::vector<std::string>& names() const override { return names_; }
  formats::TensorSpec spec(const std::string& name) const override { return entry(name).tensor->spec; }
  void read(const std::string& name, core::Range elements, std::byte* to) const override;
  void require_unchanged() const override;

  /// The values that are not tensors.
  const std::vector<formats::DistributedObject>& objects() const { return metadata_.objects; }
  const std::vector<formats::DistributedTensor>& tensors() const { return metadata_.tensors; }
  /// Reads a value that is not a tensor.
  formats::PickleValue object(const formats::DistributedObject& object) const;

 private:
  /// A part's elements in its file, in row-major order.
  struct PartPosition {
    std::size_t file = 0;  ///< its number in files_
    std::uint64_t offset = 0;
  };
  struct Entry {
    const formats::DistributedTensor* tensor = nullptr;
    mutable std::vector<std::optional<PartPosition>> places = {};  ///< found when a part is read
  };

  const Entry& entry(const std::string& name) const;
  const PartPosition& place(const Entry& entry, std::size_t part) const;
  PartPosition find_place(const formats::DistributedTensor& tensor, const formats::DistributedPart& part) const;
  std::shared_ptr<const formats::FixedFile> file_of(const formats::DistributedPlace& place) const {
    return files_.get(file_numbers_.at(place.file));
  }
  void read_part(const Entry& entry, std::size_t part, core::Range elements, std::byte* to) const;

  std::filesystem::path folder_;
  formats::DistributedMetadata metadata_;
  formats::FilePool files_;
  std::map<std::string, std::size_t> file_numbers_;
  std::vector<std::string> names_;
  std::map<std::string, Entry> entries_;
};

}  // namespace hortator::weights
