#include <ATen/ops/empty.h>

#include <algorithm>
#include <hortator/datasets/cifar.hpp>

#include "core/text/text.hpp"
#include "data/files/rows.hpp"
#include "formats/file/file_error.hpp"
#include "formats/tensor/stored_rows.hpp"

namespace hortator {

namespace data {

namespace {
constexpr std::int64_t channels = 3;
constexpr std::int64_t side = 32;
constexpr std::int64_t image_bytes = channels * side * side;

/// One of the files, with the number of its first sample.
struct CifarFile {
  formats::FixedFile file;
  std::int64_t first;
  std::int64_t rows;
};
}  // namespace

struct CifarFiles {
  CifarFiles(const std::vector<std::filesystem::path>& paths, CifarKind kind)
      : labels(kind == CifarKind::cifar10 ? 1 : 2),
        label_at(kind == CifarKind::cifar100 ? 1 : 0),
        classes(kind == CifarKind::cifar10    ? 10
                : kind == CifarKind::cifar100 ? 100
                                              : 20) {
    if (paths.empty()) throw UsageError({.what = "No CIFAR files are named"});
    for (const auto& path : paths) add(path);
  }

  void add(const std::filesystem::path& path) {
    formats::FixedFile file(path);
    const auto bytes = static_cast<std::int64_t>(file.bytes());
    if (bytes == 0 || bytes % record_bytes() != 0) {
      throw formats::FileError(
          {.what = text::concat(path, " has ", bytes, " bytes, expected whole records of ", record_bytes()),
           .why = text::concat("each has ", text::count(labels, "label"), " and an image"),
           .hint = "it was truncated, is not decompressed, or belongs to the other CIFAR"});
    }
    const auto rows = bytes / record_bytes();
    parts.push_back({.file = std::move(file), .first = size, .rows = rows});
    size += rows;
  }

  std::int64_t record_bytes() const { return labels + image_bytes; }

  at::Tensor read(std::span<const std::int64_t> samples) const {
    require_samples(samples, size, parts.front().file.path());
    auto records = at::empty({static_cast<std::int64_t>(samples.size()), record_bytes()}, at::kByte);
    auto* to = records.mutable_data_ptr<std::uint8_t>();
    for (const auto sample : samples) {
      const auto& part = part_of(sample);
      part.file.read_at(static_cast<std::uint64_t>((sample - part.first) * record_bytes()), to,
                        static_cast<std::size_t>(record_bytes()));
      if (to[label_at] >= classes) {
        throw formats::FileError(
            {.what = text::concat("Record ", sample - part.first, " of ", part.file.path(), " has the label ",
                                  int{to[label_at]}, ", expected 0 to ", classes - 1),
             .hint = "the file is damaged, or belongs to the other CIFAR"});
      }
      to += record_bytes();
    }
    for (const auto& part : parts) part.file.require_unchanged();
    return records;
  }

  const CifarFile& part_of(std::int64_t sample) const {
    return *std::prev(std::ranges::upper_bound(parts, sample, {}, &CifarFile::first));
  }

  std::int64_t labels;
  std::int64_t label_at;
  int classes;
  std::vector<CifarFile> parts = {};
  std::int64_t size = 0;
};

}  // namespace data

Cifar::Cifar(const std::vector<std::filesystem::path>& files, CifarKind kind)
    : files_(std::make_shared<const data::CifarFiles>(files, kind)) {}

std::int64_t Cifar::size() const { return files_->size; }

torch::data::Example<> Cifar::get(std::int64_t sample) const {
  const auto batch = get_batch({&sample, 1});
  return {batch.data[0], batch.target[0]};
}

torch::data::Example<> Cifar::get_batch(std::span<const std::int64_t> samples) const {
  constexpr double brightest = 255;
  const auto records = files_->read(samples);
  const auto images = records.narrow(1, files_->labels, data::image_bytes).to(at::kFloat).div_(brightest);
  return {images.view({-1, data::channels, data::side, data::side}), records.select(1, files_->label_at).to(at::kLong)};
}

}  // namespace hortator
