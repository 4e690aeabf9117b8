#include "checkpoint/write/rank_report.hpp"

#include <cstring>

#include "checkpoint/packed_bytes.hpp"
#include "core/checksum/crc32c.hpp"
#include "mpi/collectives.hpp"

namespace hortator::checkpoint {

std::string pack(const RankReport& report) {
  std::string bytes;
  put(bytes, report.blocks);
  put(bytes, static_cast<std::uint8_t>(report.file.has_value()));
  if (report.file) {
    put(bytes, report.file->bytes);
    put(bytes, report.file->structure_crc32c);
    put(bytes, report.file->offsets);
  }
  put(bytes, core::crc32c(bytes.data(), bytes.size()));
  return bytes;
}

std::optional<RankReport> unpack_report(std::string_view bytes) {
  std::uint32_t checksum = 0;
  if (bytes.size() < sizeof checksum) return {};
  std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
  bytes.remove_suffix(sizeof checksum);
  if (core::crc32c(bytes.data(), bytes.size()) != checksum) return {};
  PackedBytes from(bytes);
  RankReport report;
  from.take(report.blocks);
  if (from.take<std::uint8_t>() == 0) return report;
  auto& file = report.file.emplace(RankReport::File{});
  from.take(file.bytes);
  from.take(file.structure_crc32c);
  from.take(file.offsets);
  return report;
}

std::vector<RankReport> gather(const mpi::Communicator& comm, const RankReport& mine) {
  std::vector<RankReport> reports;
  for (const auto& report : mpi::gather(comm, pack(mine))) reports.push_back(*unpack_report(report));
  return reports;
}

}  // namespace hortator::checkpoint
