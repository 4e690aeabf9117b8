#include "formats/torch/zip/writer.hpp"

#include "core/checksum/crc.hpp"
#include "formats/torch/zip/format.hpp"

namespace hortator::formats {
namespace {

constexpr std::uint64_t data_alignment = 64;
constexpr std::size_t field_head_bytes = 4;
constexpr std::uint16_t no_flags = 0;
constexpr std::uint16_t not_compressed = 0;
constexpr std::uint32_t first_of_1980 =
    0x00210000;  // a fixed time, the earliest there is, so that archives of equal states are equal

/// A local header has two extra fields: the sizes, and padding that aligns the data.
constexpr std::size_t sizes_field_bytes = field_head_bytes + 16;

std::uint64_t data_after(std::uint64_t header, std::size_t name_bytes) {
  const auto min = header + zip::local_header_bytes + name_bytes + sizes_field_bytes + field_head_bytes;
  return (min + data_alignment - 1) / data_alignment * data_alignment;
}

}  // namespace

void ZipWriter::begin(const std::string& name) {
  const auto data = data_after(at_, name.size());
  records_.push_back({.name = name, .header = at_, .data = data});
  at_ = data;
}

void ZipWriter::append(const void* data, std::size_t bytes) {
  auto& record = records_.back();
  record.checksum = core::crc32(data, bytes, record.checksum);
  record.bytes += bytes;
  file_.write_at(static_cast<std::int64_t>(at_), data, bytes);
  file_.start_writing(static_cast<std::int64_t>(at_), bytes);
  at_ += bytes;
}

// The header is written last, since it has the checksum.
void ZipWriter::end() {
  using namespace zip;
  const auto& record = records_.back();
  const auto padding_bytes = record.data - record.header - local_header_bytes - record.name.size() - sizes_field_bytes;
  Builder header;
  header.u32(local_header)
      .u16(version_with_64_bits)
      .u16(no_flags)
      .u16(not_compressed)
      .u32(first_of_1980)
      .u32(record.checksum);
  header.u32(in_64_bits).u32(in_64_bits);
  header.u16(static_cast<std::uint16_t>(record.name.size()));
  header.u16(static_cast<std::uint16_t>(sizes_field_bytes + padding_bytes)).bytes(record.name);
  header.u16(sizes_of_64_bits).u16(16).u64(record.bytes).u64(record.bytes);
  header.u16(padding).u16(static_cast<std::uint16_t>(padding_bytes - field_head_bytes));
  header.bytes(std::string(padding_bytes - field_head_bytes, 'Z'));
  file_.write_at(static_cast<std::int64_t>(record.header), header.built().data(), header.built().size());
}

void ZipWriter::add(const std::string& name, std::string_view data) {
  begin(name);
  append(data.data(), data.size());
  end();
}

void ZipWriter::write(std::string_view bytes) {
  file_.write_at(static_cast<std::int64_t>(at_), bytes.data(), bytes.size());
  at_ += bytes.size();
}

void ZipWriter::finish() {
  using namespace zip;
  const auto directory = at_;
  Builder entries;
  for (const auto& record : records_) {
    entries.u32(directory_entry).u16(version_with_64_bits).u16(version_with_64_bits).u16(no_flags).u16(not_compressed);
    entries.u32(first_of_1980).u32(record.checksum).u32(in_64_bits).u32(in_64_bits);
    entries.u16(static_cast<std::uint16_t>(record.name.size())).u16(field_head_bytes + 24).u16(0);
    entries.u16(0).u16(0).u32(0).u32(in_64_bits).bytes(record.name);
    entries.u16(sizes_of_64_bits).u16(24).u64(record.bytes).u64(record.bytes).u64(record.header);
  }
  write(entries.built());
  const auto end = at_;
  const auto count = static_cast<std::uint64_t>(records_.size());
  const auto bytes = end - directory;
  Builder closing;
  closing.u32(directory_end_64).u64(directory_end_64_bytes - 12).u16(version_with_64_bits).u16(version_with_64_bits);
  closing.u32(0).u32(0).u64(count).u64(count).u64(bytes).u64(directory);
  closing.u32(directory_locator_64).u32(0).u64(end).u32(1);
  closing.u32(directory_end).u16(0).u16(0).u16(0xffff).u16(0xffff).u32(in_64_bits).u32(in_64_bits).u16(0);
  write(closing.built());
}

}  // namespace hortator::formats
