#include "checkpoint/structure.hpp"

#include "checkpoint/format.hpp"
#include "io/hdf5_attribute.hpp"
#include "io/hdf5_dataset.hpp"
#include "io/hdf5_file.hpp"
#include "io/hdf5_group.hpp"
#include "io/memory_file.hpp"

namespace hortator::checkpoint {
namespace {

void write_value(const io::File& file, const std::string& entry, const io::SmallValue& value) {
  const auto [folder, name] = io::place_of(entry);
  io::write_attribute(io::make_group(file, folder).get(), name, value);
}

Offsets write_entries(const io::File& file, const std::string& prefix, const Outline& outline) {
  Offsets offsets;
  for (const auto& [name, content] : outline) {
    const auto path = prefix.empty() ? name : prefix + "/" + name;
    if (const auto* spec = std::get_if<io::TensorSpec>(&content)) {
      offsets.push_back(io::create_dataset(file, path, *spec).offset);
    } else if (const auto* words = std::get_if<std::string>(&content)) {
      write_value(file, path, *words);
    } else if (const auto* number = std::get_if<double>(&content)) {
      write_value(file, path, *number);
    } else {
      write_value(file, path, std::get<std::int64_t>(content));
    }
  }
  return offsets;
}

}  // namespace

Structure write_structure(const std::filesystem::path& path, const Outline& common, const std::vector<Outline>& own) {
  io::MemoryFile memory;
  auto file = io::create_file(memory);
  write_value(file, format_attribute, format_version);
  write_value(file, world_size_attribute, static_cast<std::int64_t>(own.size()));
  Structure structure = {.common = write_entries(file, "", common)};
  for (std::size_t rank = 0; rank < own.size(); ++rank) {
    structure.own.push_back(write_entries(file, rank_folder(static_cast<int>(rank)), own[rank]));
  }
  file.close("write a checkpoint's structure");
  memory.copy_to(path);
  return structure;
}

}  // namespace hortator::checkpoint
