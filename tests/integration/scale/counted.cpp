// counted FOLDER: prints the MPI calls of each rank for start-up, for one training step, and for saving a checkpoint,
// as lines of figures.hpp. measure.sh runs it with 2 to 32 ranks and checks the figures with `judge`:
//
//   phase                      ranks  rank 0 calls    bytes others' calls    bytes
//   mpi:checkpoint                 2            17     2489            17     2473
//   mpi:checkpoint                32            17     2730            17     2474
//
// Each line is one phase of one job: MPI calls and the bytes in their arguments (traffic.cpp), on rank 0 and the
// maximum over the other ranks. Compare the lines of a phase: a number that grows with the ranks is expensive on every
// rank of a job with thousands. The back ends, before the colon:
//
//   mpi    HORTATOR_COMMUNICATOR=mpi on nodes of two ranks
//   node   the default, shared memory, on nodes of two ranks, from 4 ranks: exchange within a node through shared
//          memory is not an MPI call
//   nodes  the same on nodes of one rank, so that two ranks are two nodes as well
//
// With more than 16 nodes the exchange between nodes uses MPI_Allreduce, whose arguments are fewer bytes.
//
// All ranks run on this machine; traffic.cpp divides them into nodes. Exchanges within a node (its CPUs, its window)
// may grow with the ranks of the node but not with those of the job, so the size of nodes is constant here.
#include <mpi.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <hortator/hortator.hpp>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "figures.hpp"
#include "traffic.hpp"

namespace {

using namespace hortator;

// Gradients begin at cache lines, of 16 elements. With the reducer's five signals they have 3 * 352 + inputs * width +
// 5 elements: enough for the exchange between nodes (64 KiB per rank), and a multiple of 256, so that the parts of 2 to
// 16 nodes, which are whole cache lines, are equal.
constexpr int inputs = 345;
constexpr int width = 339;
constexpr int steps_until_settled = 3;  // after these steps buckets and moments exist

struct Rows {
  std::int64_t count;

  std::size_t size() const { return static_cast<std::size_t>(count); }
  Example<> get(std::int64_t i) const { return {at::full({inputs}, 0.01 * static_cast<double>(i)), at::ones({1})}; }
};

/// Counts the MPI calls in its scope; rank 0 prints them for each rank.
class Phase {
 public:
  explicit Phase(std::string name) : name_(std::move(name)), before_(scale::traffic()) {}
  ~Phase() {
    const auto now = scale::traffic();
    const std::array<std::int64_t, 2> mine = {now.calls - before_.calls, now.bytes - before_.bytes};
    int rank = 0;
    int ranks = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<std::array<std::int64_t, 2>> all(static_cast<std::size_t>(ranks));
    PMPI_Gather(mine.data(), 2, MPI_INT64_T, all.data(), 2, MPI_INT64_T, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; ++i) {
      const auto [calls, bytes] = all[static_cast<std::size_t>(i)];
      const scale::Figure figure{.phase = name_, .ranks = ranks, .rank = i, .calls = calls, .bytes = bytes};
      std::cout << to_line(figure) << std::endl;
    }
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  std::string name_;
  scale::Traffic before_;
};

torch::nn::Sequential make_net() {
  return torch::nn::Sequential(torch::nn::Linear(torch::nn::LinearOptions(inputs, width).bias(false)),
                               torch::nn::BatchNorm1d(width),
                               torch::nn::Linear(torch::nn::LinearOptions(width, 1).bias(false)));
}

void train_and_save(const std::string& backend, const std::filesystem::path& folder) {
  std::optional<Phase> phase(backend + ":start-up");
  Accelerator accelerator({.project = {.dir = folder / backend}});
  auto net = make_net();
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  const std::int64_t samples = 4L * (steps_until_settled + 1) * accelerator.num_processes();
  auto [model, optimizer, loader] =
      accelerator.prepare(net, adamw, data_loader(Rows{samples}, {.batch_size = 4, .shuffle = true}));
  phase.reset();

  int steps = 0;
  for (auto& batch : loader) {
    if (steps++ == steps_until_settled) phase.emplace(backend + ":step");
    accelerator.backward((model(batch.data) - batch.target).pow(2).mean());
    optimizer.step();
    optimizer.zero_grad();
    phase.reset();
  }

  const Phase saving(backend + ":checkpoint");
  accelerator.save_state();
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    const std::filesystem::path folder = argv[1];
    const auto measure = [&](const char* name, const char* communicator, int ranks_a_node) {
      setenv("HORTATOR_COMMUNICATOR", communicator, 1);
      scale::pretend_nodes_of(ranks_a_node);
      train_and_save(name, folder);
    };
    measure("mpi", "mpi", 2);
    measure("nodes", "node", 1);
    int ranks = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks >= 4) measure("node", "auto", 2);  // two nodes at least
  });
}
