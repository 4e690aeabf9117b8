#include "formats/torch/pickle/archive.hpp"

#include <algorithm>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

constexpr std::uint64_t max_pickle_bytes = std::uint64_t{1} << 26;

/// torch.save puts all records into one folder of the archive, of any name.
std::string folder_of(const ZipRecords& records) {
  if (records.names().empty()) throw PickleFault("its archive is empty");
  const auto& first = records.names().front();
  return first.substr(0, first.find('/') + 1);
}

std::string read_record(const ByteSource& bytes, const ZipRecord& record) {
  std::string contents(record.bytes, '\0');
  bytes.read_at(record.offset, contents.data(), contents.size());
  return contents;
}

void require_little_endian(const ByteSource& bytes, const ZipRecord* order) {
  if (order == nullptr) return;
  constexpr std::uint64_t max_bytes = 16;
  const auto name = read_record(bytes, {.offset = order->offset, .bytes = std::min(order->bytes, max_bytes)});
  if (name != "little") throw PickleFault(text::concat("its numbers are in the byte order ", text::quote(name)));
}

}  // namespace

PickleArchive::PickleArchive(const ByteSource& bytes, ForeignObjects foreign)
    : records_(bytes), folder_(folder_of(records_)) {
  if (records_.contains(folder_ + "constants.pkl"))
    throw PickleFault("it holds a TorchScript module, not a state dict");
  const auto* pickle = records_.find(folder_ + "data.pkl");
  if (pickle == nullptr) throw PickleFault(text::concat("its archive has no record ", folder_, "data.pkl"));
  if (pickle->bytes > max_pickle_bytes) throw PickleFault(text::concat("its pickle has ", pickle->bytes, " bytes"));
  require_little_endian(bytes, records_.find(folder_ + "byteorder"));
  const auto bytes_of_storage = [this](const std::string& name) {
    const auto* record = find_storage(name);
    return record != nullptr ? std::optional(record->bytes) : std::nullopt;
  };
  value_ = parse_pickle(read_record(bytes, *pickle), bytes_of_storage, foreign);
}

}  // namespace hortator::formats
