#include "machine/device/graph.hpp"

#include <hortator/error.hpp>

namespace hortator::machine {

// Not written for ROCm: DeviceKind::records_steps is false, so that steps run as the program has written them.
struct Graph::Recorded {};
Graph::Graph(c10::Device /*device*/) { throw Error({.what = "ROCm devices cannot record work"}); }
Graph::~Graph() = default;
void Graph::rehearse(const std::function<void()>& /*work*/) const {}
void Graph::record(const std::function<void()>& /*work*/) {}
void Graph::replay() {}
void Graph::protect_memory() const {}

}  // namespace hortator::machine
