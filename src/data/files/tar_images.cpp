#include <array>
#include <cstdint>
#include <hortator/datasets/tar_shards.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"
#include "data/files/image_tensor.hpp"
#include "formats/file/file_error.hpp"
#include "formats/image/image.hpp"

namespace hortator {
namespace {

using formats::FileError;

/// A sample in its archive.
std::string name_of(const TarSample& sample, const std::filesystem::path& archive) {
  return text::concat("the sample ", text::quote(sample.key), " of ", archive);
}

const std::string& image_of(const TarSample& sample, const std::filesystem::path& archive) {
  constexpr std::array<const char*, 3> extensions = {"png", "jpg", "jpeg"};
  for (const auto* extension : extensions) {
    const auto found = sample.files.find(extension);
    if (found != sample.files.end()) return found->second;
  }
  throw FileError({.what = name_of(sample, archive) + " has no image",
                   .why = "an image is a file that ends with .png, .jpg or .jpeg",
                   .hint = "read other samples with TarShards"});
}

std::int64_t class_of(const TarSample& sample, const std::filesystem::path& archive) {
  const auto found = sample.files.find("cls");
  auto digits = found == sample.files.end() ? std::string_view() : std::string_view(found->second);
  while (digits.ends_with('\n') || digits.ends_with('\r') || digits.ends_with(' ')) digits.remove_suffix(1);
  long long number = 0;
  if (text::parse_integer(digits, number) && number >= 0) return number;
  throw FileError({.what = text::concat(name_of(sample, archive), " has the class ", text::quote(std::string(digits)),
                                        ", expected a whole number from 0"),
                   .why = "the file that ends with .cls holds the number of its class",
                   .hint = "write the number as text, or read the samples with TarShards"});
}

}  // namespace

TarImages::TarImages(TarShards shards, ImageFolderOptions options)
    : shards_(std::move(shards)), options_(std::move(options)) {
  data::require_channels(options_.channels);
}

torch::data::Example<at::Tensor, std::int64_t> TarImages::get(std::int64_t sample) const {
  const auto read = shards_.get(sample);
  const auto& archive = shards_.archive(sample);
  const auto& file = image_of(read, archive);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  try {
    const auto image = data::image_tensor(bytes, options_.channels);
    return {options_.transform ? options_.transform(image) : image, class_of(read, archive)};
  } catch (const formats::ImageFault& fault) {
    throw FileError({.what = text::concat("the image of ", name_of(read, archive), " cannot be read: ", fault.what()),
                     .hint = "it is damaged or of another format: write it again"});
  }
}

}  // namespace hortator
