#pragma once

#include <mpi.h>

namespace hortator::mpi {

/// Owns an MPI communicator. Move-only: a copy would hide a collective. MPI errors on it come back as exceptions.
class Communicator {
 public:
  /// A duplicate of MPI_COMM_WORLD, so that our messages never meet the application's. @collective
  static Communicator world();
  /// A duplicate of somebody else's communicator. @collective
  static Communicator duplicate(MPI_Comm other);

  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm get() const { return comm_; }

  /// Ranks with the same color, ordered by key. @collective
  Communicator split(int color, int key) const;
  /// The ranks that share this rank's memory, in rank order. @collective
  Communicator node() const;

 private:
  explicit Communicator(MPI_Comm owned);
  void free() noexcept;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace hortator::mpi
