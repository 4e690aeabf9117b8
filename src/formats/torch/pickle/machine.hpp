#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "formats/torch/pickle/value.hpp"

namespace hortator::formats {

/// Why bytes are not a pickle that this reader accepts.
class PickleFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What to do with objects other than tensors, containers, numbers and strings.
enum class ForeignObjects {
  refused,  ///< throw, naming the first class
  kept,     ///< keep their class names and arguments as PickleValue::Foreign
};

/// Returns the size of the storage of that name in bytes; nothing if there is none.
using StorageBytes = std::function<std::optional<std::uint64_t>(const std::string& name)>;

/// Parses a pickle of protocol 2, as torch.save writes it, or of 3 to 5. Nothing is executed: classes are only names,
/// and the classes of tensors and containers are known by theirs. Time and memory are bounded by a multiple of its
/// length. Throws PickleFault, with the class or the offset, for everything else.
PickleValue parse_pickle(std::string_view pickle, const StorageBytes& storages, ForeignObjects foreign);

}  // namespace hortator::formats
