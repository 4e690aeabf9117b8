#include "text.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>
#include <hortator/error.hpp>
#include <iterator>
#include <string>

namespace gpt {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block_bytes = 4096;
constexpr std::size_t held_out_each = 10;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw hortator::Error({.what = "Cannot read the text '" + file.string() + "'"});
  return content;
}

// Programs, images and archives contain zero bytes; text does not.
bool is_text(const std::string& content) { return content.find('\0') == std::string::npos; }

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file()) {
      files.push_back(entry->path());
    }
  }
  std::ranges::sort(files);  // the order of a directory's entries is unspecified
  return files;
}

at::Tensor to_tensor(const std::string& bytes) {
  return at::from_blob(const_cast<char*>(bytes.data()), {static_cast<std::int64_t>(bytes.size())}, at::kByte).clone();
}

}  // namespace

Text Text::read(const std::vector<fs::path>& paths) {
  std::string all;
  std::size_t count = 0;
  for (const auto& path : paths) {
    if (!fs::exists(path))
      throw hortator::UsageError(
          {.what = "--text: '" + path.string() + "' does not exist", .hint = "name files or folders with --text"});
    for (const auto& file : fs::is_directory(path) ? files_below(path) : std::vector{path}) {
      auto content = content_of(file);
      if (!is_text(content)) continue;
      all += content;
      ++count;
    }
  }
  std::string training, held_out;
  for (std::size_t block = 0; block * block_bytes < all.size(); ++block) {
    (block % held_out_each == held_out_each - 1 ? held_out : training) +=
        std::string_view(all).substr(block * block_bytes, block_bytes);
  }
  return {.training = to_tensor(training), .held_out = to_tensor(held_out), .files = count};
}

std::vector<fs::path> own_sources() {
  auto root = fs::read_symlink("/proc/self/exe").parent_path();
  while (!fs::exists(root / "src/CMakeLists.txt") || !fs::exists(root / "include/hortator")) {
    if (!root.has_relative_path()) return {};
    root = root.parent_path();
  }
  std::vector<fs::path> sources;
  for (const auto* name : {"README.md", "INSTALL", "include", "src", "share", "tests/unit"}) {
    if (fs::exists(root / name)) sources.push_back(root / name);
  }
  return sources;
}

}  // namespace gpt
