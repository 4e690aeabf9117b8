#include "checkpoint/write/record.hpp"

#include <cstring>

#include "checkpoint/packed_bytes.hpp"
#include "core/checksum/crc32c.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {
namespace {

template <typename T>
void put_all(std::string& bytes, const std::vector<T>& values) {
  put_plain(bytes, static_cast<std::uint64_t>(values.size()));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <typename T>
std::vector<T> take_all(PackedBytes& from) {
  std::vector<T> values(from.take_plain<std::uint64_t>());
  const auto bytes = from.take_bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

std::string pack(const Record& record) {
  std::string bytes;
  put_all(bytes, record.blocks);
  put_plain(bytes, static_cast<std::uint8_t>(record.file.has_value()));
  if (record.file) {
    put_plain(bytes, record.file->bytes);
    put_plain(bytes, record.file->structure);
    put_all(bytes, record.file->offsets);
  }
  put_plain(bytes, core::crc32c(bytes.data(), bytes.size()));
  return bytes;
}

std::optional<Record> unpack_record(std::string_view bytes) {
  std::uint32_t checksum = 0;
  if (bytes.size() < sizeof checksum) return {};
  std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
  bytes.remove_suffix(sizeof checksum);
  if (core::crc32c(bytes.data(), bytes.size()) != checksum) return {};
  PackedBytes from(bytes);
  Record record = {.blocks = take_all<std::uint32_t>(from)};
  if (from.take_plain<std::uint8_t>() == 0) return record;
  auto& file = record.file.emplace(decltype(record.file)::value_type{});
  file.bytes = from.take_plain<std::int64_t>();
  file.structure = from.take_plain<std::uint32_t>();
  file.offsets = take_all<std::int64_t>(from);
  return record;
}

std::vector<Record> gather(const mpi::Communicator& comm, const Record& mine) {
  std::vector<Record> records;
  for (const auto& one : mpi::gather(comm, pack(mine))) records.push_back(*unpack_record(one));
  return records;
}

}  // namespace hortator::checkpoint
