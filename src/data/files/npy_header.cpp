#include "data/files/npy_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "core/text/text.hpp"

namespace hortator::data {
namespace {

struct NumpyType {
  std::string_view name;  ///< without its byte order
  at::ScalarType type;
};

constexpr std::array numpy_types = {
    NumpyType{"b1", at::kBool},         NumpyType{"u1", at::kByte},           NumpyType{"i1", at::kChar},
    NumpyType{"u2", at::kUInt16},       NumpyType{"i2", at::kShort},          NumpyType{"u4", at::kUInt32},
    NumpyType{"i4", at::kInt},          NumpyType{"u8", at::kUInt64},         NumpyType{"i8", at::kLong},
    NumpyType{"f2", at::kHalf},         NumpyType{"f4", at::kFloat},          NumpyType{"f8", at::kDouble},
    NumpyType{"c8", at::kComplexFloat}, NumpyType{"c16", at::kComplexDouble},
};

at::ScalarType type_of(std::string_view description) {
  const auto name = description.substr(std::min<std::size_t>(1, description.size()));
  const auto* known = std::ranges::find(numpy_types, name, &NumpyType::name);
  if (known == numpy_types.end())
    throw NpyFault(text::concat("its elements are ", text::quote(description), ", which no tensor has"));
  const bool in_our_order = description[0] == '<' || (description[0] == '|' && name.back() == '1');
  if (!in_our_order) throw NpyFault("its numbers are big-endian: save it again as little-endian");
  return known->type;
}

/// Reads a dictionary as Python prints it: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  formats::TensorSpec read() {
    std::optional<std::string_view> description;
    std::optional<bool> fortran_order;
    std::optional<std::vector<std::int64_t>> shape;
    expect('{');
    while (!take('}')) {
      const auto name = quoted();
      expect(':');
      if (name == "descr") {
        description = quoted();
      } else if (name == "fortran_order") {
        fortran_order = truth();
      } else if (name == "shape") {
        shape = sizes();
      } else {
        refuse();
      }
      if (take(',')) continue;
      expect('}');
      break;
    }
    if (!description || !fortran_order || !shape) refuse();
    if (*fortran_order && shape->size() > 1)
      throw NpyFault("its rows do not lie together (Fortran order): save numpy.ascontiguousarray() of it");
    return {.type = type_of(*description), .shape = std::move(*shape)};
  }

 private:
  [[noreturn]] static void refuse() { throw NpyFault("its header is damaged, or it holds records"); }

  bool take(char wanted) {
    const auto begin = std::min(text_.find_first_not_of(" \n", at_), text_.size());
    if (begin == text_.size() || text_[begin] != wanted) return false;
    at_ = begin + 1;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) refuse();
  }

  std::string_view quoted() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const auto end = text_.find(quote, at_);
    if (end == std::string_view::npos) refuse();
    const auto word = text_.substr(at_, end - at_);
    at_ = end + 1;
    return word;
  }

  bool truth() {
    for (const auto& [word, meaning] : {std::pair<std::string_view, bool>("True", true), {"False", false}}) {
      const auto begin = std::min(text_.find_first_not_of(' ', at_), text_.size());
      if (!text_.substr(begin).starts_with(word)) continue;
      at_ = begin + word.size();
      return meaning;
    }
    refuse();
  }

  std::vector<std::int64_t> sizes() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!take(')')) {
      const auto begin = std::min(text_.find_first_not_of(' ', at_), text_.size());
      const auto* end = text_.data() + text_.size();
      const auto result = std::from_chars(text_.data() + begin, end, sizes.emplace_back());
      if (result.ec != std::errc() || sizes.back() < 0) refuse();
      at_ = static_cast<std::size_t>(result.ptr - text_.data());
      take('L');  // Python 2 wrote it behind long numbers
      if (take(',')) continue;
      expect(')');
      break;
    }
    return sizes;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::uint64_t npy_data_offset(std::span<const std::uint8_t> beginning) {
  constexpr std::array<std::uint8_t, 6> magic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  constexpr std::uint64_t max_bytes = 1 << 20;
  constexpr std::size_t version_at = magic.size();
  constexpr std::size_t length_at = version_at + 2;
  if (beginning.size() < npy_beginning_bytes || !std::equal(magic.begin(), magic.end(), beginning.begin()))
    throw NpyFault("it does not begin as one");
  const auto version = beginning[version_at];
  if (version < 1 || version > 3) throw NpyFault(text::concat("its version is ", int{version}, ", known are 1 to 3"));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::uint64_t{beginning[length_at + i]} << (8 * i);
  if (length > max_bytes) throw NpyFault("its header is too long to be one");
  return length_at + length_bytes + length;
}

formats::TensorSpec parse_npy_header(std::string_view text) { return DictionaryReader(text).read(); }

}  // namespace hortator::data
