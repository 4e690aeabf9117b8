#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "formats/torch/pickle/value.hpp"

namespace hortator::formats {

/// Why bytes are no pickle that this reader takes.
class PickleFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a pickle may name besides tensors, containers, numbers and texts.
enum class ForeignObjects {
  refused,  ///< an error names the first
  kept,     ///< as PickleValue::Foreign, unmade
};

/// The bytes of the storage of that name; nothing where there is none.
using StorageBytes = std::function<std::optional<std::uint64_t>(const std::string& name)>;

/// What a pickle of protocol 2 says, as torch.save writes it. Nothing is executed: a class is a name, and those that
/// make tensors and containers are known by theirs. The work and the memory that it takes are bounded by a multiple of
/// its length, whatever it says. PickleFault, naming the class or the place, for all else.
PickleValue parse_pickle(std::string_view words, const StorageBytes& storages, ForeignObjects foreign);

}  // namespace hortator::formats
