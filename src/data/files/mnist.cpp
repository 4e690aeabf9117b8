#include <array>
#include <hortator/datasets/mnist.hpp>

#include "core/text/text.hpp"
#include "data/files/rows.hpp"
#include "formats/file/file_error.hpp"
#include "formats/tensor/stored_rows.hpp"

namespace hortator {

namespace data {

namespace {

using formats::FileError;

constexpr std::size_t word_bytes = 4;

std::uint32_t big_endian(const std::uint8_t* bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < word_bytes; ++i) value = (value << 8) | bytes[i];
  return value;
}

bool is_compressed(std::span<const std::uint8_t> beginning) {
  return beginning.size() > 1 && beginning[0] == 0x1f && beginning[1] == 0x8b;
}

/// Reads the header of an IDX file of bytes: two zeros, the type, the number of dimensions, then their sizes.
formats::StoredRows find_rows(const formats::FixedFile& file, std::size_t dimensions) {
  constexpr std::uint32_t unsigned_bytes = 0x0800;
  std::array<std::uint8_t, 4 * word_bytes> head{};
  const auto head_bytes = (dimensions + 1) * word_bytes;
  const auto read_bytes = std::min<std::uint64_t>(head_bytes, file.bytes());
  file.read_at(0, head.data(), read_bytes);
  if (is_compressed({head.data(), read_bytes}))
    throw FileError({.what = text::concat(file.path(), " is compressed"), .hint = "decompress it with gunzip"});
  if (read_bytes < head_bytes || big_endian(head.data()) != (unsigned_bytes | dimensions)) {
    throw FileError({.what = text::concat(file.path(), " is not an IDX file of bytes in ", dimensions, " dimensions"),
                     .hint = "images have three dimensions, labels have one: check the order of the two files"});
  }
  formats::TensorSpec spec{.type = at::kByte};
  for (std::size_t i = 1; i <= dimensions; ++i) spec.shape.push_back(big_endian(head.data() + i * word_bytes));
  const auto bytes = formats::byte_count(spec);
  if (!bytes || static_cast<std::uint64_t>(*bytes) != file.bytes() - head_bytes) {
    throw FileError({.what = text::concat(file.path(), " has ", file.bytes() - head_bytes,
                                          " bytes after its header, expected [", text::join(spec.shape), "]"),
                     .hint = "it was truncated or is damaged: copy it again"});
  }
  const auto rows = spec.shape.front();
  spec.shape.erase(spec.shape.begin());
  return {.row = std::move(spec), .rows = rows, .offset = head_bytes};
}

}  // namespace

struct MnistFiles {
  MnistFiles(const std::filesystem::path& images_path, const std::filesystem::path& labels_path)
      : images(images_path), labels(labels_path), image_rows(find_rows(images, 3)), label_rows(find_rows(labels, 1)) {
    if (image_rows.rows == label_rows.rows) return;
    throw FileError({.what = text::concat(images_path, " has ", image_rows.rows, " images, ", labels_path, " has ",
                                          label_rows.rows, " labels")});
  }

  formats::FixedFile images;
  formats::FixedFile labels;
  formats::StoredRows image_rows;
  formats::StoredRows label_rows;
};

}  // namespace data

Mnist::Mnist(const std::filesystem::path& images, const std::filesystem::path& labels)
    : files_(std::make_shared<const data::MnistFiles>(images, labels)) {}

std::int64_t Mnist::size() const { return files_->image_rows.rows; }

torch::data::Example<> Mnist::get(std::int64_t sample) const {
  const auto batch = get_batch({&sample, 1});
  return {batch.data[0], batch.target[0]};
}

torch::data::Example<> Mnist::get_batch(std::span<const std::int64_t> samples) const {
  constexpr double brightest = 255;
  data::require_samples(samples, size(), files_->images.path());
  const auto images = formats::read_rows(files_->images, files_->image_rows, samples);
  const auto labels = formats::read_rows(files_->labels, files_->label_rows, samples);
  files_->images.require_unchanged();
  files_->labels.require_unchanged();
  return {images.unsqueeze(1).to(at::kFloat).div_(brightest), labels.to(at::kLong)};
}

}  // namespace hortator
