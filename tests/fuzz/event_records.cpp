// Fuzzes what removes later steps from TensorBoard's files: any bytes are cut to records that stay when they are cut
// again.
#include <cstdint>
#include <string>
#include <string_view>

#include "observe/trackers/event_cut.hpp"
#include "target.hpp"

using namespace hortator;

FUZZ_TARGET(event_records) {
  if (size == 0) return 0;
  const std::string_view records(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto kept = observe::without_later(records, data[0]);
  if (kept.size() > records.size() || observe::without_later(kept, data[0]) != kept) __builtin_trap();
  return 0;
}
