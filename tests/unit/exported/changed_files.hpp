#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "formats/file/fixed_file.hpp"
#include "formats/torch/zip/records.hpp"
#include "formats/torch/zip/writer.hpp"
#include "stored_models.hpp"
#include "support/files.hpp"

namespace stored_models {

inline const auto* const graph_record = "models/model.json";

inline std::optional<std::string> replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the record does not have " + from);
  return text.replace(at, from.size(), to);
}

/// The contents of a record of a copy, from its name and its contents; nothing if the copy does not have it.
using Change = std::function<std::optional<std::string>(const std::string& name, std::string data)>;

inline hortator::test::OwnFolder& scratch() {
  static hortator::test::OwnFolder folder("exported");
  std::filesystem::create_directories(folder.path);
  return folder;
}

inline std::filesystem::path copied(const std::string& model, const Change& change) {
  const hortator::formats::FixedFile file(stored_models::file(model));
  const auto read_at = [&](std::uint64_t offset, void* data, std::size_t bytes) { file.read_at(offset, data, bytes); };
  const hortator::formats::ZipRecords records({.bytes = file.bytes(), .read_at = read_at});
  const auto path = scratch().path / "changed.pt2";
  std::filesystem::remove(path);
  const auto out = hortator::formats::RawFile::create(path);
  hortator::formats::ZipWriter writer(out);
  for (const auto& name : records.names()) {
    const auto* found = records.find(name);
    std::string data(found->bytes, '\0');
    file.read_at(found->offset, data.data(), data.size());
    if (const auto changed = change(name, std::move(data))) writer.add(name, *changed);
  }
  writer.finish();
  return path;
}

/// A copy of a stored model in which a text of one record, such as "models/model.json", is another.
inline std::filesystem::path changed(const std::string& model, const std::string& record, const std::string& from,
                                     const std::string& to) {
  return copied(model, [&](const std::string& name, std::string data) {
    return name.ends_with(record) ? replaced(std::move(data), from, to) : std::optional(std::move(data));
  });
}

}  // namespace stored_models
