#include <algorithm>
#include <array>
#include <cctype>
#include <hortator/datasets/image_folder.hpp>

#include "core/text/text.hpp"
#include "data/files/image_tensor.hpp"
#include "data/files/rows.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/fixed_file.hpp"
#include "formats/image/image.hpp"

namespace hortator {

namespace data {

namespace {

namespace fs = std::filesystem;
using formats::FileError;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_image(const fs::path& path) {
  constexpr std::array<std::string_view, 3> endings = {".png", ".jpg", ".jpeg"};
  auto ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(endings, ending) != endings.end();
}

/// Directory iteration has no defined order.
std::vector<fs::path> sorted(std::vector<fs::path> paths) {
  std::ranges::sort(paths);
  return paths;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw FileError({.what = text::concat("There is no folder ", folder)});
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !is_hidden(entry.path())) folders.push_back(entry.path());
  }
  return sorted(std::move(folders));
}

std::vector<fs::path> images_below(const fs::path& folder) {
  std::vector<fs::path> images;
  for (auto entry = fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink);
       entry != fs::recursive_directory_iterator(); ++entry) {
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (is_image(entry->path()) && !entry->is_directory()) {
      images.push_back(entry->path());
    }
  }
  if (images.empty()) {
    throw FileError({.what = text::concat("the folder ", folder, " has no images"),
                     .why = "each folder is a class of its own",
                     .hint = "put files that end with .png, .jpg or .jpeg into it, or take it away"});
  }
  return sorted(std::move(images));
}

}  // namespace

struct ImageFiles {
  ImageFiles(const fs::path& folder, ImageFolderOptions asked) : root(folder), options(std::move(asked)) {
    require_channels(options.channels);
    for (const auto& inner : folders_in(folder)) {
      auto images = images_below(inner);
      labels.insert(labels.end(), images.size(), static_cast<std::int64_t>(classes.size()));
      std::ranges::move(images, std::back_inserter(paths));
      classes.push_back(inner.filename().string());
    }
    if (!classes.empty()) return;
    throw FileError(
        {.what = text::concat("the folder ", folder, " has no folders"), .why = "each is a class of images"});
  }

  at::Tensor read(const fs::path& path) const {
    const formats::FixedFile file(path);
    std::vector<std::uint8_t> bytes(file.bytes());
    file.read_at(0, bytes.data(), bytes.size());
    try {
      return image_tensor(bytes, options.channels);
    } catch (const formats::ImageFault& fault) {
      throw FileError({.what = text::concat("the image ", path, " cannot be read: ", fault.what())});
    }
  }

  fs::path root;
  ImageFolderOptions options;
  std::vector<std::string> classes = {};
  std::vector<fs::path> paths = {};
  std::vector<std::int64_t> labels = {};
};

}  // namespace data

ImageFolder::ImageFolder(const std::filesystem::path& folder, const ImageFolderOptions& options)
    : files_(std::make_shared<const data::ImageFiles>(folder, options)) {}

std::int64_t ImageFolder::size() const { return static_cast<std::int64_t>(files_->paths.size()); }
const std::vector<std::string>& ImageFolder::classes() const { return files_->classes; }

torch::data::Example<at::Tensor, std::int64_t> ImageFolder::get(std::int64_t sample) const {
  data::require_samples({&sample, 1}, size(), files_->root);
  const auto at = static_cast<std::size_t>(sample);
  const auto image = files_->read(files_->paths[at]);
  return {files_->options.transform ? files_->options.transform(image) : image, files_->labels[at]};
}

}  // namespace hortator
