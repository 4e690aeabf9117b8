#include <torch/version.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "machine/device/graph.hpp"
#include "machine/device/kind_memory.hpp"
#include "machine/device/stream.hpp"

namespace hortator::machine {
namespace {

[[noreturn]] void refuse(int index) {
  const auto& kind = known_kinds().front();
  throw UsageError({.what = text::concat("There is no ", kind.title, " device ", index),
                    .why = text::concat("this Hortator was built without ", kind.title),
                    .hint = text::concat("use the CPU, or build with ", kind.build_option, "=ON")});
}

}  // namespace

const DeviceKind* accelerator_kind() { return nullptr; }

DeviceIdentity identify(c10::Device device) { refuse(device.index()); }

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 10
std::size_t free_memory(c10::Device device) { refuse(device.index()); }
#endif

c10::Stream stream_of_native(void* /*native*/, c10::Device device) { refuse(device.index()); }

std::shared_ptr<void> lock_pages(std::size_t /*bytes*/, std::string& /*reason*/) { refuse(0); }

void observe_out_of_memory() {}

struct Graph::Recorded {};
Graph::Graph(c10::Device device) { refuse(device.index()); }
Graph::~Graph() = default;
void Graph::rehearse(const std::function<void()>& /*work*/) const {}
void Graph::record(const std::function<void()>& /*work*/) {}
void Graph::replay() {}
void Graph::protect_memory() const {}

}  // namespace hortator::machine
