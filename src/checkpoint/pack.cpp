#include "checkpoint/pack.hpp"

#include <array>
#include <bit>

#include "checkpoint/packed_bytes.hpp"

namespace hortator::checkpoint {
namespace {

void put(std::string& bytes, std::int64_t number) { put_plain(bytes, number); }
void put(std::string& bytes, double number) { put(bytes, std::bit_cast<std::int64_t>(number)); }
void put(std::string& bytes, const std::string& words) {
  put(bytes, static_cast<std::int64_t>(words.size()));
  bytes += words;
}
void put(std::string& bytes, const formats::TensorSpec& spec) {
  put(bytes, static_cast<std::int64_t>(spec.type));
  put(bytes, static_cast<std::int64_t>(spec.shape.size()));
  for (const auto size : spec.shape) put(bytes, size);
}

/// Takes from the front of bytes that another rank of this job packed: trusted.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.done(); }
  void take(std::int64_t& number) { number = take_number(); }
  void take(double& number) { number = std::bit_cast<double>(take_number()); }
  void take(std::string& words) { words = rest_.take_bytes(static_cast<std::size_t>(take_number())); }
  void take(formats::TensorSpec& spec) {
    spec.type = static_cast<at::ScalarType>(take_number());
    spec.shape.resize(static_cast<std::size_t>(take_number()));
    for (auto& size : spec.shape) take(size);
  }
  std::int64_t take_number() { return rest_.take_plain<std::int64_t>(); }

 private:
  PackedBytes rest_;
};

template <typename T>
decltype(Entry::content) take_as(Unpacker& from) {
  T content{};
  from.take(content);
  return content;
}

decltype(Entry::content) take_content(Unpacker& from) {
  constexpr std::array take = {&take_as<std::int64_t>, &take_as<double>, &take_as<std::string>,
                               &take_as<formats::TensorSpec>};
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
