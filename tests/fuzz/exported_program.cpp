// Fuzzes the reader of exported programs: any archive or description of a graph is refused, or its operators are found
// and its tensors read. Nothing is run.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "exported/file/fault.hpp"
#include "exported/graph/reader.hpp"
#include "exported/run/runner.hpp"
#include "exported/stored_model.hpp"
#include "target.hpp"

using namespace hortator;

namespace {

void use(const exported::Program& program) {
  const exported::GraphRunner runner(program.graph);
  if (runner.inputs() != program.inputs.size() || runner.outputs() != program.outputs.size()) __builtin_trap();
  exported::Symbols symbols;
  for (const auto& input : program.inputs) {
    if (!input.shape) continue;
    for (const auto& size : input.shape->sizes) {
      size.unify(6, symbols);
      size.to_string();
    }
  }
}

void use(const exported::Archive& archive) {
  for (const auto& name : archive.programs()) {
    const auto stored = exported::read_stored_program(archive, name);
    exported::PayloadReader reader(archive);
    for (const auto& payloads : {stored.weights, stored.constants}) {
      for (const auto& [key, payload] : payloads) reader.read(payload).sizes();
    }
    use(stored.program);
  }
}

}  // namespace

FUZZ_TARGET(exported_program) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (bytes.starts_with("PK")) {
      use(exported::Archive({.bytes = size, .read_at = [&](std::uint64_t offset, void* to, std::size_t count) {
                               if (offset > size || count > size - offset) __builtin_trap();
                               std::memcpy(to, data + offset, count);
                             }}));
    } else {
      use(exported::parse_program(bytes));
    }
  } catch (const exported::ExportFault&) {
  } catch (const formats::ZipFault&) {
  }
  return 0;
}
