#include "checkpoint/contents.hpp"

#include "base/text.hpp"
#include "checkpoint/format.hpp"
#include "io/file_error.hpp"
#include "io/hdf5_attribute.hpp"
#include "io/hdf5_file.hpp"
#include "io/hdf5_group.hpp"

namespace hortator::checkpoint {
namespace {

// A file that is not ours may have a group in itself.
constexpr int most_folders = 64;

/// Walks the groups from the root down.
class Walk {
 public:
  Walk(std::uint64_t file_bytes, Contents& contents) : file_bytes_(file_bytes), contents_(contents) {}

  void group(const io::Group& group, const std::string& prefix, int depth) {
    if (depth > most_folders) throw io::FileError({.what = "its folders are too deep at " + text::quote(prefix)});
    values(group, prefix);
    for (const auto& name : io::children(group)) child(group, prefix, name, depth);
  }

 private:
  void values(const io::Group& group, const std::string& prefix) {
    for (const auto& name : io::attribute_names(group.get())) {
      if (prefix.empty() && name.starts_with(own_prefix)) continue;
      std::visit([&](const auto& value) { contents_.values.put(prefix + name, value); },
                 io::read_attribute(group.get(), name));
    }
  }

  void child(const io::Group& parent, const std::string& prefix, const std::string& name, int depth) {
    const auto path = prefix + name;
    auto object = io::open_object(parent, name);
    if (auto* inner = std::get_if<io::Group>(&object)) return group(*inner, path + "/", depth + 1);
    contents_.tensors.emplace(path, io::inspect_dataset(std::get<io::Dataset>(object), path, file_bytes_));
  }

  std::uint64_t file_bytes_;
  Contents& contents_;
};

std::int64_t own_number(const io::Group& root, const char* name) {
  if (io::has_attribute(root.get(), name)) {
    const auto value = io::read_attribute(root.get(), name);
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  }
  throw io::FileError({.what = text::concat("it has no number ", text::quote(name)),
                       .why = "every checkpoint of Hortator has",
                       .hint = "is it another program's file?"});
}

void require_known_format(const io::Group& root) {
  const auto version = own_number(root, format_attribute);
  if (version == format_version) return;
  throw io::FileError({.what = text::concat("it has format ", version),
                       .why = text::concat("this Hortator reads format ", format_version),
                       .hint = "use the version of Hortator that wrote it"});
}

Contents read(const std::filesystem::path& path) {
  const io::Hdf5Lock lock;
  const auto file = io::open_file(path);
  const auto root = io::root_group(file);
  require_known_format(root);
  Contents contents = {.world_size = own_number(root, world_size_attribute)};
  Walk(std::filesystem::file_size(path), contents).group(root, "", 0);
  return contents;
}

}  // namespace

Contents read_contents(const std::filesystem::path& path) {
  try {
    return read(path);
  } catch (const std::exception& error) {
    throw io::FileError({.what = text::concat("the checkpoint ", path, " cannot be read: ", error.what())});
  }
}

}  // namespace hortator::checkpoint
