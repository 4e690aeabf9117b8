#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/file/fixed_file.hpp"
#include "formats/gguf/header.hpp"
#include "weights/gguf_names.hpp"
#include "weights/weight_source.hpp"

namespace hortator::weights {

/// A GGUF file, under the names and in the order of Hugging Face's checkpoints. Quantised tensors are float32.
class GgufWeights : public WeightSource {
 public:
  explicit GgufWeights(const std::filesystem::path& path);

  const std::filesystem::path& path() const override { return file_.path(); }
  const std::vector<std::string>& names() const override { return names_; }
  formats::TensorSpec spec(const std::string& name) const override;
  void read(const std::string& name, core::Range elements, std::byte* to) const override;
  std::optional<FileSpan> span(const std::string& name) const override;
  void require_unchanged() const override { file_.require_unchanged(); }

  /// The name of a quantised tensor's type; empty for plain numbers.
  std::string block_type(const std::string& name) const;
  std::int64_t block_bytes(const std::string& name) const;  ///< of one block of it
  /// Reads the blocks of one row of a matrix, as the file has them.
  void read_blocks_of_row(const std::string& name, std::int64_t row, std::byte* to) const;

 private:
  struct Entry {
    const formats::GgufTensor* tensor;
    std::int64_t heads;  ///< rows are interleaved within each of these; 0: they are not
  };

  void add(const formats::GgufTensor& tensor);
  const Entry& entry(const std::string& name) const;
  const formats::GgufType& type_of(const std::string& name, const formats::GgufTensor& tensor) const;
  void read_stored(const formats::GgufTensor& tensor, core::Range elements, std::byte* to) const;

  formats::FixedFile file_;
  formats::GgufHeader header_;
  std::vector<std::string> names_;
  std::map<std::string, Entry> entries_;
};

}  // namespace hortator::weights
