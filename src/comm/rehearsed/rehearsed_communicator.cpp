#include "comm/rehearsed/rehearsed_communicator.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <sys/mman.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "comm/exchange_plan.hpp"
#include "comm/kernels/element.hpp"
#include "comm/operands.hpp"
#include "comm/rehearsed/traffic.hpp"
#include "core/text/text.hpp"
#include "machine/memory/system_memory.hpp"
#include "machine/shapes/counted_memory.hpp"
#include "mpi/rehearsed_world.hpp"

namespace hortator::comm {
namespace {

/// Larger tensors have no values in a rehearsal.
constexpr std::size_t max_small = std::size_t{256} << 10;

bool is_small(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * tensor.element_size() <= max_small;
}

std::uint64_t traffic_bytes(const at::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
}

std::uint64_t bytes_to_others(const std::vector<PeerTensor>& tensors, int own) {
  std::uint64_t bytes = 0;
  for (const auto& one : tensors) bytes += one.peer == own ? 0 : traffic_bytes(one.tensor);
  return bytes;
}

// Other ranks send this one what it sends to them, where that fits.
void receive_as_sent(const std::vector<PeerTensor>& sent, const std::vector<PeerTensor>& received, int own) {
  for (const auto& in : received) {
    if (in.peer == own || !is_small(in.tensor)) continue;
    const auto out = std::ranges::find_if(sent, [&](const PeerTensor& one) {
      return one.peer != own && one.tensor.sizes() == in.tensor.sizes() &&
             one.tensor.scalar_type() == in.tensor.scalar_type();
    });
    if (out != sent.end()) in.tensor.detach().copy_(out->tensor);
  }
}

std::size_t part_of_node(std::size_t bytes, int ranks) {
  constexpr std::size_t page = 65536;  // as the window of the back end "node" has it
  const auto pages = (bytes + page - 1) / page;
  const auto count = static_cast<std::size_t>(ranks);
  return (pages + count - 1) / count * page;
}

// Zeros at addresses that take no memory; `counted` bytes of it are this rank's.
at::Tensor window(std::int64_t elements, at::ScalarType type, std::size_t counted) {
  const auto bytes =
      machine::whole_pages(std::max<std::size_t>(static_cast<std::size_t>(elements) * at::elementSize(type), 1));
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw Error({.what = text::concat("No addresses are left for ", bytes, " bytes")});
  machine::note_memory(data, counted, "shared window");
  const auto release = [bytes](void* begin) {
    machine::forget_memory(begin);
    munmap(begin, bytes);
  };
  return at::from_blob(data, {elements}, release, at::TensorOptions().dtype(type));
}

}  // namespace

void RehearsedCommunicator::note(const std::string& verb, std::uint64_t bytes) const {
  note_traffic(mpi::rehearsed_members(comm_), verb, bytes, sent_bytes(verb, bytes, size()));
}

Work RehearsedCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  check_result(tensor, device_, "all_reduce", name());
  check_reducible(tensor.scalar_type(), op);
  note("all_reduce", traffic_bytes(tensor));
  if (op == ReduceOp::sum && is_small(tensor)) tensor.detach().mul_(size());
  return {};
}

Work RehearsedCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  check_result(output, device_, "reduce_scatter", name());
  check_operand(input, device_, "reduce_scatter", name());
  check_reducible(input.scalar_type(), op);
  check_parts(input, output, size(), "reduce_scatter");
  note("reduce_scatter", traffic_bytes(input));
  if (!is_small(input)) return {};
  const auto own = input.detach().reshape({size(), -1}).select(0, rank()).view(output.sizes());
  output.detach().copy_(own);
  if (op == ReduceOp::sum) output.detach().mul_(size());
  return {};
}

Work RehearsedCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  check_result(output, device_, "all_gather", name());
  check_operand(input, device_, "all_gather", name());
  check_parts(output, input, size(), "all_gather");
  note("all_gather", traffic_bytes(output));
  if (is_small(output) && output.numel() > 0)
    output.detach().copy_(input.detach().reshape({1, -1}).expand({size(), -1}).reshape(output.sizes()));
  return {};
}

Work RehearsedCommunicator::broadcast(at::Tensor tensor, int root) {
  check_result(tensor, device_, "broadcast", name());
  check_root(root, size());
  note("broadcast", traffic_bytes(tensor));
  return {};
}

Work RehearsedCommunicator::exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) {
  check_exchange(sent, received, device_, size(), name());
  const auto bytes = bytes_to_others(sent, rank());
  note_traffic(mpi::rehearsed_members(comm_), "exchange", bytes, bytes);
  deliver_own(sent, received, rank());
  receive_as_sent(sent, received, rank());
  return {};
}

void RehearsedCommunicator::barrier() { note("barrier", 0); }

at::Tensor RehearsedCommunicator::allocate(std::int64_t elements, at::ScalarType type) {
  if (!traits_.shares_memory) return at::zeros({elements}, at::TensorOptions().dtype(type).device(device_));
  return window(elements, type, static_cast<std::size_t>(elements) * at::elementSize(type));
}

at::Tensor RehearsedCommunicator::allocate_common(std::int64_t elements, at::ScalarType type) {
  if (!traits_.shares_memory) return allocate(elements, type);
  return window(elements, type,
                part_of_node(static_cast<std::size_t>(elements) * at::elementSize(type), comm_.node().size()));
}

std::unique_ptr<Communicator> RehearsedCommunicator::split(int color, int key) const {
  return std::make_unique<RehearsedCommunicator>(comm_.split(color, key), traits_, device_);
}

}  // namespace hortator::comm
