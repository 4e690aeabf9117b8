#include "bench/machine.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <hortator/error.hpp>

#include "comm/backends/make_communicator.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "machine/memory/memory_limit.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::bench {
namespace {

using Clock = std::chrono::steady_clock;

double duration_of(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void wait_for(const at::Tensor& tensor) { static_cast<void>(tensor.flatten()[0].item()); }

// The fastest of several repeats, since other work on the machine only slows it down.
double fastest(int repeats, const std::function<void()>& work) {
  work();
  double best = duration_of(work);
  for (int i = 1; i < repeats; ++i) best = std::min(best, duration_of(work));
  return best;
}

double operations_per_second(c10::Device device, at::ScalarType type) {
  const std::int64_t size = device.is_cpu() ? 1024 : 8192;
  const auto a = at::ones({size, size}, at::TensorOptions(device).dtype(type));
  at::Tensor product;
  const double seconds = fastest(5, [&] {
    product = at::mm(a, a);
    wait_for(product);
  });
  return 2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size) / seconds;
}

// A ring of n ranks sends 2 (n - 1) / n of the bytes in 2 (n - 1) steps.
planning::Link link_of(comm::Communicator& over, c10::Device device) {
  const double ranks = over.size();
  const auto time = [&](std::int64_t elements) {
    const auto tensor = over.allocate(elements, at::kFloat);
    return fastest(5, [&] {
      over.all_reduce(tensor, comm::ReduceOp::sum).wait();
      wait_for(tensor);
    });
  };
  const std::int64_t large = (device.is_cpu() ? 4 : 64) << 20;
  const double latency = time(1) / (2 * (ranks - 1));
  return {.bytes_per_second = 2 * (ranks - 1) / ranks * 4.0 * static_cast<double>(large) / time(large),
          .latency = latency};
}

double written_per_second(const std::filesystem::path& file) {
  const std::string block(std::size_t{16} << 20, 'x');
  const int descriptor = ::open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  if (descriptor < 0) throw Error({.what = text::concat(text::quote(file.string()), " cannot be written")});
  const double seconds = duration_of([&] {
    for (int i = 0; i < 4; ++i)
      if (::write(descriptor, block.data(), block.size()) < 0) break;
    fsync(descriptor);
  });
  ::close(descriptor);
  std::filesystem::remove(file);
  return 4 * static_cast<double>(block.size()) / seconds;
}

std::uint64_t memory_of(c10::Device device, int ranks_of_a_node) {
  if (!device.is_cpu()) return machine::free_memory(device);
  return machine::available_memory().value_or(0) / static_cast<std::uint64_t>(ranks_of_a_node);
}

double of_slowest(const mpi::Communicator& all, double rate) { return mpi::all_reduce(all, rate, mpi::Op::min); }

planning::Link of_slowest(const mpi::Communicator& all, const planning::Link& link) {
  return {.bytes_per_second = of_slowest(all, link.bytes_per_second),
          .latency = mpi::all_reduce(all, link.latency, mpi::Op::max)};
}

}  // namespace

planning::Machine measure_machine(Accelerator& accelerator, const std::filesystem::path& folder) {
  const auto all = mpi::Communicator::world();
  const auto node = all.node();
  const auto device = accelerator.device();
  const auto over_all = comm::make_communicator(all, device, comm::Checks::off, std::chrono::minutes(10));
  const auto first_of_node = mpi::broadcast(node, all.rank());
  const auto over_node = over_all->split(first_of_node, all.rank());
  planning::Machine machine{.name = accelerator.host(),
                            .ranks_per_node = mpi::all_reduce(all, node.size(), mpi::Op::max)};
  mpi::all_or_none(all, [&] {
    machine.memory = memory_of(device, node.size());
    machine.flops_fp32 = operations_per_second(device, at::kFloat);
    machine.flops_16bit = operations_per_second(device, at::kBFloat16);
    machine.disk_bytes_per_second = written_per_second(folder / text::concat("written.", all.rank()));
  });
  machine.memory = mpi::all_reduce(all, machine.memory, mpi::Op::min);
  for (auto* const rate : {&machine.flops_fp32, &machine.flops_16bit, &machine.disk_bytes_per_second})
    *rate = of_slowest(all, *rate);
  const planning::Link alone{.bytes_per_second = 1e10, .latency = 1e-6};
  machine.within_node = of_slowest(all, node.size() > 1 ? link_of(*over_node, device) : alone);
  machine.between_nodes = machine.within_node;
  if (accelerator.num_nodes() > 1) machine.between_nodes = of_slowest(all, link_of(*over_all, device));
  if (accelerator.is_main_process() && accelerator.num_nodes() == 1)
    log::warn("one node measures no network: between_nodes is a copy of within_node",
              node.size() == 1 ? ", which one rank has not measured either" : "", "; change it in the file");
  return machine;
}

}  // namespace hortator::bench
