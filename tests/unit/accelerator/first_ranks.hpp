#pragma once

#include <mpi.h>

namespace hortator::test {

/// A communicator of the first `ranks` ranks. Other ranks wait in the destructor until these are done. @collective
class FirstRanks {
 public:
  explicit FirstRanks(int ranks) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : 1, rank, &comm_);
    is_in_ = rank < ranks;
  }
  ~FirstRanks() {
    MPI_Comm_free(&comm_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  FirstRanks(const FirstRanks&) = delete;
  FirstRanks& operator=(const FirstRanks&) = delete;

  bool is_in() const { return is_in_; }
  int handle() const { return MPI_Comm_c2f(comm_); }  ///< for AcceleratorOptions::communicator

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  bool is_in_ = false;
};

}  // namespace hortator::test
