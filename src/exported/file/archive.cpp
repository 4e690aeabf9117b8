#include "exported/file/archive.hpp"

#include <string_view>
#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"

namespace hortator::exported {
namespace {

constexpr std::uint64_t max_text_bytes = std::uint64_t{1} << 28;
constexpr std::string_view models = "models/", json = ".json";

std::string first_folder(const formats::ZipRecords& records) {
  if (records.names().empty()) throw ExportFault("its archive is empty");
  const auto& first = records.names().front();
  return first.substr(0, first.find('/') + 1);
}

}  // namespace

Archive::Archive(formats::ByteSource bytes)
    : bytes_(std::move(bytes)), records_(bytes_), folder_(first_folder(records_)) {
  if (!contains("archive_format")) {
    throw ExportFault("it has no record 'archive_format'",
                      contains("constants.pkl")
                          ? "it holds a TorchScript module: export the model with torch.export.save"
                          : "write it with torch.export.save of PyTorch 2.9 or newer");
  }
  if (const auto format = text("archive_format"); format != "pt2")
    throw ExportFault(text::concat("its format is ", text::quote(format.substr(0, 16)), ", not 'pt2'"));
  if (const auto version = text("archive_version"); version != "0")
    throw ExportFault(text::concat("its archive has version ", text::quote(version.substr(0, 16))),
                      "this release reads version 0");
  if (contains("byteorder") && text("byteorder") != "little")
    throw ExportFault("its numbers are not in the byte order 'little'", "export the model on such a machine");
  for (const auto& name : records_.names()) {
    std::string_view record(name);
    if (!record.starts_with(folder_)) continue;
    record.remove_prefix(folder_.size());
    if (!record.starts_with(models) || !record.ends_with(json) || record.size() <= models.size() + json.size())
      continue;
    programs_.emplace_back(record.substr(models.size(), record.size() - models.size() - json.size()));
  }
  if (programs_.empty()) {
    throw ExportFault("it holds no exported program",
                      "packages of AOTInductor cannot be trained: write the file with torch.export.save");
  }
}

std::vector<std::string> Archive::records() const {
  std::vector<std::string> records;
  for (const auto& name : records_.names()) {
    if (name.starts_with(folder_)) records.push_back(name.substr(folder_.size()));
  }
  return records;
}

const formats::ZipRecord& Archive::find(const std::string& record) const {
  const auto* found = records_.find(folder_ + record);
  if (found == nullptr) throw ExportFault(text::concat("its record ", text::quote(record), " is missing"));
  return *found;
}

std::uint64_t Archive::size(const std::string& record) const { return find(record).bytes; }

std::string Archive::text(const std::string& record) const {
  const auto bytes = size(record);
  if (bytes > max_text_bytes)
    throw ExportFault(text::concat("its record ", text::quote(record), " has ", bytes, " bytes"));
  std::string contents(bytes, '\0');
  read(record, 0, contents.data(), contents.size());
  return contents;
}

void Archive::read(const std::string& record, std::uint64_t offset, void* to, std::size_t bytes) const {
  const auto& found = find(record);
  if (offset > found.bytes || bytes > found.bytes - offset)
    throw ExportFault(text::concat("its record ", text::quote(record), " is too short"));
  bytes_.read_at(found.offset + offset, to, bytes);
}

}  // namespace hortator::exported
