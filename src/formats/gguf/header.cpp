#include "formats/gguf/header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include "core/text/text.hpp"
#include "formats/safetensors/strict_json.hpp"

namespace hortator::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

constexpr std::array gguf_types = {
    GgufType{"F32", 0, 1, 4},       GgufType{"F16", 1, 1, 2},    GgufType{"Q4_0", 2, 32, 18},
    GgufType{"Q4_1", 3, 32, 20},    GgufType{"Q8_0", 8, 32, 34}, GgufType{"Q4_K", 12, 256, 144},
    GgufType{"Q6_K", 14, 256, 210}, GgufType{"BF16", 30, 1, 2},
};

constexpr std::uint32_t gguf_magic = 0x46554747;  // "GGUF"
constexpr std::uint64_t default_alignment = 32;
constexpr std::uint64_t max_text_bytes = std::uint64_t{64} << 20;
constexpr std::uint32_t max_gguf_dimensions = 8;
constexpr int max_nested_lists = 4;

/// The codes of values in the metadata.
enum class ValueCode : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

std::uint64_t bytes_of(ValueCode code) {
  switch (code) {
    case ValueCode::u8:
    case ValueCode::i8:
    case ValueCode::boolean:
      return 1;
    case ValueCode::u16:
    case ValueCode::i16:
      return 2;
    case ValueCode::u32:
    case ValueCode::i32:
    case ValueCode::f32:
      return 4;
    case ValueCode::u64:
    case ValueCode::i64:
    case ValueCode::f64:
      return 8;
    default:
      throw GgufFault(text::concat("unknown type ", static_cast<std::uint32_t>(code), " of a value in the metadata"));
  }
}

/// Reads the file from front to back, in blocks.
class GgufCursor {
 public:
  GgufCursor(const GgufBytes& read, std::uint64_t file_bytes) : read_(read), file_bytes_(file_bytes) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return file_bytes_ - position_; }

  void require(std::uint64_t bytes, std::string_view what) const {
    if (bytes <= left()) return;
    throw GgufFault(text::concat("it ends within ", what, ": ", bytes, " bytes are expected at ", position_, ", and ",
                                 left(), " follow"));
  }

  template <typename Number>
  Number number(std::string_view what) {
    Number value{};
    bytes(&value, sizeof value, what);
    return value;
  }

  std::string text(std::string_view what) {
    const auto size = number<std::uint64_t>(what);
    if (size > max_text_bytes) throw GgufFault(text::concat(what, " has ", size, " bytes"));
    require(size, what);
    std::string value(size, '\0');
    bytes(value.data(), value.size(), what);
    return value;
  }

  void skip(std::uint64_t bytes, std::string_view what) {
    require(bytes, what);
    position_ += bytes;
  }

 private:
  void bytes(void* to, std::size_t size, std::string_view what) {
    require(size, what);
    auto* out = static_cast<std::byte*>(to);
    while (size > 0) {
      const auto part = std::min(size, available());
      std::memcpy(out, block_.data() + (position_ - block_begin_), part);
      out += part;
      size -= part;
      position_ += part;
    }
  }

  /// The number of bytes at the position that the block has. Reads the next block if there are none.
  std::size_t available() {
    const auto end = block_begin_ + block_bytes_;
    if (position_ < block_begin_ || position_ >= end) {
      block_begin_ = position_;
      block_bytes_ = static_cast<std::size_t>(std::min<std::uint64_t>(block_.size(), left()));
      read_(block_begin_, block_.data(), block_bytes_);
    }
    return static_cast<std::size_t>(block_begin_ + block_bytes_ - position_);
  }

  const GgufBytes& read_;
  std::uint64_t file_bytes_;
  std::uint64_t position_ = 0;
  std::uint64_t block_begin_ = 0;
  std::size_t block_bytes_ = 0;
  std::array<std::byte, 1 << 16> block_{};
};

constexpr std::string_view the_metadata = "the metadata";

GgufValue whole(std::int64_t value) {
  if (value < 0) return value;
  return static_cast<std::uint64_t>(value);
}

/// The value of a number's type, or of a flag.
GgufValue read_number(GgufCursor& from, ValueCode code) {
  switch (code) {
    case ValueCode::u8:
      return std::uint64_t{from.number<std::uint8_t>(the_metadata)};
    case ValueCode::i8:
      return whole(from.number<std::int8_t>(the_metadata));
    case ValueCode::u16:
      return std::uint64_t{from.number<std::uint16_t>(the_metadata)};
    case ValueCode::i16:
      return whole(from.number<std::int16_t>(the_metadata));
    case ValueCode::u32:
      return std::uint64_t{from.number<std::uint32_t>(the_metadata)};
    case ValueCode::i32:
      return whole(from.number<std::int32_t>(the_metadata));
    case ValueCode::f32:
      return double{from.number<float>(the_metadata)};
    case ValueCode::boolean:
      return from.number<std::uint8_t>(the_metadata) != 0;
    case ValueCode::u64:
      return from.number<std::uint64_t>(the_metadata);
    case ValueCode::i64:
      return whole(from.number<std::int64_t>(the_metadata));
    case ValueCode::f64:
      return from.number<double>(the_metadata);
    default:
      bytes_of(code);  // throws
      return {};
  }
}

double as_double(const GgufValue& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::get<bool>(value) ? 1 : 0;
}

/// Values other than texts and lists, all of one size.
void read_numbers(GgufCursor& from, ValueCode code, bool is_kept, GgufList& list) {
  const auto each = bytes_of(code);
  if (list.size > from.left() / each) throw GgufFault(text::concat("it ends within a list of ", list.size, " values"));
  if (!is_kept) return from.skip(list.size * each, the_metadata);
  for (std::uint64_t i = 0; i < list.size; ++i) list.numbers.push_back(as_double(read_number(from, code)));
}

GgufList read_list(GgufCursor& from, bool is_kept, int depth) {
  if (depth > max_nested_lists) throw GgufFault("lists in its metadata are nested too deeply");
  const auto code = static_cast<ValueCode>(from.number<std::uint32_t>(the_metadata));
  GgufList list{.size = from.number<std::uint64_t>(the_metadata)};
  if (code != ValueCode::text && code != ValueCode::list) {
    read_numbers(from, code, is_kept, list);
    return list;
  }
  for (std::uint64_t i = 0; i < list.size; ++i) {
    if (code == ValueCode::list) {
      read_list(from, false, depth + 1);
    } else if (is_kept) {
      list.texts.push_back(from.text(the_metadata));
    } else {
      from.skip(from.number<std::uint64_t>(the_metadata), the_metadata);
    }
  }
  return list;
}

GgufValue read_value(GgufCursor& from, bool keeps_list) {
  const auto code = static_cast<ValueCode>(from.number<std::uint32_t>(the_metadata));
  if (code == ValueCode::text) return from.text(the_metadata);
  if (code == ValueCode::list) return read_list(from, keeps_list, 0);
  return read_number(from, code);
}

std::map<std::string, GgufValue> read_metadata(GgufCursor& from, std::uint64_t count, const GgufLists& kept) {
  std::map<std::string, GgufValue> metadata;
  for (; count > 0; --count) {
    auto name = from.text("a name in the metadata");
    auto value = read_value(from, kept.contains(name));
    if (!metadata.emplace(std::move(name), std::move(value)).second) throw GgufFault("its metadata has one name twice");
  }
  return metadata;
}

std::string shown(const GgufTensor& tensor) { return text::concat("the tensor ", quoted_json(tensor.name)); }

const GgufType* gguf_type_of(std::uint32_t code) {
  const auto* const found = std::ranges::find(gguf_types, code, &GgufType::code);
  return found == gguf_types.end() ? nullptr : &*found;
}

/// The number of bytes of a tensor; 0 if its type is not known. Throws unless rows have whole blocks.
std::uint64_t byte_count(const GgufTensor& tensor) {
  std::int64_t elements = 1;
  for (const auto size : tensor.shape) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements))
      throw GgufFault(text::concat(shown(tensor), " has the impossible shape [", text::join(tensor.shape), "]"));
  }
  if (tensor.type == nullptr) return 0;
  const auto& type = *tensor.type;
  const auto row = tensor.shape.empty() ? 1 : tensor.shape.back();
  std::int64_t bytes = 0;
  if (row % type.block_elements != 0 ||
      __builtin_mul_overflow(elements / type.block_elements, type.block_bytes, &bytes)) {
    throw GgufFault(text::concat(shown(tensor), " has the shape [", text::join(tensor.shape), "], and ", type.name,
                                 " stores rows in blocks of ", type.block_elements));
  }
  return static_cast<std::uint64_t>(bytes);
}

GgufTensor read_tensor(GgufCursor& from) {
  GgufTensor tensor{.name = from.text("the name of a tensor")};
  const auto dimensions = from.number<std::uint32_t>("a shape");
  if (dimensions > max_gguf_dimensions)
    throw GgufFault(text::concat(shown(tensor), " has ", dimensions, " dimensions"));
  for (std::uint32_t i = 0; i < dimensions; ++i) tensor.shape.push_back(from.number<std::int64_t>("a shape"));
  std::ranges::reverse(tensor.shape);
  tensor.type_code = from.number<std::uint32_t>("the type of a tensor");
  tensor.type = gguf_type_of(tensor.type_code);
  tensor.offset = from.number<std::uint64_t>("the position of a tensor");
  return tensor;
}

std::uint64_t alignment_in(const std::map<std::string, GgufValue>& metadata) {
  const auto found = metadata.find("general.alignment");
  if (found == metadata.end()) return default_alignment;
  const auto* value = std::get_if<std::uint64_t>(&found->second);
  constexpr std::uint64_t largest = 1 << 20;
  if (value != nullptr && std::has_single_bit(*value) && *value <= largest) return *value;
  throw GgufFault("general.alignment is not a power of two");
}

/// Turns offsets within the data into offsets within the file, and checks that tensors lie side by side in it.
void place(std::vector<GgufTensor>& tensors, std::uint64_t data, std::uint64_t alignment, std::uint64_t file_bytes) {
  std::ranges::stable_sort(tensors, {}, &GgufTensor::offset);
  std::uint64_t end = 0;
  for (auto& tensor : tensors) {
    const auto bytes = byte_count(tensor);
    const bool is_placed = tensor.offset % alignment == 0 && tensor.offset >= end && data <= file_bytes &&
                           tensor.offset <= file_bytes - data && bytes <= file_bytes - data - tensor.offset;
    if (!is_placed) {
      throw GgufFault(text::concat(shown(tensor), " would have ", bytes, " bytes at ", tensor.offset,
                                   " of the data: not aligned, within another tensor, or behind the end of the file"));
    }
    end = tensor.offset + bytes;
    tensor.offset += data;
  }
}

void require_different_names(const std::vector<GgufTensor>& tensors) {
  std::set<std::string_view> names;
  for (const auto& tensor : tensors) {
    if (!names.insert(tensor.name).second) throw GgufFault(text::concat(shown(tensor), " is there twice"));
  }
}

}  // namespace

GgufHeader parse_gguf_header(const GgufBytes& read, std::uint64_t file_bytes, const GgufLists& kept) {
  GgufCursor from(read, file_bytes);
  if (file_bytes < 4 || from.number<std::uint32_t>("the magic") != gguf_magic)
    throw GgufFault("it does not begin with the letters GGUF");
  const auto version = from.number<std::uint32_t>("the version");
  if (version != 2 && version != 3)
    throw GgufFault(text::concat("it has version ", version, ", expected 2 or 3, little-endian"));
  const auto tensors = from.number<std::uint64_t>("the number of tensors");
  const auto values = from.number<std::uint64_t>("the number of values");
  GgufHeader header{.metadata = read_metadata(from, values, kept)};
  for (std::uint64_t i = 0; i < tensors; ++i) header.tensors.push_back(read_tensor(from));
  require_different_names(header.tensors);
  const auto alignment = alignment_in(header.metadata);
  const auto data = (from.position() + alignment - 1) / alignment * alignment;
  place(header.tensors, data, alignment, file_bytes);
  return header;
}

std::vector<std::string_view> gguf_type_names() {
  std::vector<std::string_view> names;
  for (const auto& type : gguf_types) names.push_back(type.name);
  return names;
}

}  // namespace hortator::formats
