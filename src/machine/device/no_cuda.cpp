#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "machine/device/cuda.hpp"
#include "machine/device/graph.hpp"
#include "machine/device/memory.hpp"

namespace hortator::machine {
namespace {

[[noreturn]] void refuse(int index) {
  throw UsageError({.what = text::concat("There is no CUDA device ", index),
                    .why = "this Hortator was built without CUDA",
                    .hint = "use the CPU, or build with HORTATOR_WITH_CUDA=ON"});
}

}  // namespace

bool is_built() { return false; }

int visible_device_count() { return 0; }

bool is_in_use() { return false; }

std::string name(int index) { refuse(index); }

std::string uuid(int index) { refuse(index); }

std::string pci_address(int index) { refuse(index); }

std::size_t free_memory(int index) { refuse(index); }

void set_current(int index) { refuse(index); }

std::shared_ptr<void> page_locked(std::size_t /*bytes*/) { refuse(0); }

void on_out_of_memory(std::function<void(std::uint64_t)> /*act*/) {}

struct Graph::Recorded {};
Graph::Graph(int device) { refuse(device); }
Graph::~Graph() = default;
void Graph::rehearse(const std::function<void()>& /*work*/) const {}
void Graph::record(const std::function<void()>& /*work*/) {}
void Graph::replay() {}

}  // namespace hortator::machine
