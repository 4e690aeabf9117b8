#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "bench/collective_cases.hpp"
#include "bench/debug_mode.hpp"
#include "bench/measurements.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"

namespace hortator::bench {
namespace {

using comm::Communicator;

const std::vector<std::string>& known_operations() {
  static const std::vector<std::string> names = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                 "debug_mode"};
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

std::vector<std::int64_t> default_sizes() {
  std::vector<std::int64_t> sizes;
  for (int power = 10; power <= 26; power += 2) sizes.push_back(std::int64_t{1} << power);
  return sizes;
}

// All collectives of one back end on buffers of one size and type, compared with memcpy and MPI.
class CollectivesComparison {
 public:
  CollectivesComparison(Accelerator& accelerator, const Plan& plan, const Selection& selection)
      : accelerator_(accelerator),
        plan_(plan),
        selection_(selection),
        mpi_(communicator_named("mpi", world())),
        peer_groups_(world().split(accelerator.world().node().rank(), world().rank())),
        has_even_nodes_(mpi::all_reduce(world(), peer_groups_.size(), mpi::Op::min) > 1 &&
                        mpi::all_reduce(world(), peer_groups_.size(), mpi::Op::min) ==
                            mpi::all_reduce(world(), peer_groups_.size(), mpi::Op::max)) {}

  void add(const std::string& backend) {
    const auto communicator = communicator_named(backend, world());
    for (const auto& type : or_default(selection_.types, {"float32"})) {
      for (const auto bytes : or_default(selection_.sizes, default_sizes())) {
        add(backend, *communicator, type, bytes);
      }
    }
  }

  std::vector<Result> results() && { return std::move(results_); }

 private:
  // The minimum traffic of an all_reduce between nodes, sent by all ranks of a node at once: (n - 1) / n of the bytes
  // twice, divided among the ranks.
  std::function<void()> exchange(const at::Tensor& out, const at::Tensor& in) const {
    const int nodes = peer_groups_.size();
    const auto local = static_cast<std::size_t>(world().size() / nodes);
    const auto share = out.nbytes() / local / static_cast<std::size_t>(nodes);
    const int next = (peer_groups_.rank() + 1) % nodes;
    const int previous = (peer_groups_.rank() + nodes - 1) % nodes;
    return [=, this] {
      for (int i = 0; i < 2 * (nodes - 1); ++i) {
        mpi::exchange_bytes(peer_groups_, out.const_data_ptr(), next, in.data_ptr(), previous, share);
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
    const auto ours = collective_cases(communicator, elements, type);
    const auto peers = collective_cases(*mpi_, elements, type);
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

  void add(const CollectiveCase& ours, nlohmann::json params, const std::string& reference,
           const std::function<void()>& run) {
    if (!wanted(selection_.references, reference)) return;
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
  mpi::Communicator peer_groups_;  ///< the ranks with the same local rank on all nodes
  bool has_even_nodes_;            ///< several nodes with equal numbers of ranks
  std::vector<Result> results_;
};

}  // namespace

std::vector<Result> collectives(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  check_known("--case", selection.cases, known_operations());
  check_known("--reference", selection.references, {"memcpy", "MPI", "raw exchange"});
  CollectivesComparison comparison(accelerator, plan, selection);
  for (const auto& backend : or_default(selection.backends, {"node"})) comparison.add(backend);
  auto results = std::move(comparison).results();
  if (wanted(selection.cases, std::string("debug_mode"))) {
    for (auto& result : debug_mode(accelerator, plan)) results.push_back(std::move(result));
  }
  return results;
}

}  // namespace hortator::bench
