#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// The beginning of a GGUF file, the format of llama.cpp: metadata, and where the tensors are.
namespace hortator::formats {

/// An element type of the format. Elements are stored in blocks.
struct GgufType {
  std::string_view name;
  std::uint32_t code;           ///< in the file
  std::int64_t block_elements;  ///< 1 for plain numbers
  std::int64_t block_bytes;
};

/// A list in the metadata. The values of lists that the caller has named are kept, those of others are skipped.
struct GgufList {
  std::uint64_t size = 0;
  std::vector<std::string> texts = {};  ///< of a kept list of texts
  std::vector<double> numbers = {};     ///< of a kept list of numbers
};
/// The names of lists to keep.
using GgufLists = std::set<std::string, std::less<>>;

/// Whole numbers are `uint64_t` from 0 and `int64_t` below 0.
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufList>;

struct GgufTensor {
  std::string name = {};
  const GgufType* type = nullptr;        ///< null if it is not one that can be read
  std::uint32_t type_code = 0;           ///< in the file
  std::vector<std::int64_t> shape = {};  ///< in LibTorch's order: the last dimension is contiguous
  std::uint64_t offset = 0;              ///< of its first byte, in the file
};

struct GgufHeader {
  std::map<std::string, GgufValue> metadata = {};
  std::vector<GgufTensor> tensors = {};  ///< in the order of their bytes

  /// The metadata's value of that name; null if there is none, or one of another type.
  template <typename Value>
  const Value* find(const std::string& name) const {
    const auto found = metadata.find(name);
    return found == metadata.end() ? nullptr : std::get_if<Value>(&found->second);
  }
};

/// Why a file is not a valid GGUF file. The caller adds the name of the file.
class GgufFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads bytes of the file: offset, address, number.
using GgufBytes = std::function<void(std::uint64_t, void*, std::size_t)>;

/// Parses and checks the beginning of a file of `file_bytes` bytes: every tensor lies within the file, and none
/// overlaps another. Allocates no more than a small multiple of the bytes it has read. Throws GgufFault.
GgufHeader parse_gguf_header(const GgufBytes& read, std::uint64_t file_bytes, const GgufLists& kept = {});

/// The types that can be read.
std::vector<std::string_view> gguf_type_names();

}  // namespace hortator::formats
