#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include <array>

#include "comm/backends/registry.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"
#include "tools/test/checks.hpp"

namespace hortator::tools::installation {
namespace {

using comm::Communicator;
using comm::ReduceOp;

// Small, medium and large, since back ends choose their algorithm by size; not multiples of anything.
constexpr std::array<std::int64_t, 3> sizes = {1, 1001, 300007};
constexpr std::array<at::ScalarType, 4> types = {at::kFloat, at::kDouble, at::kBFloat16, at::kLong};

// Small whole numbers that differ between ranks: the sums are known, and exact in all types except bfloat16.
at::Tensor numbers(std::int64_t count, int rank, const at::TensorOptions& options) {
  return (at::arange(count, at::TensorOptions(at::kLong)).remainder(5) + rank % 7)
      .to(options.device(), c10::typeMetaToScalarType(options.dtype()));
}

at::Tensor sum_of_numbers(std::int64_t count, int ranks, const at::TensorOptions& options) {
  std::int64_t extra = 0;
  for (int rank = 0; rank < ranks; ++rank) extra += rank % 7;
  const auto sum = at::arange(count, at::TensorOptions(at::kLong)).remainder(5) * ranks + extra;
  return sum.to(options.device(), c10::typeMetaToScalarType(options.dtype()));
}

bool is_close(const at::Tensor& found, const at::Tensor& expected) {
  const double tolerance = found.scalar_type() == at::kBFloat16 ? 0.05 : 0;  // one rounding for each rank
  return at::allclose(found.to(at::kDouble), expected.to(at::kDouble), tolerance, 0);
}

/// All collectives of one back end on one size and type.
class CollectiveChecks {
 public:
  CollectiveChecks(Communicator& back_end, const mpi::Communicator& world, std::int64_t count,
                   const at::TensorOptions& options)
      : back_end_(back_end), world_(world), count_(count), part_(count / back_end.size() + 1), options_(options) {}

  void all() {
    all_reduce();
    reduce_scatter();
    all_gather();
    broadcast();
    back_end_.barrier();
  }

 private:
  void all_reduce() {
    auto tensor = numbers(count_, back_end_.rank(), options_);
    back_end_.all_reduce(tensor, ReduceOp::sum).wait();
    compare("all_reduce", tensor, sum_of_numbers(count_, back_end_.size(), options_));
    auto own = back_end_.allocate(count_, c10::typeMetaToScalarType(options_.dtype()));
    own.copy_(numbers(count_, back_end_.rank(), options_));
    back_end_.all_reduce(own, ReduceOp::sum).wait();
    compare("all_reduce in the back end's own memory", own, sum_of_numbers(count_, back_end_.size(), options_));
  }

  void reduce_scatter() {
    const auto whole = part_ * back_end_.size();
    auto part = at::empty_like(numbers(part_, 0, options_));
    back_end_.reduce_scatter(part, numbers(whole, back_end_.rank(), options_), ReduceOp::sum).wait();
    compare("reduce_scatter", part,
            sum_of_numbers(whole, back_end_.size(), options_).narrow(0, back_end_.rank() * part_, part_));
  }

  void all_gather() {
    std::vector<at::Tensor> parts;
    for (int rank = 0; rank < back_end_.size(); ++rank) parts.push_back(numbers(part_, rank, options_));
    const auto expected = at::cat(parts);
    auto whole = at::empty_like(expected);
    back_end_.all_gather(whole, numbers(part_, back_end_.rank(), options_)).wait();
    compare("all_gather", whole, expected);
  }

  void broadcast() {
    const int last = back_end_.size() - 1;
    auto tensor = numbers(count_, back_end_.rank(), options_);
    back_end_.broadcast(tensor, last).wait();
    compare("broadcast", tensor, numbers(count_, last, options_));
  }

  void compare(const char* verb, const at::Tensor& found, const at::Tensor& expected) {
    require_on_all_ranks(world_, is_close(found, expected),
                         text::concat(verb, " of ", count_, " ", options_.dtype().name(), " has a wrong result"));
  }

  Communicator& back_end_;
  const mpi::Communicator& world_;
  std::int64_t count_;
  std::int64_t part_;  ///< elements of each rank in reduce_scatter and all_gather
  at::TensorOptions options_;
};

std::string check(Communicator& back_end, const mpi::Communicator& world, c10::Device device) {
  for (const auto type : types) {
    for (const auto count : sizes)
      CollectiveChecks(back_end, world, count, at::TensorOptions(type).device(device)).all();
  }
  return text::concat("all_reduce, reduce_scatter, all_gather, broadcast on ", device);
}

}  // namespace

std::vector<Check> checks_of_back_ends(Accelerator& accelerator) {
  const auto& world = accelerator.world();
  std::vector<Check> checks;
  for (const auto& backend : comm::backends()) {
    const bool on_cpu = backend.traits.device == at::kCPU;
    const auto device = on_cpu ? c10::Device(at::kCPU) : accelerator.device();
    if (!backend.traits.carries(device)) continue;
    checks.push_back({std::string(backend.name), [&world, &backend, device] {
                        return check(*backend.make(world.comm(), device, world.collective_timeout()), world.comm(),
                                     device);
                      }});
  }
  return checks;
}

}  // namespace hortator::tools::installation
