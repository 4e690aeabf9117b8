#include "checkpoint/pack.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace hortator::checkpoint {
namespace {

void put(std::string& bytes, std::int64_t number) {
  char raw[sizeof(number)];
  std::memcpy(raw, &number, sizeof(number));
  bytes.append(raw, sizeof(number));
}
void put(std::string& bytes, double number) { put(bytes, std::bit_cast<std::int64_t>(number)); }
void put(std::string& bytes, const std::string& words) {
  put(bytes, static_cast<std::int64_t>(words.size()));
  bytes += words;
}
void put(std::string& bytes, const io::TensorSpec& spec) {
  put(bytes, static_cast<std::int64_t>(spec.type));
  put(bytes, static_cast<std::int64_t>(spec.shape.size()));
  for (const auto size : spec.shape) put(bytes, size);
}

/// Takes from the front of bytes that another rank of this job packed: trusted.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  void take(std::int64_t& number) { std::memcpy(&number, take_bytes(sizeof(number)).data(), sizeof(number)); }
  void take(double& number) { number = std::bit_cast<double>(take_number()); }
  void take(std::string& words) { words = take_bytes(static_cast<std::size_t>(take_number())); }
  void take(io::TensorSpec& spec) {
    spec.type = static_cast<at::ScalarType>(take_number());
    spec.shape.resize(static_cast<std::size_t>(take_number()));
    for (auto& size : spec.shape) take(size);
  }
  std::int64_t take_number() {
    std::int64_t number = 0;
    take(number);
    return number;
  }

 private:
  std::string_view take_bytes(std::size_t count) {
    const auto front = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return front;
  }

  std::string_view rest_;
};

template <typename T>
decltype(Entry::content) take_as(Unpacker& from) {
  T content{};
  from.take(content);
  return content;
}

decltype(Entry::content) take_content(Unpacker& from) {
  constexpr std::array take = {&take_as<std::int64_t>, &take_as<double>, &take_as<std::string>,
                               &take_as<io::TensorSpec>};
  return take[static_cast<std::size_t>(from.take_number())](from);
}

}  // namespace

std::string pack(const Outline& outline) {
  std::string bytes;
  for (const auto& [name, content] : outline) {
    put(bytes, name);
    put(bytes, static_cast<std::int64_t>(content.index()));
    std::visit([&](const auto& plain) { put(bytes, plain); }, content);
  }
  return bytes;
}

Outline unpack(std::string_view bytes) {
  Outline outline;
  for (Unpacker from(bytes); !from.done();) {
    Entry entry;
    from.take(entry.name);
    entry.content = take_content(from);
    outline.push_back(std::move(entry));
  }
  return outline;
}

}  // namespace hortator::checkpoint
