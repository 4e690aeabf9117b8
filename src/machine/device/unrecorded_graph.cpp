#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "machine/device/graph.hpp"

namespace hortator::machine {

// For kinds whose DeviceKind::records_steps is false: steps run as the program has written them.
struct Graph::Recorded {};
Graph::Graph(c10::Device /*device*/) {
  throw Error({.what = text::concat(accelerator_kind()->title, " devices cannot record work")});
}
Graph::~Graph() = default;
void Graph::rehearse(const std::function<void()>& /*work*/) const {}
void Graph::record(const std::function<void()>& /*work*/) {}
void Graph::replay() {}
void Graph::protect_memory() const {}

}  // namespace hortator::machine
