#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "formats/file/file_pool.hpp"
#include "formats/torch/pickle/archive.hpp"
#include "weights/deepspeed/zero_reading.hpp"

namespace hortator::weights {

/// One file of DeepSpeed, while its pickle is in memory. Throws FileError, naming the file, if it is truncated or of
/// another format.
class ZeroFile {
 public:
  ZeroFile(formats::FilePool& files, const std::filesystem::path& path);

  /// What `parse` makes of the pickle.
  template <typename Parse>
  auto parsed(const Parse& parse) const {
    try {
      return parse(archive_.value());
    } catch (const formats::PickleFault& fault) {
      refuse(fault.what());
    }
  }
  /// The position of a tensor's first element in the file; 0 if it has no elements.
  std::uint64_t offset_of(const formats::PickledTensor& tensor) const;
  /// The whole tensor, as one slice.
  StoredTensor stored(const formats::PickledTensor& tensor) const;
  std::size_t number() const { return number_; }
  /// Replaces the values of a dict that are tensors of one element by numbers.
  void read_numbers(formats::PickleValue::Dict& dict) const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  formats::PickleArchive open() const;

  std::size_t number_;
  std::shared_ptr<const formats::FixedFile> file_;
  formats::PickleArchive archive_;
};

}  // namespace hortator::weights
