#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "formats/torch/pickle/plan.hpp"

/// The parts of a torch.save file, for its writers.
namespace hortator::formats {

/// Writes the opcodes of protocol 2 that torch.save uses.
class Pickler {
 public:
  const std::string& bytes() const { return bytes_; }

  void code(char c) { bytes_ += c; }
  void text(std::string_view text) {
    code('X');
    number(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  void integer(std::int64_t value) {
    if (value >= 0 && value <= 0xff) {
      code('K');
      number(static_cast<std::uint8_t>(value));
    } else if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
      code('J');
      number(static_cast<std::int32_t>(value));
    } else {
      code('\x8a');
      number(std::uint8_t{sizeof value});
      number(value);
    }
  }
  void integers(const std::vector<std::int64_t>& values) {
    code('(');
    for (const auto value : values) integer(value);
    code('t');
  }
  /// A class or function with its module: "torch._utils._rebuild_tensor_v2".
  void named(std::string_view name) {
    const auto point = name.rfind('.');
    code('c');
    bytes_ += name.substr(0, point);
    bytes_ += '\n';
    bytes_ += name.substr(point + 1);
    bytes_ += '\n';
  }
  void real(double value) {  // the only number with the highest byte first
    const auto bits = std::bit_cast<std::uint64_t>(value);
    code('G');
    for (int shift = 56; shift >= 0; shift -= 8) bytes_ += static_cast<char>(bits >> shift & 0xff);
  }
  void empty_ordered_dict() {
    named("collections.OrderedDict");
    code(')');
    code('R');
  }

 private:
  template <typename Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::string bytes_;
};

/// Puts a planned tensor into a pickle.
void put_tensor(Pickler& out, const PickledTensor& tensor, const PicklePlan::Storage& storage);

/// Returns storage number `storage` in row-major order; called once for each, when it is written.
using StorageSource = std::function<at::Tensor(std::size_t storage)>;

/// Writes the archive of a pickle and its storages, under another name that is then replaced by `path`.
void write_pickle_archive(const std::filesystem::path& path, const std::string& pickle, std::size_t storages,
                          const StorageSource& source, const WriteProgress& advance);

}  // namespace hortator::formats
