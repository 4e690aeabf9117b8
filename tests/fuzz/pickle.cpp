// Fuzzes the readers of torch.save files and of pickles: any bytes are accepted or rejected, without other effects.
#include <cstdint>
#include <cstring>

#include "formats/torch/pickle/archive.hpp"
#include "target.hpp"

using namespace hortator::formats;

namespace {

constexpr std::uint64_t storage_bytes = 64;

void require_within(const PickleValue& value) {
  if (const auto* tensor = std::get_if<PickledTensor>(&value.content)) {
    const auto element = static_cast<std::int64_t>(c10::elementSize(tensor->spec.type));
    if (tensor->reach() > 0 && (tensor->first + tensor->reach()) * element > static_cast<std::int64_t>(storage_bytes))
      __builtin_trap();
  }
  if (const auto* dict = std::get_if<PickleValue::Dict>(&value.content)) {
    for (const auto& [key, item] : *dict) require_within(item);
  }
}

}  // namespace

FUZZ_TARGET(pickle) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (bytes.starts_with("PK")) {
      PickleArchive({.bytes = size, .read_at = [&](std::uint64_t offset, void* to, std::size_t count) {
                       if (offset > size || count > size - offset) __builtin_trap();
                       std::memcpy(to, data + offset, count);
                     }});
    } else {
      require_within(parse_pickle(
          bytes, [](const std::string&) { return storage_bytes; }, ForeignObjects::kept));
    }
  } catch (const ZipFault&) {
  } catch (const PickleFault&) {
  }
  return 0;
}
