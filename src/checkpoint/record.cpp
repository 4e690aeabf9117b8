#include "checkpoint/record.hpp"

#include <cstring>

#include "base/crc32c.hpp"

namespace hortator::checkpoint {
namespace {

template <typename T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
void put(std::string& bytes, const std::vector<T>& values) {
  put(bytes, static_cast<std::uint64_t>(values.size()));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// Takes from the front of bytes whose checksum was right.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T take() {
    T value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  template <typename T>
  std::vector<T> take_all() {
    std::vector<T> values(take<std::uint64_t>());
    const auto bytes = take(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  std::string_view take(std::size_t count) {
    const auto front = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return front;
  }

  std::string_view rest_;
};

}  // namespace

std::string pack(const Record& record) {
  std::string bytes;
  put(bytes, record.blocks);
  put(bytes, static_cast<std::uint8_t>(record.file.has_value()));
  if (record.file) {
    put(bytes, record.file->bytes);
    put(bytes, record.file->structure);
    put(bytes, record.file->offsets);
  }
  put(bytes, base::crc32c(bytes.data(), bytes.size()));
  return bytes;
}

std::optional<Record> unpack_record(std::string_view bytes) {
  std::uint32_t checksum = 0;
  if (bytes.size() < sizeof checksum) return {};
  std::memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
  bytes.remove_suffix(sizeof checksum);
  if (base::crc32c(bytes.data(), bytes.size()) != checksum) return {};
  Unpacker from(bytes);
  Record record = {.blocks = from.take_all<std::uint32_t>()};
  if (from.take<std::uint8_t>() == 0) return record;
  auto& file = record.file.emplace();
  file.bytes = from.take<std::int64_t>();
  file.structure = from.take<std::uint32_t>();
  file.offsets = from.take_all<std::int64_t>();
  return record;
}

}  // namespace hortator::checkpoint
