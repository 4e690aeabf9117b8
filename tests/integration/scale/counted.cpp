// counted FOLDER: what each rank asks of MPI to start up, to make one training step, and to save a checkpoint, as lines
// of figures.hpp. measure.sh runs it at 2 to 32 ranks and has the figures judged:
//
//   phase                      ranks  rank 0 calls    bytes others' calls    bytes
//   mpi:checkpoint                 2            17     2489            17     2473
//   mpi:checkpoint                32            17     2730            17     2474
//
// Each line is one phase of one job: calls into MPI and bytes by these calls' arguments (traffic.cpp), on rank 0 and,
// the most, on any other rank. Read them downwards: where a number grows with the ranks, a job of thousands pays for it
// on every rank. The back ends, named before the colon:
//
//   mpi    HORTATOR_COMMUNICATOR=mpi on nodes of two ranks
//   node   the default, shared memory, on nodes of two ranks, from 4 ranks on: what ranks of a node exchange through
//          memory is no call
//   nodes  the same on nodes of one rank, so that two ranks are two nodes as well
//
// More than 16 nodes leave the exchange between nodes to MPI_Allreduce, which by its arguments is fewer bytes.
//
// All ranks run on this machine; traffic.cpp divides them into nodes. A node's own exchanges (its CPUs, its window) may
// grow with the ranks of a node, not with those of the job, so nodes keep their size here.
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

// With the reducer's four signals, gradients are width (width + 3) + 4 numbers: enough for the exchange between nodes
// (64 KiB a rank), and a multiple of 256, so that shares of 2 to 16 nodes are equal: they come in whole lines of the
// cache.
constexpr int width = 345;
constexpr int steps_until_settled = 3;  // buckets are laid out by then, and moments are there

struct Rows {
  std::int64_t count;

  std::size_t size() const { return static_cast<std::size_t>(count); }
  Example<> get(std::int64_t i) const { return {at::full({width}, 0.01 * static_cast<double>(i)), at::ones({1})}; }
};

/// Prints what its scope has cost each rank, from rank 0.
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
  return torch::nn::Sequential(torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)),
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
