#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cstring>
#include <hortator/error.hpp>
#include <type_traits>

#include "base/text.hpp"
#include "cli/bench/measurements.hpp"
#include "comm/checked_communicator.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/node_communicator.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"

namespace hortator::cli::bench {
namespace {

using comm::Communicator;
using comm::ReduceOp;

/// One collective on buffers that are ready: the whole buffer has `bytes` on each rank, whatever the operation.
struct Case {
  std::string operation;
  std::string memory;  ///< "window": from allocate(); "own": the rank's own
  std::function<void()> run;
  double bus_factor = 1;  ///< bytes that cross the slowest link, a byte of the buffer
};

std::int64_t elements_of(std::int64_t bytes, at::ScalarType type, int ranks) {
  const auto elements = bytes / static_cast<std::int64_t>(at::elementSize(type));
  return std::max<std::int64_t>(elements / ranks, 1) * ranks;
}

std::vector<Case> cases_of(Communicator& comm, std::int64_t elements, at::ScalarType type) {
  const int n = comm.size();
  const auto share = elements / n;
  const double ring = n > 1 ? (n - 1.0) / n : 1;
  auto window = comm.allocate(elements, type).fill_(1);
  auto common = comm.allocate_common(elements, type).fill_(1);
  auto own = at::ones({elements}, type);
  auto part = at::ones({share}, type);
  const auto wait = [](comm::Work work) { work.wait(); };
  return {
      {"all_reduce", "window", [=, &comm] { wait(comm.all_reduce(window, ReduceOp::mean)); }, 2 * ring},
      {"all_reduce", "own", [=, &comm] { wait(comm.all_reduce(own, ReduceOp::mean)); }, 2 * ring},
      {"reduce_scatter", "window", [=, &comm] { wait(comm.reduce_scatter(part, window, ReduceOp::mean)); }, ring},
      {"reduce_scatter", "own", [=, &comm] { wait(comm.reduce_scatter(part, own, ReduceOp::mean)); }, ring},
      {"all_gather", "common",
       [=, &comm] { wait(comm.all_gather(common, common.narrow(0, comm.rank() * share, share))); }, ring},
      {"all_gather", "window", [=, &comm] { wait(comm.all_gather(window, part)); }, ring},
      {"all_gather", "own", [=, &comm] { wait(comm.all_gather(own, part)); }, ring},
      {"broadcast", "own", [=, &comm] { wait(comm.broadcast(own, 0)); }, 1},
  };
}

const std::vector<std::string>& known_operations() {
  static const std::vector<std::string> names = {"all_reduce", "reduce_scatter", "all_gather", "broadcast"};
  return names;
}

template <typename T>
bool wanted(const std::vector<T>& selected, const T& value) {
  return selected.empty() || std::find(selected.begin(), selected.end(), value) != selected.end();
}

template <typename T>
std::vector<T> or_default(const std::vector<T>& selected, std::type_identity_t<std::vector<T>> otherwise) {
  return selected.empty() ? otherwise : selected;
}

std::unique_ptr<Communicator> make(const std::string& backend, const mpi::Communicator& world) {
  if (backend == "mpi") return std::make_unique<comm::MpiCommunicator>(mpi::Communicator::duplicate(world.get()));
  if (backend == "node") return std::make_unique<comm::NodeCommunicator>(mpi::Communicator::duplicate(world.get()));
  if (backend == "node in debug mode") {
    return std::make_unique<comm::CheckedCommunicator>(make("node", world), mpi::Communicator::duplicate(world.get()));
  }
  throw UsageError({.what = text::concat("--backend ", backend, " cannot be measured on CPU tensors"),
                    .hint = "known are mpi, node and 'node in debug mode'"});
}

at::ScalarType type_named(const std::string& name) {
  const std::vector<std::pair<std::string, at::ScalarType>> known = {{"float32", at::kFloat},
                                                                     {"float64", at::kDouble},
                                                                     {"float16", at::kHalf},
                                                                     {"bfloat16", at::kBFloat16},
                                                                     {"int32", at::kInt}};
  std::vector<std::string> names;
  for (const auto& [key, type] : known) {
    if (key == name) return type;
    names.push_back(key);
  }
  throw UsageError({.what = text::concat("--type ", name, " is unknown"), .hint = text::suggestion(name, names)});
}

// As many calls a block as move 128 MiB, within reason.
int steps_for(std::int64_t bytes, int most) {
  return static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 27) / bytes, std::min(2, most), most));
}

std::vector<std::int64_t> default_sizes() {
  std::vector<std::int64_t> sizes;
  for (int power = 10; power <= 26; power += 2) sizes.push_back(std::int64_t{1} << power);
  return sizes;
}

// Everything that one back end offers on buffers of one size and type, beside a copy of the bytes and beside MPI.
class Comparison {
 public:
  Comparison(Accelerator& accelerator, const Plan& plan, const Selection& selection)
      : accelerator_(accelerator),
        plan_(plan),
        selection_(selection),
        mpi_(make("mpi", world())),
        lanes_(world().split(accelerator.world().node().rank(), world().rank())),
        has_even_nodes_(mpi::all_reduce(world(), lanes_.size(), MPI_MIN) > 1 &&
                        mpi::all_reduce(world(), lanes_.size(), MPI_MIN) ==
                            mpi::all_reduce(world(), lanes_.size(), MPI_MAX)) {}

  void add(const std::string& backend) {
    const auto communicator = make(backend, world());
    for (const auto& type : or_default(selection_.types, {"float32"})) {
      for (const auto bytes : or_default(selection_.sizes, default_sizes())) {
        add(backend, *communicator, type, bytes);
      }
    }
  }

  std::vector<Result> results() && { return std::move(results_); }

 private:
  // What an all_reduce must send between nodes at least, by the ranks of a node at once: what its result takes in the
  // best algorithm known, (n - 1) / n of the bytes twice, dealt out over the ranks.
  std::function<void()> exchange(const at::Tensor& out, const at::Tensor& in) const {
    const int nodes = lanes_.size();
    const auto local = static_cast<std::size_t>(world().size() / nodes);
    const auto share = out.nbytes() / local / static_cast<std::size_t>(nodes);
    const int next = (lanes_.rank() + 1) % nodes;
    const int previous = (lanes_.rank() + nodes - 1) % nodes;
    return [=, this] {
      for (int i = 0; i < 2 * (nodes - 1); ++i) {
        mpi::exchange_bytes(lanes_, out.const_data_ptr(), next, in.data_ptr(), previous, share);
      }
    };
  }

  const mpi::Communicator& world() const { return accelerator_.world().comm(); }

  void add(const std::string& backend, Communicator& communicator, const std::string& type_name, std::int64_t bytes) {
    const auto type = type_named(type_name);
    const auto elements = elements_of(bytes, type, communicator.size());
    const auto source = at::ones({elements}, type);
    const auto target = at::empty_like(source);
    const auto copy = [&] { std::memcpy(target.data_ptr(), source.const_data_ptr(), source.nbytes()); };
    const auto ours = cases_of(communicator, elements, type);
    const auto peers = cases_of(*mpi_, elements, type);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (!wanted(selection_.cases, ours[i].operation)) continue;
      const nlohmann::json params = {{"backend", backend},
                                     {"memory", ours[i].memory},
                                     {"type", type_name},
                                     {"bytes", source.nbytes()},
                                     {"ranks", communicator.size()}};
      add(ours[i], params, "memcpy", copy);
      add(ours[i], params, "MPI", peers[i].run);
      if (ours[i].operation == "all_reduce" && has_even_nodes_)
        add(ours[i], params, "raw exchange", exchange(source, target));
    }
  }

  void add(const Case& ours, nlohmann::json params, const std::string& reference, const std::function<void()>& run) {
    const auto bytes = params["bytes"].get<std::int64_t>();
    const Plan block{.blocks = plan_.blocks, .steps = steps_for(bytes, plan_.steps)};
    params["steps"] = block.steps;
    const auto timing = time_in_pairs(
        {.ours = ours.run, .reference = run, .line_up = [&] { accelerator_.wait_for_everyone(); }}, block);
    const double rate = static_cast<double>(bytes) / timing.ours.median_s;
    results_.push_back({.name = ours.operation,
                        .params = std::move(params),
                        .reference = reference,
                        .timing = timing,
                        .algorithm_bytes_per_s = rate,
                        .bus_bytes_per_s = rate * ours.bus_factor});
  }

  Accelerator& accelerator_;
  const Plan& plan_;
  const Selection& selection_;
  std::unique_ptr<Communicator> mpi_;
  mpi::Communicator lanes_;  ///< the ranks of all nodes that have the same place in their node
  bool has_even_nodes_;      ///< several nodes of as many ranks each
  std::vector<Result> results_;
};

}  // namespace

std::vector<Result> collectives(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  for (const auto& name : selection.cases) {
    if (!wanted(known_operations(), name)) {
      throw UsageError({.what = text::concat("--case ", name, " is no collective"),
                        .hint = text::suggestion(name, known_operations())});
    }
  }
  Comparison comparison(accelerator, plan, selection);
  for (const auto& backend : or_default(selection.backends, {"node"})) comparison.add(backend);
  return std::move(comparison).results();
}

}  // namespace hortator::cli::bench
